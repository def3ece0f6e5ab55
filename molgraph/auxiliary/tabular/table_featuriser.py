"""Compute columns of features from the entities of a table, such as fingerprints of its molecules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.table import EntityKind
from molgraph.chem.descriptors import NAMES, Descriptors, rdkit_descriptors
from molgraph.chem.descriptors200 import NAMES_200, descriptors_200
from molgraph.chem.fingerprints import ERG_WIDTH, Fingerprints, avalon_counts, erg, morgan

Choice = Literal["morgan", "morgan-counts", "morgan+descriptors", "maplight", "vectors"]
CHOICES = ("morgan", "morgan-counts", "morgan+descriptors", "maplight", "vectors")
DESCRIPTORS: dict[str, tuple[str, ...]] = {"morgan+descriptors": NAMES, "maplight": NAMES_200}


FeatureRows = Fingerprints | Descriptors
"""Features ``x`` of n texts, bool ``ok`` where they could be read, and ``reasons`` where they could not."""


@dataclass(frozen=True)
class TableFeaturiser:
    """A function from the texts of one kind of entity to some columns of features.

    Args:
        name: its name in the cache, with every setting that the values depend on.
        width: number of columns.
        compute: ``(texts, threads) -> FeatureRows``, each row by its own text alone.
        counts: whether the columns are bits or counts (uint8), which have no gaps.
        entity: the kind of entity column that it reads.
    """

    name: str
    width: int
    compute: Callable[[list[str], int], FeatureRows]
    counts: bool = False
    entity: EntityKind = "molecule"


def featurisers_of(choice: str, radius: int, n_bits: int) -> tuple[TableFeaturiser, ...]:
    """The featurisers of a choice of features, those of bits and counts first.

    Args:
        choice: one of ``CHOICES``.
        radius: of the Morgan fingerprint.
        n_bits: of the Morgan and the Avalon fingerprint.

    Raises:
        UnknownNameError: an unknown choice.

    Example:
        >>> [(each.name, each.width) for each in featurisers_of("morgan+descriptors", 2, 64)][0]
        ('morgan-2-64', 64)
    """
    if choice not in CHOICES:
        raise UnknownNameError(f"no features are named {choice!r}", hint=nearest(str(choice), CHOICES))
    if choice == "vectors":
        return ()
    counts = choice in ("maplight", "morgan-counts")
    bits = TableFeaturiser(
        f"morgan{'-counts' * counts}-{radius}-{n_bits}",
        n_bits,
        lambda texts, n: morgan(texts, radius, n_bits, counts, threads=n),
        counts=True,
    )
    if choice in ("morgan", "morgan-counts"):
        return (bits,)
    if choice == "morgan+descriptors":
        return bits, TableFeaturiser("descriptors", len(NAMES), lambda texts, n: rdkit_descriptors(texts, workers=n))
    return (
        bits,
        TableFeaturiser(f"avalon-counts-{n_bits}", n_bits, lambda texts, _: avalon_counts(texts, n_bits), counts=True),
        TableFeaturiser("erg", ERG_WIDTH, lambda texts, _: erg(texts)),
        TableFeaturiser("rdkit200", len(NAMES_200), lambda texts, n: descriptors_200(texts, workers=n)),
    )
