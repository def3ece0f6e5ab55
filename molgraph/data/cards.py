"""A dataset's name in; its card out: what it is, where it is found, what is known against it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from molgraph.base.contracts import Kind, Target
from molgraph.base.errors import DataError, UsageError, nearest
from molgraph.base.sections import Section, parse_toml
from molgraph.base.shipped import shipped_dir

UNVERIFIED = "unverified"
Sha256 = Annotated[str, Field(pattern=r"^([0-9a-f]{64}|unverified)$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
Place = Literal["data", "url", "rdkit", "pyg"]
Grade = Literal["A", "B", "C"]


class TargetCard(Section):
    """Targets of one kind and unit; their names are the file's columns.

    Args:
        names: columns of the file.
        kind: regression, binary, multiclass or bounded.
        unit: of values.
        classes: labels in order, of a multiclass target.
        tolerance: how far replicates of a value may lie apart in a curated edition, in ``unit``; None where replicates
            are no repeated measurements (computed values, or a ligand with several proteins).
    """

    names: tuple[str, ...]
    kind: Kind = "regression"
    unit: str = ""
    classes: tuple[str, ...] = ()
    tolerance: float | None = Field(default=None, ge=0)


class Source(Section):
    """One place where the dataset is found, and how the files are laid out there.

    Args:
        place: ``data`` (the folder that MOLGRAPH_DATA names), ``url`` (also found where DeepChem's own loader left
            it), ``rdkit`` (inside that package), or ``pyg``, that library's loader.
        files: what each file is -> its path below that folder, its address, or the loader's name.
        sha256: the same -> the sha256 of its bytes, or ``unverified``.
        layout: how the files are read.
        edition: ``raw``, or another word where the content is another one than that of the raw edition.
        hash: sha256 of that other content; the raw edition's stands on the card.
        rows: how many rows this place's files give; None where nobody has counted them.
        smiles: the column of molecules, where it differs from the card's.
        columns: target -> its column or key in this place's files, where that differs.
        member: the name of what is read inside an archive or by a loader.
        note: what differs from the other places.
    """

    place: Place
    files: dict[str, str]
    sha256: dict[str, Sha256] = Field(default_factory=dict)
    md5: dict[str, str] = Field(default_factory=dict)
    layout: str = "table"
    edition: str = "raw"
    hash: Sha256 = UNVERIFIED
    rows: int | None = None
    smiles: str = ""
    columns: dict[str, str] = Field(default_factory=dict)
    member: str = ""
    note: str = ""

    @property
    def verified(self) -> bool:
        """Whether the sha256 of every file is known."""
        return all(self.sha256.get(role, UNVERIFIED) != UNVERIFIED for role in self.files) or self.place == "rdkit"


class Noise(Section):
    """What is known of the noise of the labels: the ceiling of every model."""

    sd: float | None = None
    unit: str = ""
    source: str = ""


class Edition(Section):
    """A curated edition.

    Args:
        rule: what was done, in words; the edition's name is the rule's, and the tolerance is the target's.
        rows: how many stayed.
        hash: sha256 of its content, with that version of rdkit.
        rdkit: the version.
        changes: what was done and why -> number of rows (of ``label out``: labels).
    """

    rule: str
    rows: int
    hash: Sha256
    rdkit: str
    changes: dict[str, int] = Field(default_factory=dict)


class Repeats(Section):
    """Rows that hold the same thing.

    Args:
        groups: things that stand in more than one row.
        rows: those rows.
        contradictory_groups: groups in which a target has two different values.
        contradictory_rows: their rows.
    """

    groups: int = 0
    rows: int = 0
    contradictory_groups: int = 0
    contradictory_rows: int = 0


class AuditSummary(Section):
    """What an audit of the raw edition found; written by ``molgraph data audit NAME --write``.

    Args:
        rdkit: its version.
        edition: which edition was audited.
        rows: all rows.
        distinct: different molecules (standardised parents, stereo kept), graphs or pairs among the readable rows.
        unreadable: rows that cannot be read.
        missing: rows without a molecule.
        no_carbon: rows whose largest fragment has no carbon.
        salts: rows of more than one part.
        undefined_stereo: rows with a stereo centre or double bond whose configuration is not stated.
        undefined_centres: those with such a centre.
        written: repeats by canonical SMILES, all that is written kept; of graphs, those that colour refinement does
            not tell apart (isomorphic ones, and nearly no others).
        parent: repeats by the largest fragment, neutral, stereo kept.
        flat: repeats by that parent without stereo.
        labels: values that are there, over all targets.
        missing_labels: values that are not there.
        positives: binary target or class -> its share of the labels; for more than 30 targets: lowest, median, highest.
    """

    rdkit: str
    edition: str = "raw"
    rows: int
    distinct: int
    unreadable: int = 0
    missing: int = 0
    no_carbon: int = 0
    salts: int = 0
    undefined_stereo: int = 0
    undefined_centres: int = 0
    written: Repeats = Repeats()
    parent: Repeats = Repeats()
    flat: Repeats = Repeats()
    labels: int = 0
    missing_labels: int = 0
    positives: dict[str, float] = Field(default_factory=dict)


class Card(Section):
    """What is known about one dataset.

    Args:
        name: the one word that stands for it everywhere.
        title: what people call it.
        about: one or two sentences.
        collection: MoleculeNet, ADME, TU, generation, drug-target or built-in.
        entity: what a row holds beside its values: ``molecule``, ``graph``, ``geometry``, ``pair``.
        smiles: the column of molecules in the file.
        target: what is to be learnt, in groups of one kind and unit; none for sets to generate from.
        keep: ``all`` rows of the file, or those with a ``measured`` value.
        rows: rows of the raw edition as loaded.
        hash: sha256 of the raw edition's content (ids, structures, targets, values), whatever file it came from.
        metric: the recommended metric.
        split: the recommended split recipe.
        split_note: why that split, and what else is in use.
        grade: credibility: A (one assay, or curated), B, C (old compilation).
        grade_reason: why.
        licence: of the data, as far as it is stated.
        citation: whom to cite.
        home: where it is described.
        faults: what is known against it, a sentence each.
        noise: what is known of the noise of its labels.
        source: places, the first that has it serves.
        edition: curated editions by name (``c1``).
        audit: what the audit found in the raw edition.
    """

    name: Name
    title: str
    about: str
    collection: str
    entity: Literal["molecule", "graph", "geometry", "pair"] = "molecule"
    smiles: str = "smiles"
    target: tuple[TargetCard, ...] = ()
    keep: Literal["all", "measured"] = "all"
    rows: int
    hash: Sha256 = UNVERIFIED
    metric: str = ""
    split: str = "random"
    split_note: str = ""
    grade: Grade
    grade_reason: str
    licence: str
    citation: str
    home: str = ""
    faults: tuple[str, ...] = ()
    noise: Noise = Noise()
    source: tuple[Source, ...]
    edition: dict[str, Edition] = Field(default_factory=dict)
    audit: AuditSummary | None = None

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets one by one, in the card's order."""
        return tuple(Target(n, group.kind, classes=group.classes) for group in self.target for n in group.names)

    @property
    def units(self) -> dict[str, str]:
        """Target -> unit; empty text where there is none."""
        return {name: group.unit for group in self.target for name in group.names}

    @property
    def tolerances(self) -> dict[str, float]:
        """Target -> how far replicates of its values may lie apart in a curated edition, where the card says it."""
        return {n: group.tolerance for group in self.target if group.tolerance is not None for n in group.names}

    @property
    def task(self) -> str:
        """What kind of task it is, in a few words: ``12 x binary``."""
        if not self.target:
            return "generation"
        kinds = {g.kind: sum(len(o.names) for o in self.target if o.kind == g.kind) for g in self.target}
        return ", ".join(kind if n == 1 else f"{n} x {kind}" for kind, n in kinds.items())

    @property
    def verified(self) -> bool:
        """Whether the content's hash is known; where not, the first download settles it."""
        return self.hash != UNVERIFIED

    def _repr_html_(self) -> str:
        from molgraph.data.card_text import card_html

        return card_html(self)

    def __str__(self) -> str:
        from molgraph.data.card_text import card_text

        return card_text(self)


