"""One layer of GraphGPS: GINE messages along bonds, attention over all atoms, and a perceptron."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.data.batch import GraphBatch
from molgraph.nn import relations
from molgraph.nn.attention import attend_all
from molgraph.nn.hop_span import HopSpan, hop_distances
from molgraph.nn.norms import make_norms
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.propagate import propagate
from molgraph.nn.size_groups import size_groups


class GPSLayer(nn.Module):
    """One layer of GraphGPS: messages along bonds and attention over all atoms, equations 2 to 5 of the paper.

    Args:
        d, d_bond: widths of an atom's state and of a bond's features.
        heads: attention heads, and the width of each.
        norm: a registered norm.
        dropout: probability of dropping a value while training.
        adaptive: whether each head learns how many bonds away it looks.
    """

    def __init__(self, d: int, d_bond: int, heads: tuple[int, int], norm: str, dropout: float, adaptive: bool) -> None:
        super().__init__()
        self.heads, self.d_head = heads
        d_heads = self.heads * self.d_head
        self.eps, self.of_bond = nn.Parameter(torch.zeros(())), nn.Linear(d_bond, d)
        self.local, self.mlp = Perceptron(d, d, d), Perceptron(d, 2 * d, d, dropout=dropout)
        self.query_key_value, self.attended = nn.Linear(d, 3 * d_heads), nn.Linear(d_heads, d)
        self.span = HopSpan(self.heads) if adaptive else None
        self.norms = make_norms(norm, [d] * 3)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, h: Float[Tensor, "n d"], bonds: Float[Tensor, "e d_bond"], batch: GraphBatch
    ) -> Float[Tensor, "n d"]:
        """float [n, d] and [e, d_bond] to [n, d]."""
        members = relations.members(batch)
        m = propagate(h, relations.bonds(batch), edge_rows=self.of_bond(bonds), message=_gine)
        local = self.norms[0](h + self.dropout(self.local((1 + self.eps) * h + m)), members)
        bias = None if self.span is None else self.span(hop_distances(batch))
        q, k, v = (part.unflatten(1, (self.heads, -1)) for part in self.query_key_value(h).chunk(3, dim=1))
        far = self.attended(attend_all(q, k, v, size_groups(batch), bias).flatten(1))
        y = local + self.norms[1](h + self.dropout(far), members)
        return self.norms[2](y + self.dropout(self.mlp(y)), members)


def _gine(
    source: Float[Tensor, "e d"], target: Float[Tensor, "e d"] | None, bond: Float[Tensor, "e d"]
) -> Float[Tensor, "e d"]:
    return (source + bond).relu()
