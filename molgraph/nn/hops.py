"""Message-passing hops that compute atoms or bonds with identical neighbourhoods only once in a batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.packed import ranges
from molgraph.data.batch import GraphBatch, ordinary_tensors
from molgraph.data.color_refinement import distinct_rows, row_colors, sum_colors
from molgraph.nn.deduplicate import choice, link
from molgraph.nn.relation import Relation
from molgraph.nn.relations import arriving, bonds, next_bonds, once_a_batch
from molgraph.nn.segment import gather_sum


@dataclass(frozen=True)
class Level:
    """The rows that are computed after some hops, each of which stands for all rows that have its state."""

    color: np.ndarray  # [n], equal for rows with equal states
    first: Int[Tensor, " rows"]  # a row of the batch that each stands for
    every: Relation  # from them to all n rows, each of which is one of them
    start: Relation  # from the rows before the first hop to the one that each was
    heard: Relation | None  # from the rows one hop before, of which each hears the sum; None before the first hop


@dataclass(frozen=True)
class Hops:
    """Any number of hops ``h_t = f(x_t, sum over pairs (s, t) of h_s)``, where ``h = x`` before the first.

    Rows with equal x that hear equal rows stay equal, so each level is a finer partition of the rows than the one
    before (colour refinement, decision 0001), up to one that hops do not change.

    Args:
        relation: between n rows.
        color: uint64 [n], equal for rows with equal x; None computes each row for itself.

    Example:
        >>> path = Relation.from_pairs(torch.tensor([1, 0, 2, 1]), torch.tensor([0, 1, 1, 2]), 3, 3)
        >>> hops = Hops(path, row_colors(np.zeros(3)))
        >>> [len(hops.level(k).first) for k in range(3)]
        [1, 2, 2]
    """

    relation: Relation
    color: np.ndarray | None
    _levels: dict[int, Level] = field(default_factory=dict, repr=False, compare=False)

    def level(self, k: int) -> Level:
        """The rows after ``k`` hops, made at the first need."""
        if k not in self._levels:
            with ordinary_tensors():
                self._levels[k] = self._first() if k == 0 else self._next(self.level(k - 1))
        return self._levels[k]

    def _first(self) -> Level:
        color = np.arange(self.relation.n_target) if self.color is None else self.color
        row, first = distinct_rows(color)
        every, start = (self._choice(rows, len(first)) for rows in (row, np.arange(len(first))))
        return Level(color, self._put(first), every, start, None)

    def _next(self, before: Level) -> Level:
        start = self.level(0)
        source, offsets, row, start_row = (
            values.numpy(force=True)
            for values in (self.relation.source, self.relation.offsets, before.every.source, start.every.source)
        )
        color = before.color if self.color is None else sum_colors(start.color, before.color[source], offsets)
        every, first = distinct_rows(color)
        pairs, spans = ranges(offsets[first], offsets[first + 1])
        heard = link(self.relation.source.device, row[source[pairs]], spans, len(before.first))
        starts = self._choice(start_row[first], len(start.first))
        return Level(color, self._put(first), self._choice(every, len(first)), starts, heard)

    def _put(self, values: np.ndarray) -> Tensor:
        return torch.as_tensor(values, device=self.relation.source.device)

    def _choice(self, row: np.ndarray, n: int) -> Relation:
        return choice(self.relation.source.device, row, n)


@once_a_batch
def atom_hops(batch: GraphBatch, *, distinct: bool) -> Hops:
    """Between atoms along bonds; x are an atom's features and the sum of those of the bonds that arrive."""
    return Hops(bonds(batch), _atoms(batch) if distinct else None)


@once_a_batch
def bond_hops(batch: GraphBatch, *, distinct: bool) -> Hops:
    """Between directed bonds that follow each other, without U-turn; x are the features of a bond and its source."""
    return Hops(next_bonds(batch), _bonds(batch) if distinct else None)


def _atoms(batch: GraphBatch) -> np.ndarray:
    atom, bond = (row_colors(batch[level].code.numpy(force=True)) for level in ("atom", "bond"))
    return sum_colors(atom, bond, arriving(batch).offsets.numpy(force=True))


def _bonds(batch: GraphBatch) -> np.ndarray:
    atom, bond, source = (x.numpy(force=True) for x in (batch["atom"].code, batch["bond"].code, batch.source))
    return row_colors(atom[source] << 32 | bond)


def rows_along(x: Float[Tensor, "m s d"], relation: Relation) -> Float[Tensor, "m t d"]:
    """The sums along a relation of each of m sets of rows, none of which is copied.

    Example:
        >>> one = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 1]), 2, 2)
        >>> rows_along(torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]]), one).squeeze(2).tolist()
        [[0.0, 3.0], [0.0, 7.0]]
    """
    m = len(x)
    ends = _repeated(relation.source, relation.offsets, relation.n_source, m)
    back = None if relation.back is None else _repeated(*relation.back, relation.n_target, m)
    whole = Relation(*ends, m * relation.n_source, m * relation.n_target, back)
    return gather_sum(x.flatten(0, 1), whole).unflatten(0, (m, relation.n_target))


def _repeated(ends: Tensor, offsets: Tensor, n_ends: int, m: int) -> tuple[Tensor, Tensor]:
    step = torch.arange(m, device=ends.device).unsqueeze(1)
    return (ends + step * n_ends).flatten(), torch.cat([offsets[:1], (offsets[1:] + step * len(ends)).flatten()])
