"""Compute columns of features from the entities of a table, such as fingerprints of its molecules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from molgraph.base.errors import UsageError, nearest
from molgraph.base.table import EntityKind
from molgraph.chem.descriptors import NAMES, Descriptors, rdkit_descriptors
from molgraph.chem.descriptors200 import NAMES_200, descriptors_200
from molgraph.chem.fingerprints import ERG_WIDTH, Fingerprints, avalon_counts, erg, morgan

Choice = Literal["morgan", "morgan+descriptors", "maplight"]
CHOICES = ("morgan", "morgan+descriptors", "maplight")
DESCRIPTORS: dict[str, tuple[str, ...]] = {"morgan+descriptors": NAMES, "maplight": NAMES_200}


@dataclass(frozen=True)
class FeatureRows:
    """Features of a list of texts.

    Args:
        x: [n, width]; unreadable rows hold no features.
        ok: bool [n], rows that could be read.
        reasons: object array [n], one line for each row that could not be read, else empty.
    """

    x: np.ndarray
    ok: np.ndarray
    reasons: np.ndarray


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
        UsageError: an unknown choice.

    Example:
        >>> [(each.name, each.width) for each in featurisers_of("morgan+descriptors", 2, 64)][0]
        ('morgan-2-64', 64)
    """
    if choice not in CHOICES:
        raise UsageError(f"no features are named {choice!r}", hint=nearest(str(choice), CHOICES))
    counts = choice == "maplight"
    bits = TableFeaturiser(
        f"morgan{'-counts' * counts}-{radius}-{n_bits}",
        n_bits,
        lambda texts, threads: _rows(morgan(texts, radius, n_bits, counts, threads=threads)),
        counts=True,
    )
    if choice == "morgan":
        return (bits,)
    if choice == "morgan+descriptors":
        return bits, TableFeaturiser(
            "descriptors", len(NAMES), lambda texts, n: _rows(rdkit_descriptors(texts, workers=n))
        )
    return (
        bits,
        TableFeaturiser(
            f"avalon-counts-{n_bits}", n_bits, lambda texts, n: _rows(avalon_counts(texts, n_bits)), counts=True
        ),
        TableFeaturiser("erg", ERG_WIDTH, lambda texts, n: _rows(erg(texts))),
        TableFeaturiser("rdkit200", len(NAMES_200), lambda texts, n: _rows(descriptors_200(texts, workers=n))),
    )


def _rows(found: Fingerprints | Descriptors) -> FeatureRows:
    return FeatureRows(found.x, found.ok, found.reasons)