def card_names() -> list[str]:
    """Names of all datasets that have a card."""
    return sorted(path.stem for path in shipped_dir("datasets").glob("*.toml"))


def card(name: str) -> Card:
    """The card of a dataset; an edition's name (``bbbp@c1``) gives the dataset's card.

    Raises:
        UsageError: no such card, with the nearest known names.

    Example:
        >>> card("esol").rows, card("esol").targets[0].kind
        (1128, 'regression')
    """
    word = name.strip().lower().replace("-", "_").split("@")[0]
    if word not in card_names():
        raise UsageError(f"no dataset is named {name!r}", hint=nearest(word, card_names()))
    return read_card(shipped_dir("datasets") / f"{word}.toml")


def read_card(path: str | Path) -> Card:
    """Read and check one card file.

    Raises:
        DataError: it is not TOML, or not a card; the message names the key.
    """
    path = Path(path)
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@cache
def _read(path: Path, _changed: int, _size: int) -> Card:
    try:
        values = parse_toml(path.read_text(encoding="utf-8"))
        return Card.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        known = re.findall(r"\w+", where)[-1:] if problem["type"] == "extra_forbidden" else []
        hint = nearest(known[0], Card.model_fields) if known else f"it is {str(problem.get('input'))[:80]!r}"
        raise DataError(f"the card {path.name}, {where}: {problem['msg']}", hint=hint) from None
    except ValueError as error:
        raise DataError(f"the card {path.name} is not TOML: {error}") from None
