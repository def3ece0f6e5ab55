"""Messages: from a sender's state and the features of a pair to the message along that pair."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.perceptron import Perceptron


class EdgeNetwork(nn.Module):
    """A matrix for each kind of edge, made by a perceptron from the edge's features.

    Gilmer et al. 2017, section 5, "Edge Network": ``M(h_v, h_w, e_vw) = A(e_vw) h_w``, A a perceptron with a
    d x d matrix as its output (row vectors are multiplied from the left, as in PyG's ``NNConv``).

    Args:
        d_edge: width of the edge features.
        d: width of the rows.
        d_hidden: width of the perceptron's hidden layer.
    """

    def __init__(self, d_edge: int, d: int, d_hidden: int = 128) -> None:
        super().__init__()
        self.d, self.network = d, Perceptron(d_edge, d_hidden, d * d)

    def matrices(self, edge_rows: Float[Tensor, "k d_edge"]) -> Float[Tensor, "k {self.d} {self.d}"]:
        """float [k, d_edge] to [k, d, d]."""
        return self.network(edge_rows).view(-1, self.d, self.d)

    def forward(
        self,
        source_rows: Float[Tensor, "p d"],
        target_rows: Float[Tensor, " *any"] | None,
        edge_rows: Float[Tensor, "p d_edge"],
    ) -> Float[Tensor, "p d"]:
        """One matrix a pair, as ``propagate`` calls it: float [p, d] and [p, d_edge] to [p, d]."""
        return torch.einsum("pi,pij->pj", source_rows, self.matrices(edge_rows))

    def by_kind(
        self, rows: Float[Tensor, "q d"], kinds: Float[Tensor, "k d_edge"], sizes: Sequence[int]
    ) -> Float[Tensor, "q d"]:
        """The same where few kinds of edge occur: one product a kind instead of one matrix a pair.

        Args:
            rows: float [q, d], sorted by kind.
            kinds: float [k, d_edge], the kinds' features.
            sizes: k ints, the number of rows of each kind.

        Returns:
            float [q, d].
        """
        if not sizes:
            return rows
        parts = zip(rows.split(list(sizes)), self.matrices(kinds), strict=True)
        return torch.cat([F.linear(part, matrix.t()) for part, matrix in parts])
