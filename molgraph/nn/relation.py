"""A relation between two sets of rows: pairs of a source and a target, sorted by target."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Relation:
    """Pairs (source row, target row), sorted by target.

    Args:
        source, offsets: int64 [p], row of the source set; int64 [n_target + 1], CSR over targets.
        n_source, n_target: sizes of the two sets.
        back: the pairs sorted by source, as targets int64 [p] and offsets int64 [n_source + 1]; made when needed.
    """

    source: Int[Tensor, " p"]
    offsets: Int[Tensor, " {n_target}+1"]
    n_source: int
    n_target: int
    back: tuple[Int[Tensor, " p"], Int[Tensor, " {n_source}+1"]] | None = None

    @classmethod
    def from_pairs(cls, source: Int[Tensor, " p"], target: Int[Tensor, " q"], n_source: int, n_target: int) -> Relation:
        """Build from pairs in any order.

        Raises:
            IndexError: a row outside its set; the message holds the first such pair.
            ValueError: not one target for each source.

        Example:
            >>> r = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 0]), 2, 2)
            >>> r.source.tolist(), r.offsets.tolist(), r.target.tolist()
            ([1, 0], [0, 1, 2], [0, 1])
        """
        if source.ndim != 1 or source.shape != target.shape:
            raise ValueError(
                f"pairs are two vectors of row numbers of one length, got source {[*source.shape]} and target "
                f"{[*target.shape]}"
            )
        wrong = (source < 0) | (source >= n_source) | (target < 0) | (target >= n_target)
        if wrong.any():
            k = int(wrong.nonzero()[0])
            raise IndexError(
                f"pair {k} goes from row {int(source[k])} to row {int(target[k])}, "
                f"but there are {n_source} sources and {n_target} targets, numbered from 0"
            )
        return cls(*_sorted_pairs(target, source, n_target), n_source, n_target)

    @property
    def n_pairs(self) -> int:
        """p."""
        return self.source.shape[0]

    @property
    def target(self) -> Int[Tensor, " p"]:
        """int64 [p], row of the target set, ascending."""
        rows = torch.arange(self.n_target, device=self.offsets.device)
        return torch.repeat_interleave(rows, self.offsets.diff(), output_size=self.n_pairs)

    @property
    def transpose(self) -> Relation:
        """The same pairs with source and target exchanged; sorted at the first need."""
        if (back := self.back) is None:
            object.__setattr__(self, "back", back := _sorted_pairs(self.source, self.target, self.n_source))
        return Relation(*back, self.n_target, self.n_source, (self.source, self.offsets))


def _sorted_pairs(
    ends: Int[Tensor, " p"], others: Int[Tensor, " p"], n: int
) -> tuple[Int[Tensor, " p"], Int[Tensor, " {n}+1"]]:
    """Sort pairs by their one end, of a set of ``n``: the other ends, and offsets; equal ends keep their order."""
    counts = torch.bincount(ends, minlength=n)
    return others[torch.argsort(ends, stable=True)], row_offsets(counts)


def row_offsets(counts: Int[Tensor, " n"]) -> Int[Tensor, " n_1"]:
    """Offsets of consecutive groups of those sizes: int64 [n + 1], beginning with 0."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
