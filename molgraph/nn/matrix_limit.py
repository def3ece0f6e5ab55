"""Refuse graphs whose matrix of node pairs would need more memory than a limit."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

from jaxtyping import Int
from torch import Tensor

from molgraph.base.errors import UsageError
from molgraph.base.ranges import Range
from molgraph.data.batch import GraphBatch
from molgraph.nn import relations

BYTES = 4  # of a number in single precision
HIGHEST = 1000.0  # GB
MatrixGB: TypeAlias = Annotated[float, Range(0.001, HIGHEST)]


def rows_within(max_matrix_gb: float, width: int) -> int:
    """How many rows of that width a matrix of ``max_matrix_gb`` has.

    Example:
        >>> rows_within(0.25, 64)
        976562
    """
    return round(max_matrix_gb * 1e9) // (BYTES * width)


def check_near(batch: GraphBatch, distance: int, width: int, max_matrix_gb: float, *, model: str, setting: str) -> None:
    """Refuse a batch with a graph in which too many pairs of nodes are up to ``distance`` edges apart.

    Args:
        batch: of molecules or other graphs.
        distance: of the farthest pairs, in edges.
        width: numbers that a model forms for each ordered pair.
        max_matrix_gb: as in ``check_matrices``.
        model: whose pairs they are.
        setting: the name of the distance.

    Raises:
        UsageError: as in ``check_matrices``.
    """
    pairs = relations.most_hops(batch, distance, rows_within(max_matrix_gb, width))
    has = f"has a row for each pair of nodes up to {distance} edges apart"
    check_matrices(
        pairs, batch["atom"].offsets.diff(), width, max_matrix_gb, model=model, has=has, otherwise=f"lower {setting}"
    )


def check_matrices(
    rows: Int[Tensor, " g"],
    sizes: Int[Tensor, " g"],
    width: int,
    max_matrix_gb: float,
    *,
    model: str,
    has: str,
    otherwise: str,
) -> None:
    """Refuse the graphs of a batch if the matrix of one of them would be larger than the limit.

    Args:
        rows: of each graph's matrix.
        sizes: nodes of each graph.
        width: numbers in a row.
        max_matrix_gb: the largest matrix that may be formed, in GB of single precision.
        model: whose matrix it is.
        has: why there is one, as in ``attends to all pairs of nodes``.
        otherwise: a way out beside a higher limit.

    Raises:
        UsageError: the graph's size, its matrix, the limit and the setting.
    """
    worst = int(rows.argmax()) if len(rows) else -1
    if worst < 0 or int(rows[worst]) <= rows_within(max_matrix_gb, width):
        return
    needed = math.ceil(int(rows[worst]) * width * BYTES / 1e6) / 1e3
    higher = f"set max_matrix_gb to {needed:g} or more (training holds several such matrices), or "
    raise UsageError(
        f"a graph of {int(sizes[worst]):,} nodes is too large for {model}, which {has}: "
        f"a matrix of {needed:g} GB, and max_matrix_gb is {max_matrix_gb:g}",
        hint=higher * (needed <= HIGHEST) + otherwise,
    )
