"""A relation between two sets of rows: who speaks to whom, sorted by the one who listens."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from molgraph.nn.pairs import check_pairs, repeat_rows, sort_pairs


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
    def from_pairs(cls, source: Int[Tensor, " p"], target: Int[Tensor, " p"], n_source: int, n_target: int) -> Relation:
        """Build from pairs in any order; a row outside its set is an ``IndexError`` that names the pair.

        Example:
            >>> import torch
            >>> r = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 0]), 2, 2)
            >>> r.source.tolist(), r.offsets.tolist(), r.target.tolist()
            ([1, 0], [0, 1, 2], [0, 1])
        """
        check_pairs(source, target, n_source, n_target)
        return cls(*sort_pairs(target, source, n_target), n_source, n_target)

    @property
    def target(self) -> Int[Tensor, " p"]:
        """int64 [p], row of the target set, ascending."""
        return repeat_rows(self.offsets, self.source.shape[0])

    @property
    def transpose(self) -> Relation:
        """The same pairs with source and target exchanged; sorted at the first need."""
        if (back := self.back) is None:
            object.__setattr__(self, "back", back := sort_pairs(self.source, self.target, self.n_source))
        return Relation(*back, self.n_target, self.n_source, (self.source, self.offsets))
