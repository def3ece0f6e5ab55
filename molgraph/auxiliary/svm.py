"""Support vector machine on the Tanimoto kernel."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Self

import numpy as np

from molgraph.auxiliary.kernel_machine import fit_kernel_machine, values_of_decisions
from molgraph.auxiliary.tabular import StoredTarget, TabularMethod, TargetData, TargetModel, TargetPrediction
from molgraph.base.contracts import Target
from molgraph.base.ranges import LARGEST, Bits, NotNegative, Radius, Range
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Int, Space


@dataclass(frozen=True)
class SupportVectorSum(TargetModel):
    """A weighted sum of similarities to support vectors."""

    target: Target
    rows: np.ndarray  # int64 [m], the support vectors' rows of the index
    weight: np.ndarray  # float64 [m, k]
    height: np.ndarray  # float64 [k], the intercept
    sigmoid: np.ndarray  # float64 [2, k]: a decision f means the probability ``1 / (1 + exp(a f + b))``

    def predict(self, x: np.ndarray) -> TargetPrediction:
        f = x[:, self.rows].astype(np.float64) @ self.weight + self.height
        return TargetPrediction(values_of_decisions(self.target, f, self.sigmoid))

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        rows, k = stored.rows(), len(stored.target.columns)
        weight, height = stored.array("weight", len(rows), k), stored.array("height", k)
        return cls(stored.target, rows, weight, height, stored.array("sigmoid", 2, k))


@register(
    "method",
    "svm",
    tags=("fingerprints",),
    summary="support vectors on the Tanimoto kernel",
    paper="Cortes and Vapnik 1995, Mach. Learn. 20:273; Ralaivola et al. 2005, Neural Netw. 18:1093",
)
@dataclass(eq=False)
class SupportVectors(TabularMethod):
    """Support vector machine (Cortes and Vapnik 1995) with the Tanimoto kernel of Ralaivola et al. 2005.

    Numbers are standardised and fitted within ``epsilon``; several classes are each told from the rest. Probabilities
    are a sigmoid of the decision (Platt 1999), fitted to decisions on rows that the machine had not seen.

    Use it for classes of analogous series, where it costs a fraction of the forest's time. Known limits: it reads bits
    alone, and falls behind the forest where descriptors such as logP tell much; of many rows a draw is learned.

    Args:
        cost: what a row outside the margin costs (the paper's C).
        epsilon: half-width of the margin of numbers, in standard deviations.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        max_rows: the most training rows; of more, so many are drawn by the seed. Memory grows with their square.
        seed: of that draw and of the folds.
        threads: cores that make fingerprints; None for all.
        store: a folder that keeps fingerprints for all splits and methods; auto for molgraph's cache; None keeps none.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCCO", "CCN", "CCCN"], targets=(Target("y"),), y=[1, 1, 2, 2])
        >>> SupportVectors().fit(table).predict(table).value.round(1).ravel().tolist()
        [1.0, 1.0, 2.0, 2.0]
    """

    name = "svm"
    small = MappingProxyType({"n_bits": 256})
    target_model = SupportVectorSum
    compares = True

    cost: Annotated[float, Range(0, 1e6, above=True)] = 3.0
    epsilon: NotNegative = 0.1
    radius: Radius = 2
    n_bits: Bits = 2048
    max_rows: Annotated[int, Range(2, LARGEST)] = 8_000
    seed: int = 0
    threads: int | None = None
    store: str | None = None

    def fit_target(self, data: TargetData) -> SupportVectorSum:
        weight, height, sigmoid = fit_kernel_machine(
            data.kernel(), data.target, data.y, data.weights, cost=self.cost, epsilon=self.epsilon, seed=self.seed
        )
        used = (weight != 0).any(axis=1)
        used[:1] |= not used.any()
        return SupportVectorSum(data.target, data.rows[used], weight[used], height, sigmoid)

    def space(self) -> Space:
        """Cost, margin and radius."""
        return {"cost": Float(0.1, 100.0, log=True), "epsilon": Float(0.01, 0.5, log=True), "radius": Int(1, 3)}
