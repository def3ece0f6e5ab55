"""Joiners: the states of a row's entities (a drug and its target, a solute and its solvent) to one state a row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.base.registry import register
from molgraph.nn.attention import attend
from molgraph.nn.encoder import Encoded, Rows
from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.segment import segment_mean


@dataclass(frozen=True)
class JoinPart:
    """One entity column of a batch, encoded.

    Args:
        encoded: states of the distinct entities.
        of_row: int64 [n], the entity of each row; None: row i has entity i.
    """

    encoded: Encoded
    of_row: Int[Tensor, " n"] | None

    @property
    def states(self) -> Float[Tensor, "n d"]:
        """The entity's state for each row."""
        graphs = self.encoded.graphs
        return graphs if self.of_row is None else graphs.index_select(0, self.of_row)


class Joiner(nn.Module):
    """The base class of joiners: ``forward(parts) -> float [n, d_out]``.

    A subclass takes the widths of the parts' states and then its hyper-parameters, and sets ``d_out``.
    ``needs_rows``: whether it reads the states of atoms or tokens, which the encoders then write out.
    ``shared``: whether one encoder, with one set of weights, reads all columns.
    """

    d_out: int
    needs_rows: bool = False
    shared: bool = False

    @abstractmethod
    def forward(self, parts: Sequence[JoinPart]) -> Float[Tensor, "n {self.d_out}"]:
        """One state for each row of the batch."""


@register("joiner", "concat", summary="the states side by side")
class Concat(Joiner):
    """``[h_1, h_2, ...]``.

    Args:
        widths: of the parts' states.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.d_out = sum(widths)

    def forward(self, parts: Sequence[JoinPart]) -> Float[Tensor, "n {self.d_out}"]:
        """float [n, sum of the widths]."""
        return torch.cat([part.states for part in parts], dim=1)


@register(
    "joiner",
    "bilinear",
    summary="a low-rank bilinear form beside the states",
    paper="Kim et al. 2017, ICLR (low-rank bilinear pooling)",
)
class Bilinear(Joiner):
    """``[h_1, h_2, ..., tanh(U_1 h_1) * tanh(U_2 h_2) * ...]``, Kim et al. 2017, equation 6.

    Args:
        widths: of the parts' states.
        rank: width of the product.
    """

    def __init__(self, widths: Sequence[int], *, rank: int = 128) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(width, rank) for width in widths)
        self.d_out = sum(widths) + rank

    def forward(self, parts: Sequence[JoinPart]) -> Float[Tensor, "n {self.d_out}"]:
        """float [n, sum of the widths + rank]."""
        states = [part.states for part in parts]
        factors = [change(state).tanh() for change, state in zip(self.maps, states, strict=True)]
        return torch.cat([*states, torch.stack(factors).prod(0)], dim=1)


@register(
    "joiner",
    "cross_attention",
    summary="rows of each entity read the rows of the next one",
    paper="Vaswani et al. 2017, NeurIPS 30; Chen et al. 2020, Bioinformatics 36:4406 (TransformerCPI)",
)
class CrossAttention(Joiner):
    """Atoms or tokens of each entity attend to those of the next one; their mean stands beside the entity's state.

    Args:
        widths: of the parts' states; those of their rows are found at the first batch.
        d_hidden: width of queries, keys and values.
        heads: attention heads, which divide ``d_hidden``.

    Raises:
        ValueError: ``heads`` does not divide ``d_hidden``, or there are fewer than two parts.
    """

    needs_rows = True

    def __init__(self, widths: Sequence[int], *, row_widths: Sequence[int], d_hidden: int = 64, heads: int = 4) -> None:
        super().__init__()
        if d_hidden % heads or len(widths) < 2:
            raise ValueError(f"heads {heads} must divide d_hidden {d_hidden}, and there are {len(widths)} parts")
        self.heads = heads
        self.query = nn.ModuleList(nn.Linear(width, d_hidden) for width in row_widths)
        self.key_value = nn.ModuleList(nn.Linear(width, 2 * d_hidden) for width in row_widths)
        self.d_out = sum(widths) + len(widths) * d_hidden

    def forward(self, parts: Sequence[JoinPart]) -> Float[Tensor, "n {self.d_out}"]:
        """float [n, sum of the widths + parts * d_hidden]."""
        rows = [part.encoded.rows[0] for part in parts]
        queries = [make(side.h) for make, side in zip(self.query, rows, strict=True)]
        keys = [make(side.h) for make, side in zip(self.key_value, rows, strict=True)]
        n = parts[0].states.shape[0]
        read = []
        for i in range(len(parts)):
            j = (i + 1) % len(parts)
            mine, to_row = _rows_of(rows[i], parts[i], n)
            theirs, of_theirs = _rows_of(rows[j], parts[j], n)
            source, of_each = _groups(of_theirs, to_row, n)
            pairs = Relation(source, row_offsets(of_each), len(of_theirs), len(to_row))
            q = queries[i].index_select(0, mine).unflatten(1, (self.heads, -1))
            k, v = (t.unflatten(1, (self.heads, -1)) for t in keys[j].index_select(0, theirs).chunk(2, dim=1))
            heard = attend(q, k, v, pairs).flatten(1)
            counts = torch.bincount(to_row, minlength=n)
            index = torch.arange(len(to_row), device=to_row.device)
            read.append(segment_mean(heard, Relation(index, row_offsets(counts), len(to_row), n)))
        return torch.cat([*(part.states for part in parts), *read], dim=1)


def _rows_of(rows: Rows, part: JoinPart, n: int) -> tuple[Int[Tensor, " m"], Int[Tensor, " m"]]:
    """The rows of each table row's entity, one after the other, and the table row of each."""
    graph = torch.arange(n, device=rows.graph_of.device) if part.of_row is None else part.of_row
    numbers, counts = _groups(rows.graph_of, graph, part.encoded.graphs.shape[0])
    return numbers, torch.repeat_interleave(torch.arange(n, device=counts.device), counts)


def _groups(group: Int[Tensor, " s"], wanted: Int[Tensor, " t"], n: int) -> tuple[Int[Tensor, " m"], Int[Tensor, " t"]]:
    """The members of each group that is wanted, one after the other, and how many they are; of n groups, ascending."""
    counts = torch.bincount(group, minlength=n)
    first = (counts.cumsum(0) - counts).index_select(0, wanted)
    counts = counts.index_select(0, wanted)
    start = torch.repeat_interleave(first - (counts.cumsum(0) - counts), counts)
    return start + torch.arange(len(start), device=group.device), counts
