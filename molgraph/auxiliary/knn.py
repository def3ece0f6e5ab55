"""Nearest neighbours: predict the average of the most similar training molecules."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np

from molgraph.auxiliary.tabular import StoredTarget, TabularMethod, TargetData, TargetModel, TargetPrediction
from molgraph.base.ranges import Bits, Count, NotNegative, Radius
from molgraph.base.registry import register
from molgraph.base.search_space import Categorical, Int, Space


@dataclass(frozen=True)
class NearestRows(TargetModel):
    """The labels of training rows and their weights."""

    rows: np.ndarray  # int64 [m], rows of the index that have the target
    says: np.ndarray  # float64 [m, columns], values, or 0 and 1 for each class
    weights: np.ndarray  # float64 [m]
    settings: np.ndarray  # float64 [2], k and the power

    def predict(self, x: np.ndarray) -> TargetPrediction:
        """Average the k most similar rows, and all that are as similar as the k-th: no order decides."""
        like = x[:, self.rows]
        k, power = min(int(self.settings[0]), like.shape[1]), float(self.settings[1])
        kth = -np.partition(-like, k - 1, axis=1)[:, k - 1 : k]
        near = np.where(like >= kth, self.weights, 0.0)
        votes = near * like.astype(np.float64) ** power
        votes = np.where(votes.sum(axis=1, keepdims=True) > 0, votes, near)  # nothing in common with anything
        return TargetPrediction((votes @ self.says) / votes.sum(axis=1, keepdims=True))

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        rows = stored.rows()
        settings, weights = stored.array("settings", 2), stored.array("weights", len(rows))
        if not (settings[0] >= 1 and settings[1] >= 0 and (weights > 0).all()):
            raise ValueError("the settings or weights of neighbours that cannot be")
        return cls(rows, stored.array("says", len(rows), len(stored.target.columns)), weights, settings)


@register(
    "method",
    "knn",
    tags=("fingerprints", "baseline"),
    summary="the most similar training molecules (Tanimoto on Morgan bits) vote",
    paper="Cover and Hart 1967, IEEE Trans. Inf. Theory 13:21; Willett et al. 1998, J. Chem. Inf. Comput. Sci. 38:983",
)
@dataclass(eq=False)
class NearestNeighbours(TabularMethod):
    """The k nearest neighbours of a molecule (Cover and Hart 1967) by the Tanimoto similarity of Morgan bits.

    Values are the neighbours' mean, weighted by ``similarity ** power`` and the rows' weights; classes are their
    shares. All that are as near as the k-th count.

    Use it where a prediction must be explained by the molecules that it came from. Known limits: it reads bits alone; a
    molecule unlike all training molecules gets an average of strangers.

    Args:
        k: neighbours.
        power: exponent of the similarity in the weights; 0 weighs all neighbours alike.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        threads: cores that make fingerprints; None for all.
        store: a folder that keeps fingerprints for all splits and methods; auto for molgraph's cache; None keeps none.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCCO", "c1ccccc1", "C(C"], targets=(Target("y"),), y=[1, 1, 5, 9])
        >>> NearestNeighbours(k=1).fit(table).predict(make_table(["CCCCO", "Cc1ccccc1"])).value.ravel().tolist()
        [1.0, 5.0]
    """

    name = "knn"
    small = MappingProxyType({"n_bits": 256})
    target_model = NearestRows
    compares = True

    k: Count = 5
    power: NotNegative = 3.0
    radius: Radius = 2
    n_bits: Bits = 2048
    threads: int | None = None
    store: str | None = None

    def fit_target(self, data: TargetData) -> NearestRows:
        says = data.y[:, None]
        if data.n_classes:
            classes = np.arange(data.n_classes)[data.target.kind == "binary" :]  # of two, the share of class 1
            says = (says == classes).astype(np.float64)
        weights = np.ones(len(says)) if data.weights is None else data.weights
        return NearestRows(data.rows, says, weights, np.array([float(self.k), float(self.power)]))

    def space(self) -> Space:
        """Neighbours, and how much nearness counts."""
        return {"k": Int(1, 30, log=True), "power": Categorical((0.0, 1.0, 3.0, 6.0)), "radius": Int(1, 3)}
