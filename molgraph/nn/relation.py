"""A relation between two sets of rows: who speaks to whom, sorted by the one who listens."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Relation:
    """Pairs (source row, target row), sorted by target.

    Args:
        source: int64 [p], row of the source set.
        offsets: int64 [n_target + 1], CSR over targets.
        n_source, n_target: sizes of the two sets.
        back: the same pairs sorted by source, as (their targets int64 [p], offsets int64 [n_source + 1]):
            what a backward pass reads. Made at the first need; ``transpose`` makes it ahead.
    """

    source: Tensor
    offsets: Tensor
    n_source: int
    n_target: int
    back: tuple[Tensor, Tensor] | None = field(default=None, compare=False)

    @classmethod
    def from_pairs(cls, source: Tensor, target: Tensor, n_source: int, n_target: int) -> Relation:
        """Build from pairs in any order.

        Example:
            >>> r = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 0]), 2, 2)
            >>> r.source.tolist(), r.offsets.tolist(), r.target.tolist()
            ([1, 0], [0, 1, 2], [0, 1])
        """
        return cls(source[torch.argsort(target, stable=True)], _offsets(target, n_target), n_source, n_target)

    @property
    def target(self) -> Tensor:
        """int64 [p], row of the target set, ascending."""
        rows = torch.arange(self.n_target, device=self.source.device)
        return torch.repeat_interleave(rows, self.offsets.diff(), output_size=self.source.shape[0])

    @property
    def transpose(self) -> Relation:
        """The same pairs with source and target exchanged."""
        if self.back is None:
            back = self.target[torch.argsort(self.source, stable=True)], _offsets(self.source, self.n_source)
            object.__setattr__(self, "back", back)
        assert self.back is not None
        return Relation(*self.back, self.n_target, self.n_source, (self.source, self.offsets))


def _offsets(index: Tensor, n: int) -> Tensor:
    counts = torch.bincount(index, minlength=n)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
