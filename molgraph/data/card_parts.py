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
    """Targets of one kind and unit; their names are the file's columns."""

    names: tuple[str, ...]  # columns of the file
    kind: Kind = "regression"  # regression, binary, multiclass or bounded
    unit: str = ""  # of values
    censored: float = Field(default=0.0, ge=0, le=1)  # share of the values that stand at a limit of the assay
    classes: tuple[str, ...] = ()  # labels in order, of a multiclass target
    # how far replicates of a value may lie apart in a curated edition, in ``unit``; None where replicates are
    # no repeated measurements (computed values, or a ligand with several proteins)
    tolerance: float | None = Field(default=None, ge=0)


class Source(Section):
    """One place where the dataset is found, and how the files are laid out there."""

    # ``data`` (the folder that MOLGRAPH_DATA names), ``url`` (also found where DeepChem's own loader left it)
    # or ``rdkit`` (inside that package)
    place: Place
    files: dict[str, str]  # what each file is -> its path below that folder, or its address
    sha256: dict[str, Sha256] = Field(default_factory=dict)  # the same -> the sha256 of its bytes, or ``unverified``
    md5: dict[str, str] = Field(default_factory=dict)
    layout: str = "table"  # how the files are read
    edition: str = "raw"  # ``raw``, or another word where the content is another one than that of the raw edition
    hash: Sha256 = UNVERIFIED  # sha256 of that other content; the raw edition's stands on the card
    rows: int | None = None  # how many rows this place's files give; None where nobody has counted them
    smiles: str = ""  # the column of molecules, where it differs from the card's
    sequence: str = ""  # the column of protein sequences, where there is one
    # target -> its column or key in this place's files, where that differs
    columns: dict[str, str] = Field(default_factory=dict)
    member: str = ""  # the name of what is read inside an archive
    note: str = ""  # what differs from the other places

    @property
    def verified(self) -> bool:
        """Whether the sha256 of every file is known."""
        return all(self.sha256.get(role, UNVERIFIED) != UNVERIFIED for role in self.files) or self.place == "rdkit"


class Noise(Section):
    """What is known of the noise of the labels: the ceiling of every model."""

    sd: float | None = None
    unit: str = ""
    source: str = ""


class Margin(Section):
    """The smallest difference between two methods that matters in practice."""

    value: float | None = Field(default=None, gt=0)  # in the unit of the card's metric; None where there is none
    reason: str  # why that much, or why none


class Edition(Section):
    """A curated edition."""

    rule: str  # what was done, in words; the edition's name is the rule's, and the tolerance is the target's
    rows: int  # how many stayed
    hash: Sha256  # sha256 of its content, with that version of rdkit
    rdkit: str  # the version
    # what was done and why -> number of rows (of ``label out``: labels)
    changes: dict[str, int] = Field(default_factory=dict)


class Repeats(Section):
    """Rows that hold the same thing."""

    groups: int = 0  # things that stand in more than one row
    rows: int = 0  # those rows
    contradictory_groups: int = 0  # groups in which a target has two different values
    contradictory_rows: int = 0  # their rows


class AuditSummary(Section):
    """What an audit of the raw edition found; written by ``pipelines/cards/audit.py``."""

    rdkit: str  # its version
    edition: str = "raw"  # which edition was audited
    rows: int  # all rows
    distinct: int  # different molecules (standardised parents, stereo kept), graphs or pairs among the readable rows
    unreadable: int = 0  # rows that cannot be read
    missing: int = 0  # rows without a molecule
    no_carbon: int = 0  # rows whose largest fragment has no carbon
    salts: int = 0  # rows of more than one part
    undefined_stereo: int = 0  # rows with a stereo centre or double bond whose configuration is not stated
    undefined_centres: int = 0  # those with such a centre
    # repeats by canonical SMILES, all that is written kept; of graphs, those that colour refinement does not
    # tell apart (isomorphic ones, and nearly no others)
    written: Repeats = Repeats()
    parent: Repeats = Repeats()  # repeats by the largest fragment, neutral, stereo kept
    flat: Repeats = Repeats()  # repeats by that parent without stereo
    labels: int = 0  # values that are there, over all targets
    missing_labels: int = 0  # values that are not there
    # binary target or class -> its share of the labels; for more than 30 targets: lowest, median, highest
    positives: dict[str, float] = Field(default_factory=dict)
