"""StructPool layer: pool the nodes of a graph into clusters by a conditional random field."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from molgraph.base.parts import make_part
from molgraph.nn import norms  # noqa: F401 - registers the norms
from molgraph.nn.relation import Relation
from molgraph.nn.row_graph import MeanConv, RowGraph, SumConv
from molgraph.nn.segment import segment_sum

Message: TypeAlias = Callable[[Tensor], Tensor]  # float [n, k] to [n, k]
LEAST = 1e-4  # of a normaliser, beside the row's product with itself; below it there is rounding error alone


class StructPool(nn.Module):
    """Structured graph pooling by a conditional random field.

    Yuan & Ji 2020, "StructPool: Structured Graph Pooling via Conditional Random Fields", section 3.3 and algorithm 1:
    the energy of an assignment is ``sum_i psi_u(y_i) + sum_(i != j) psi_p(y_i, y_j) a_ij`` with ``a_ij = 1`` within
    ``l_hop`` bonds, ``psi_u`` the logits U of a graph convolution and ``psi_p = mu(y_i, y_j) W_ij``,
    ``W_ij = x_i . x_j / sum_(m != i) x_i . x_m``. Mean field begins with ``Q = softmax(U)`` and goes ``n_iter`` times
    ``Q <- softmax(U - W Q mu)``; then ``X' = Q^T X`` and ``A' = Q^T A Q``.

    Over all pairs ``sum_j W_ij Q_j`` is ``x_i^T (sum_j x_j Q_j^T)`` less its own term, so time and memory grow with
    the number of rows, not of pairs. Negative entries of x are cut in W, whose normaliser could cross 0 else; a row
    without others that it is like hears nothing. Logits are linear (the authors' tanh keeps clusters near-uniform), and
    a norm over the rows makes different rows prefer different clusters.

    Args:
        d_in: width of the rows.
        k: clusters of each graph.
        n_iter: steps of mean field; with 0 it is DiffPool's pooling of the logits.
        compat: mu, ``learned`` from the start ``-I``, or ``fixed`` at -I: rows that are alike agree.
        assign: ``soft`` gives Q; ``hard`` its most likely clusters (the paper's M, with ``A' > 0``), whose gradient is
            that of Q (straight-through).
        norm: a registered norm of the logits.
        released: as the authors' code has it: mean convolutions and logits within tanh, fixed compatibility, signed W.
    """

    def __init__(
        self,
        d_in: int,
        k: int,
        *,
        n_iter: int = 5,
        compat: Literal["learned", "fixed"] = "learned",
        assign: Literal["soft", "hard"] = "soft",
        norm: str = "batch",
        released: bool = False,
    ) -> None:
        super().__init__()
        if k < 1 or n_iter < 0:
            raise ValueError(f"k is {k}, n_iter {n_iter}: 1 or more clusters and 0 or more steps")
        self.k, self.n_iter, self.assign, self.released = k, n_iter, assign, released
        widths = (d_in, 48, 48, k) if released else (d_in, k)
        conv = MeanConv if released else SumConv
        self.unary = nn.ModuleList(conv(a, b) for a, b in pairwise(widths))
        self.norm = make_part("norm", "none" if released else norm, k)
        start = -torch.eye(k)
        if compat == "fixed" or released or not n_iter:
            self.register_buffer("compat", start, persistent=False)
        else:
            self.compat = nn.Parameter(start)

    def forward(self, graph: RowGraph, unary: Float[Tensor, "n k"] | None = None) -> RowGraph:
        """Pool each graph into k clusters.

        Args:
            graph: rows with their adjacency; ``near`` limits the pairs.
            unary: float [n, k], logits in the place of the convolution's.
        """
        with torch.autocast(graph.h.device.type, enabled=False):  # sums over whole graphs
            h = graph.h.to(torch.promote_types(graph.h.dtype, torch.float32))
            q = self.assignment(h, graph, self.logits(h, graph) if unary is None else unary)
            m = q
            if self.assign == "hard":
                m = torch.zeros_like(q).scatter(1, q.argmax(1, keepdim=True), 1.0) + (q - q.detach())
            x, adjacency = graph.groups.outer(m, h), graph.groups.outer(m, graph.neighbour_sum(m))
            if self.assign == "hard":
                adjacency = (adjacency > 0.5).to(adjacency) + (adjacency - adjacency.detach())
        return graph.pooled(x, adjacency, m, graph.penalties)

    def logits(self, h: Float[Tensor, "n d"], graph: RowGraph) -> Float[Tensor, "n k"]:
        """U, the unary potentials: float [n, d] to [n, k]."""
        for conv in self.unary:
            h = conv(h, graph)
            h = h.tanh() if self.released else h
        return self.norm(h, graph.members)

    def assignment(self, h: Float[Tensor, "n d"], graph: RowGraph, u: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        """Q after ``n_iter`` steps of mean field: float [n, k]."""
        q = u.softmax(dim=1)
        if self.n_iter:
            x = h if self.released else h.relu()
            total, heard = normaliser(x, graph, not self.released)
            message = all_pairs_message(x, graph) if graph.near is None else near_message(x, graph.near)
            for _ in range(self.n_iter):
                q = (u - (message(q) / total).where(heard, 0.0) @ self.compat).softmax(dim=1)
        return q


def normaliser(
    x: Float[Tensor, "n d"], graph: RowGraph, guarded: bool
) -> tuple[Float[Tensor, "n 1"], Bool[Tensor, "n 1"]]:
    """``sum_(m != i) x_i . x_m`` over all rows of the same graph, float [n, 1], and which rows have one, bool [n, 1].

    Args:
        x: float [n, d]; without negative entries where guarded.
        graph: whose rows they are.
        guarded: whether a row whose sum is lost in rounding hears nothing; else only one whose sum is 0.
    """
    groups, self_term = graph.groups, x.square().sum(1, keepdim=True)
    both = groups.unpad([rows @ rows.sum(1, keepdim=True).mT for rows in groups.pad(x)], self_term)
    total, company = both - self_term, graph.members.offsets.diff().index_select(0, graph.members.target) > 1
    heard = company.unsqueeze(1) & (total > LEAST * both if guarded else total != 0)
    return total.where(heard, 1.0), heard


def all_pairs_message(x: Float[Tensor, "n d"], graph: RowGraph) -> Message:
    """``Q -> sum_(j != i) (x_i . x_j) Q_j`` over all rows of the same graph, by one sum for each graph."""
    groups, self_term = graph.groups, x.square().sum(1, keepdim=True)
    padded = groups.pad(x)

    def message(q: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        sums = [rows @ (rows.mT @ part) for rows, part in zip(padded, groups.pad(q), strict=True)]
        return groups.unpad(sums, q) - self_term * q

    return message


def near_message(x: Float[Tensor, "n d"], near: Relation) -> Message:
    """``Q -> sum_j a_ij (x_i . x_j) Q_j`` over the pairs of a relation of rows without itself (``relations.hops``)."""
    w = (x.index_select(0, near.source) * x.index_select(0, near.target)).sum(1, keepdim=True)
    return lambda q: segment_sum(w * q.index_select(0, near.source), near)
