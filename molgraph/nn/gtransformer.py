"""Attention over the rows of each graph whose queries, keys and values are made by message passing (GTransformer)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.attention import attend_all
from molgraph.nn.hops import Hops, Level, rows_along
from molgraph.nn.removable import Axis, Units
from molgraph.nn.size_groups import SizeGroups

FARTHEST = 3  # standard deviations, of the number of hops in training


class DynamicMessagePassing(nn.Module):
    """``h^k = ReLU(h^0 + W_i [sum_u h_u^(k-1), sum_u e_u])`` for several networks i at once, a random number of times.

    The dyMPN of Rong et al. 2020, equation 3, with the skip from the first state of the authors' code. In training the
    hops are drawn from a normal distribution around ``hops``, within three standard deviations and at least 1; in
    prediction there are ``hops``.

    Args:
        n: networks, each with weights of its own.
        d, d_edge: widths of a state, and of the features of pairs.
        hops: mean number of hops.
        spread: their standard deviation in training.
    """

    def __init__(self, n: int, d: int, d_edge: int, hops: int, spread: float) -> None:
        super().__init__()
        self.n, self.hops, self.spread = n, hops, spread
        bound = (d + d_edge) ** -0.5
        self.weight = nn.Parameter(torch.empty(n, d, d).uniform_(-bound, bound))
        self.edges = nn.Linear(d_edge, n * d, bias=False) if d_edge else None

    def forward(
        self, h: Float[Tensor, "r d"], hops: Hops, edges: Float[Tensor, "r d_edge"] | None
    ) -> tuple[Float[Tensor, "{self.n} rows d"], Level]:
        """States after the last hop of each network, and the rows of ``h`` for which they stand.

        Args:
            h, hops: of n rows, and the hops between them.
            edges: the sum of what stands at the pairs of each row.
        """
        level = hops.level(0)
        first = h.index_select(0, level.first).unsqueeze(0)
        out = first.expand(self.n, -1, -1)
        if self.edges is not None and edges is not None:
            along = self.edges(edges.index_select(0, level.first))
            first = first + along.unflatten(1, (self.n, -1)).transpose(0, 1)
        for k in range(1, self._hops() + 1):
            level = hops.level(k)
            assert level.heard is not None
            sent = torch.bmm(out, self.weight)  # before the sum: fewer rows are sent than hear
            out = (rows_along(sent.to(first.dtype), level.heard) + rows_along(first, level.start)).relu_()
        return out, level

    def _hops(self) -> int:
        if not self.training:
            return self.hops
        away = max(-FARTHEST, min(FARTHEST, float(torch.randn(())))) * self.spread
        return max(self.hops + round(away), 1)


class GTransformer(nn.Module):
    """One block: ``W_o [head_1, ..., head_n]``; each head is an attention over all rows of the graph.

    Rong et al. 2020, "Self-Supervised Graph Transformer on Large-Scale Molecular Data", section 4.1: every head has
    three message passing networks for its queries, keys and values, and
    ``Attention(Q, K, V) = softmax(Q K^T / sqrt(d)) V`` (equation 1) goes over the rows of one molecule. (The authors'
    code attends over the heads of each row alone; this is the paper.)

    Args:
        d, d_edge: widths of a state, and of the features of pairs.
        heads: of width ``d`` each.
        hops, spread: of message passing.
        dropout: of what the heads give.
    """

    def __init__(self, d: int, d_edge: int, heads: int, hops: int, spread: float, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.passing = DynamicMessagePassing(3 * heads, d, d_edge, hops, spread)
        self.project = nn.Parameter(torch.empty(3, d, d).uniform_(-(d**-0.5), d**-0.5))
        self.w_o = nn.Linear(heads * d, d, bias=False)
        self.dropout = nn.Dropout(dropout)

    def units(self) -> Units:
        """Its heads."""
        d = self.w_o.out_features
        edges = () if self.passing.edges is None else (Axis("passing.edges.weight", 0, times=3, size=d),)
        return Units(self.heads, (Axis("passing.weight", 0, times=3), *edges, Axis("w_o.weight", 1, size=d)))

    def forward(
        self, h: Float[Tensor, "r d"], hops: Hops, edges: Float[Tensor, "r d_edge"] | None, groups: SizeGroups
    ) -> Float[Tensor, "r d"]:
        """States float [r, d] after the block, before its norm."""
        qkv, level = self.passing(h, hops, edges)
        qkv = torch.bmm(qkv.view(3, -1, qkv.shape[2]), self.project).unflatten(1, (self.heads, -1)).flatten(0, 1)
        q, k, v = rows_along(qkv, level.every).transpose(0, 1).chunk(3, dim=1)
        return self.dropout(self.w_o(attend_all(q, k, v, groups).flatten(1)))


class LongRange(nn.Module):
    """``LayerNorm(W_2 ReLU(W_1 [s, x]))``: an output of a view, from what arrives at a row and the row's features.

    Rong et al. 2020, figure 1: the one long-range residual goes from the features x to the last feed-forward layer.

    Args:
        d, d_features: widths of states and of features.
        dropout: of its hidden layer.
    """

    def __init__(self, d: int, d_features: int, dropout: float) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(d + d_features, 4 * d), nn.Linear(4 * d, d)
        self.norm, self.dropout = nn.LayerNorm(d), nn.Dropout(dropout)

    def forward(self, s: Float[Tensor, "r d"], x: Float[Tensor, "r d_features"]) -> Float[Tensor, "r d"]:
        """float [r, d] and [r, d_features] to [r, d]."""
        h: Float[Tensor, "r d"] = self.norm(self.w_2(self.dropout(F.relu(self.w_1(torch.cat([s, x], dim=1))))))
        return h
