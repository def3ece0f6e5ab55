"""Attention over the rows of each graph whose queries, keys and values are made by message passing (GTransformer)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.attention import attend_all
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.size_groups import SizeGroups

SPREAD, FARTHEST = 1.0, 3  # of the number of hops in training: standard deviation, and steps from its mean


class DynamicMessagePassing(nn.Module):
    """``h^k = ReLU(h^0 + W_i [sum_u h_u^(k-1), sum_u e_u])`` for several networks i at once, a random number of times.

    The dyMPN of Rong et al. 2020, equation 3, with the skip from the first state of the authors' code. In training the
    hops are drawn from a normal distribution around ``hops``, of standard deviation 1, within 3 of it and at least 1;
    in prediction there are ``hops``.

    Args:
        n: networks, each with weights of its own.
        d, d_edge: widths of a state, and of the features of pairs.
        hops: mean number of hops.
    """

    def __init__(self, n: int, d: int, d_edge: int, hops: int) -> None:
        super().__init__()
        self.n, self.hops = n, hops
        bound = (d + d_edge) ** -0.5
        self.weight = nn.Parameter(torch.empty(n, d, d).uniform_(-bound, bound))
        self.edges = nn.Linear(d_edge, n * d, bias=False) if d_edge else None

    def forward(
        self, h: Float[Tensor, "r d"], relation: Relation, edges: Float[Tensor, "r d_edge"] | None
    ) -> Float[Tensor, "{self.n} r d"]:
        """States after the last hop of each network; ``edges``: the sum of what stands at the pairs of each row."""
        first = h.unsqueeze(0).expand(self.n, *h.shape)
        if self.edges is not None and edges is not None:
            along = self.edges(edges).unflatten(1, (self.n, -1)).transpose(0, 1)
            first = first + along
        out = h.unsqueeze(0).expand(self.n, *h.shape)
        for _ in range(self._hops()):
            heard = propagate(out.transpose(0, 1).flatten(1), relation).unflatten(1, (self.n, -1)).transpose(0, 1)
            out = torch.baddbmm(first, heard.to(first.dtype), self.weight).relu()
        return out

    def _hops(self) -> int:
        if not self.training:
            return self.hops
        away = float(torch.randn(())) * SPREAD
        return max(self.hops + round(max(-FARTHEST, min(FARTHEST, away))), 1)


class GTransformer(nn.Module):
    """One block: ``x + W_o [head_1, ..., head_n]``, each head an attention over all rows of the graph.

    Rong et al. 2020, "Self-Supervised Graph Transformer on Large-Scale Molecular Data", section 4.1: every head has
    three message passing networks for its queries, keys and values, and
    ``Attention(Q, K, V) = softmax(Q K^T / sqrt(d)) V`` (equation 1) goes over the rows of one molecule. (The authors'
    code attends over the heads of each row alone; this is the paper.) The norm stands behind the heads, as there.

    Args:
        d, d_edge: widths of a state, and of the features of pairs.
        heads: of width ``d`` each.
        hops: of message passing.
        dropout: of what the heads give.
    """

    def __init__(self, d: int, d_edge: int, heads: int, hops: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.passing = DynamicMessagePassing(3 * heads, d, d_edge, hops)
        self.project = nn.Parameter(torch.empty(3, d, d).uniform_(-(d**-0.5), d**-0.5))
        self.w_o = nn.Linear(heads * d, d, bias=False)
        self.norm, self.dropout = nn.LayerNorm(d), nn.Dropout(dropout)

    def forward(
        self, h: Float[Tensor, "r d"], relation: Relation, edges: Float[Tensor, "r d_edge"] | None, groups: SizeGroups
    ) -> Float[Tensor, "r d"]:
        """float [r, d] to [r, d]."""
        made = self.passing(h, relation, edges).unflatten(0, (3, self.heads))
        q, k, v = (each.transpose(0, 1) for each in torch.einsum("thrd,tde->thre", made, self.project))
        out = attend_all(q, k, v, groups)
        return h + self.dropout(self.norm(self.w_o(out.flatten(1))))


class Aggregate(nn.Module):
    """``LayerNorm(W_2 ReLU(W_1 [sum of what arrives, x]))``: an output of a view, beside the features of its rows.

    Rong et al. 2020, figure 1: the one long-range residual goes from the features x to the last feed-forward layer.

    Args:
        d, d_features: widths of states and of features.
        dropout: of its hidden layer.
    """

    def __init__(self, d: int, d_features: int, dropout: float) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(d + d_features, 4 * d), nn.Linear(4 * d, d)
        self.norm, self.dropout = nn.LayerNorm(d), nn.Dropout(dropout)

    def forward(
        self, h: Float[Tensor, "s d"], relation: Relation, features: Float[Tensor, "r d_features"]
    ) -> Float[Tensor, "r d"]:
        """float [n_source, d] to [n_target, d]."""
        heard = propagate(h, relation).to(features.dtype)
        return self.norm(self.w_2(self.dropout(F.relu(self.w_1(torch.cat([heard, features], dim=1))))))
