"""Refuse graphs whose matrix of node pairs would need more memory than a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
from jaxtyping import Int
from torch import Tensor

from molgraph.base.errors import UnsupportedError, UsageError
from molgraph.base.ranges import Range
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graph_store import GraphStore
from molgraph.nn import relations

BYTES = 4  # of a number in single precision
HIGHEST = 1000.0  # GB
MatrixGB: TypeAlias = Annotated[float, Range(0.001, HIGHEST)]


@dataclass(frozen=True)
class MatrixLimit:
    """The largest matrix with a row for each ordered pair of nodes that a model forms of one graph.

    Args:
        model: its name.
        width: numbers that it forms for each pair.
        gb: the limit, ``max_matrix_gb`` of the model, in GB of single precision.
        has: why there is such a matrix, as in ``walks between all pairs of nodes``.
        otherwise: a way out beside a higher limit.
        distance: pairs up to so many edges apart are formed; None for all pairs.

    Example:
        >>> MatrixLimit("weave", 64, 0.25, "has pairs", "lower max_distance").most_rows
        976562
    """

    model: str
    width: int
    gb: float
    has: str
    otherwise: str
    distance: int | None = None

    @classmethod
    def near(cls, model: str, width: int, gb: float, distance: int, setting: str) -> MatrixLimit:
        """That of pairs of nodes up to ``distance`` edges apart, which the model calls ``setting``."""
        has = f"has a row for each pair of nodes up to {distance} edges apart"
        return cls(model, width, gb, has, f"lower {setting}", distance)

    @property
    def most_rows(self) -> int:
        """Rows of the largest matrix that may be formed."""
        return round(self.gb * 1e9) // (BYTES * self.width)

    def check(self, batch: GraphBatch) -> None:
        """Refuse a batch with a graph whose matrix would be larger than the limit.

        Raises:
            UnsupportedError: the graph's size, its matrix, the limit and the setting.
        """
        rows = self._rows(batch)
        worst = int(rows.argmax()) if len(rows) else -1
        if worst >= 0 and int(rows[worst]) > self.most_rows:
            raise self._refusal(int(batch["atom"].offsets.diff()[worst]), int(rows[worst]))

    def too_large(self, store: GraphStore) -> dict[int, UsageError]:
        """The graphs of a store that would be refused, by their numbers."""
        sizes, refusals = np.diff(store.levels["atom"].offsets).astype(np.int64), {}
        for graph in np.flatnonzero(sizes**2 > self.most_rows).tolist():
            try:
                self.check(collate(store, np.array([graph])))
            except UsageError as refusal:
                refusals[graph] = refusal
        return refusals

    def _rows(self, batch: GraphBatch) -> Int[Tensor, " g"]:
        if self.distance is None:
            return batch["atom"].offsets.diff().square()
        return relations.most_hops(batch, self.distance, self.most_rows)

    def _refusal(self, size: int, rows: int) -> UsageError:
        needed, whole = (math.ceil(n * self.width * BYTES / 1e6) / 1e3 for n in (rows, size**2))
        least = "" if self.distance is None else "at least "  # pairs are counted up to the limit alone
        value = f"to {needed:g} or more" if self.distance is None else f"above {needed:g} ({whole:g} is enough)"
        higher = f"set max_matrix_gb {value} (training holds several such matrices), or "
        return UnsupportedError(
            f"a graph of {size:,} nodes is too large for {self.model}, which {self.has}: "
            f"a matrix of {least}{needed:g} GB, and max_matrix_gb is {self.gb:g}",
            hint=higher * (needed <= HIGHEST) + self.otherwise,
        )
