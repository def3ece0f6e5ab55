"""The nearest neighbours: a molecule's most similar training molecules vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from molgraph.auxiliary import parts
from molgraph.auxiliary.features import Features
from molgraph.auxiliary.parts import Fitted, Lesson, Said
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.errors import UsageError
from molgraph.base.registry import register
from molgraph.base.size import Shapes, Size
from molgraph.base.space import Categorical, Int, Space
from molgraph.data.table import Table


@dataclass(frozen=True)
class _Neighbours:
    """Which rows of the reference have the target, what they say, and what they weigh."""

    rows: np.ndarray
    says: np.ndarray  # float64 [m, columns]: a value, or 0 and 1 for each class
    weights: np.ndarray
    k: int
    power: float

    def predict(self, x: np.ndarray) -> Said:
        """Mean over the k most similar rows, and over all that are as similar as the k-th: no order decides."""
        like = x[:, self.rows]
        k = min(self.k, like.shape[1])
        kth = -np.partition(-like, k - 1, axis=1)[:, k - 1 : k]
        near = np.where(like >= kth, self.weights, 0.0)
        votes = near * like.astype(np.float64) ** self.power
        votes = np.where(votes.sum(axis=1, keepdims=True) > 0, votes, near)  # nothing in common with anything
        return (votes @ self.says) / votes.sum(axis=1, keepdims=True), None

    def arrays(self) -> dict[str, np.ndarray]:
        settings = np.array([float(self.k), self.power])
        return {"rows": self.rows, "says": self.says, "weights": self.weights, "settings": settings}


@register(
    "method",
    "knn",
    summary="the most similar training molecules (Tanimoto on Morgan bits) vote",
    paper="Cover and Hart 1967, IEEE Trans. Inf. Theory 13:21; Willett et al. 1998, J. Chem. Inf. Comput. Sci. 38:983",
)
class NearestNeighbours(Method):
    """The k nearest neighbours of a molecule (Cover and Hart 1967) by the Tanimoto similarity of Morgan bits.

    Values are the neighbours' mean, weighted by ``similarity ** power`` and the rows' weights; classes are their
    shares. All that are as near as the k-th count. A floor: what it knows, any chemist sees.

    Args:
        k: neighbours.
        power: how much more the more similar count; 0 for all alike.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        threads: cores that make fingerprints; None for all.
        store: a folder that keeps fingerprints, so that they are made once for all splits and methods; auto for one in
            molgraph's cache; None keeps none.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCCO", "c1ccccc1", "C(C"], targets=(Target("y"),), y=[1, 1, 5, 9])
        >>> NearestNeighbours(k=1).fit(table).predict(make_table(["CCCCO", "Cc1ccccc1"])).value.ravel().tolist()
        [1.0, 5.0]
    """

    name = "knn"

    def __init__(
        self,
        k: int = 5,
        power: float = 3.0,
        radius: int = 2,
        n_bits: int = 2048,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        self.k, self.power, self.radius, self.n_bits, self.threads, self.store = (
            k,
            power,
            radius,
            n_bits,
            threads,
            store,
        )

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Remember the rows of ``table``; ``valid`` and ``workdir`` are not used."""
        if not isinstance(self.k, (int, np.integer)) or isinstance(self.k, bool) or self.k < 1:
            raise UsageError(f"k is {self.k!r}, expected a whole number from 1")
        features = Features("morgan", self.radius, self.n_bits)
        self._fitted = parts.learn(self, table, features, self._grow, compare=True)
        return self

    def predict(self, table: Table) -> Prediction:
        """Values, P(class 1), or one probability a class."""
        return parts.predict(self, table)

    def state(self) -> State:
        """The fingerprints and labels."""
        return parts.state(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; raises ``ModelFileError`` where the state is not whole."""
        return parts.restore(cls, state, _load, compare=True)

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the stored state needs to predict."""
        return parts.size_of(meta, shapes, _size)

    def space(self) -> Space:
        """Neighbours, and how much nearness counts."""
        return {"k": Int(1, 30, log=True), "power": Categorical((0.0, 1.0, 3.0, 6.0)), "radius": Int(1, 3)}

    def _grow(self, lesson: Lesson) -> _Neighbours:
        n = parts.classes_of(lesson.target)
        says = lesson.y[:, None] if not n else (lesson.y[:, None] == np.arange(n)).astype(np.float64)
        says = says if not n else parts.shares(lesson.target, says)
        weights = np.ones(len(says)) if lesson.weights is None else lesson.weights
        return _Neighbours(lesson.rows, says, weights, int(self.k), float(self.power))


def _size(shapes: Shapes, width: int) -> Size:
    return Size(row_operations=10 * shapes["rows"][0])


def _load(arrays: Mapping[str, np.ndarray], target: Target, base: Fitted) -> _Neighbours:
    rows = parts.rows_of(arrays, base)
    k, power = parts.array(arrays, "settings", 2).tolist()
    weights = parts.array(arrays, "weights", len(rows))
    if not (k >= 1 and power >= 0 and (weights > 0).all()):
        raise ValueError("the settings or weights of neighbours that cannot be")
    return _Neighbours(rows, parts.array(arrays, "says", len(rows), len(target.columns)), weights, int(k), power)
