"""Define the sections of a dataset's card: targets, places, noise, editions and audit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from molgraph.base.contracts import Kind
from molgraph.base.toml_config import Section

UNVERIFIED = "unverified"
Sha256 = Annotated[str, Field(pattern=r"^([0-9a-f]{64}|unverified)$")]
Place = Literal["data", "url", "rdkit"]


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
            it) or ``rdkit`` (inside that package).
        files: what each file is -> its path below that folder, or its address.
        sha256: the same -> the sha256 of its bytes, or ``unverified``.
        layout: how the files are read.
        edition: ``raw``, or another word where the content is another one than that of the raw edition.
        hash: sha256 of that other content; the raw edition's stands on the card.
        rows: how many rows this place's files give; None where nobody has counted them.
        smiles: the column of molecules, where it differs from the card's.
        columns: target -> its column or key in this place's files, where that differs.
        member: the name of what is read inside an archive.
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
    """What an audit of the raw edition found; written by ``pipelines/cards/audit.py``.

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
