"""Predict a distribution over bins of the distance between each two atoms, from their states."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.chem.distance_geometry import DistanceBins
from molgraph.nn.atom_pairs import FAR, AtomPairs


class DistogramHead(nn.Module):
    """``logits_ij = W_2 ReLU(W_s h_i + W_s h_j + W_m (h_i * h_j) + e_n)``, with n the bonds between i and j.

    The distogram of Senior et al. 2020, Nature 577:706, for atoms: bins of the distance of each pair, from a
    representation of the pair. There it is made by a convolution over residue pairs and knows their separation in the
    sequence; here it is made of both atoms' states, in a form that is symmetric in i and j, and knows their separation
    in bonds.

    Args:
        d: width of an atom's state.
        bins: of the distances.
        d_pair: width of a pair's state.
    """

    def __init__(self, d: int, bins: DistanceBins, d_pair: int = 128) -> None:
        super().__init__()
        self.bins = bins
        self.ends = nn.Linear(d, d_pair)
        self.both = nn.Linear(d, d_pair, bias=False)
        self.apart = nn.Embedding(FAR + 1, d_pair)
        self.out = nn.Linear(d_pair, bins.n)

    def forward(self, h: Float[Tensor, "n d"], pairs: AtomPairs) -> Float[Tensor, "p n_bins"]:
        """Logits of the bins of each pair."""
        ends, both = self.ends(h), h.index_select(0, pairs.source) * h.index_select(0, pairs.target)
        z = ends.index_select(0, pairs.source) + ends.index_select(0, pairs.target) + self.both(both)
        z = z + self.apart(pairs.hops)
        return self.out(z.relu())

    def labels(self, positions: Float[Tensor, "n 3"], pairs: AtomPairs) -> Int[Tensor, " p"]:
        """The bin of each pair's distance; -1 where a position is not known."""
        a, b = positions.index_select(0, pairs.source), positions.index_select(0, pairs.target)
        distance = (a - b).norm(dim=1)
        place = ((distance - self.bins.first) / self.bins.width).floor().clamp(0, self.bins.n - 1)
        return torch.where(distance.isnan(), torch.full_like(place, -1.0), place).long()
