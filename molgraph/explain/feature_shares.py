"""Define ``FeatureShares``, a prediction taken apart into what each of its features adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from molgraph.data.table import Table


@dataclass(frozen=True)
class FeatureShares:
    """``answer = base + sum of shares`` of each molecule, exactly.

    Args:
        answer, base: float64 [n]: the model's answer for the molecule and for the reference, whose bits are all 0 and
            whose other features are the training rows' medians.
        shares: float64 [n, width]: what each feature adds.
        radius, n_bits: of the Morgan fingerprint, whose columns come first.
        names: of the other columns.
        unit: of all numbers, in words.
    """

    answer: np.ndarray
    base: np.ndarray
    shares: np.ndarray
    radius: int
    n_bits: int
    names: tuple[str, ...]
    unit: str


@runtime_checkable
class SharesFeatures(Protocol):
    """A fitted method that can take its predictions apart into shares of its features."""

    @property
    def shares_features(self) -> bool:
        """Whether its model is one whose shares are known exactly, on Morgan bits."""

    def feature_shares(self, table: Table, columns: Sequence[int]) -> FeatureShares:
        """The shares of each row, all of which can be read, in one output column each."""
