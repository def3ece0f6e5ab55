"""A relation between two sets of rows: who speaks to whom, sorted by the one who listens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Relation:
    """Pairs (source row, target row), sorted by target.

    Args:
        source: int64 [p], row of the source set.
        target: int64 [p], row of the target set, ascending.
        offsets: int64 [n_target + 1], CSR over targets.
        n_source, n_target: sizes of the two sets.
        transpose_source: int64 [p]: the *targets* of the pairs sorted by source, so that the transposed
            relation is (transpose_source, transpose_offsets).
        transpose_offsets: int64 [n_source + 1], CSR over sources.
    """

    source: Tensor
    target: Tensor
    offsets: Tensor
    n_source: int
    n_target: int
    transpose_source: Tensor
    transpose_offsets: Tensor

    @classmethod
    def from_pairs(cls, source: Tensor, target: Tensor, n_source: int, n_target: int) -> Relation:
        """Build from pairs in any order.

        Example:
            >>> r = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 0]), 2, 2)
            >>> r.source.tolist(), r.offsets.tolist()
            ([1, 0], [0, 1, 2])
        """
        order = torch.argsort(target, stable=True)
        source, target = source[order], target[order]
        back = torch.argsort(source, stable=True)
        return cls(
            source, target, _offsets(target, n_target), n_source, n_target, target[back], _offsets(source, n_source)
        )


def _offsets(index: Tensor, n: int) -> Tensor:
    counts = torch.bincount(index, minlength=n)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
