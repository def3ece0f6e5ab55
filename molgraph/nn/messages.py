"""Messages: from a sender's state and the features of a pair to the message along that pair."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.deduplicate import AtomRound
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.propagate import propagate


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

    def by_kind(
        self, rows: Float[Tensor, "q d"], kinds: Float[Tensor, "k d_edge"], sizes: Sequence[int]
    ) -> Float[Tensor, "q d"]:
        """``A(e_vw) h_w`` of each row: one product for each kind of edge instead of one matrix for each pair.

        Args:
            rows: float [q, d], sorted by kind.
            kinds: float [k, d_edge], the kinds' features.
            sizes: k ints, the number of rows of each kind.

        Returns:
            float [q, d].
        """
        return _multiplied(rows, self.matrices(kinds), sizes)

    def sums(self, step: AtomRound, h: Float[Tensor, "before d"]) -> Float[Tensor, "after d"]:
        """``sum_{w in N(v)} A(e_vw) h_w`` of a round."""
        return propagate(self.by_kind(step.senders(h), step.kinds, step.sizes), step.relation)


class EdgeMatrix(nn.Module):
    """A learned matrix for each label of an edge.

    Li et al. 2016 (GG-NN), as in Gilmer et al. 2017, section 5, "Matrix Multiplication":
    ``M(h_v, h_w, e_vw) = A_(e_vw) h_w``. Features that are no one-hot label, as those of molecules' bonds (kind,
    conjugated, ring, stereo), weigh the matrices of their columns: ``A = sum_k e_k A_k``.

    Args:
        d_edge: width of the edge features.
        d: width of the rows.
    """

    def __init__(self, d_edge: int, d: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(d)
        self.weight = nn.Parameter(torch.empty(d_edge, d, d).uniform_(-bound, bound))

    def sums(self, step: AtomRound, h: Float[Tensor, "before d"]) -> Float[Tensor, "after d"]:
        """``sum_{w in N(v)} A_(e_vw) h_w`` of a round."""
        matrices = torch.einsum("ke,eij->kij", step.kinds, self.weight)
        return propagate(_multiplied(step.senders(h), matrices, step.sizes), step.relation)


class PairMessage(nn.Module):
    """A perceptron of both ends of an edge and its features.

    Battaglia et al. 2016, as in Gilmer et al. 2017, section 5: ``M(h_v, h_w, e_vw) = f(h_w, h_v, e_vw)``,
    here ``f(x) = W' ReLU(W x + b)``. Each part is multiplied where it has fewest rows, ``W'`` after the sum.

    Args:
        d_edge: width of the edge features.
        d: width of the rows.
        d_hidden: width of the hidden layer.
    """

    def __init__(self, d_edge: int, d: int, d_hidden: int = 128) -> None:
        super().__init__()
        self.widths = [d, d, d_edge]
        self.first, self.last = nn.Linear(2 * d + d_edge, d_hidden), nn.Linear(d_hidden, d, bias=False)

    def sums(self, step: AtomRound, h: Float[Tensor, "before d"]) -> Float[Tensor, "after d"]:
        """``sum_{w in N(v)} f(h_w, h_v, e_vw)`` of a round."""
        of_source, of_target, of_edge = self.first.weight.split(self.widths, dim=1)
        sent = F.linear(step.senders(h), of_source, self.first.bias) + F.linear(step.bonds, of_edge)
        heard = F.linear(step.previous(h), of_target)
        return self.last(propagate(sent, step.relation, target_rows=heard, message=_relu_of_sum))


def make_message(name: str, d_edge: int, d: int, d_hidden: int) -> EdgeNetwork | EdgeMatrix | PairMessage:
    """The message of that name: ``edge_network``, ``matrix`` or ``pair``.

    Raises:
        ValueError: an unknown name.
    """
    if name == "edge_network":
        return EdgeNetwork(d_edge, d, d_hidden)
    if name == "matrix":
        return EdgeMatrix(d_edge, d)
    if name == "pair":
        return PairMessage(d_edge, d, d_hidden)
    raise ValueError(f"no message is named {name!r}; known: edge_network, matrix, pair")


def _multiplied(
    rows: Float[Tensor, "q d"], matrices: Float[Tensor, "k d d"], sizes: Sequence[int]
) -> Float[Tensor, "q d"]:
    """Rows sorted by kind, each times the matrix of its kind, row vectors from the left."""
    if not sizes:
        return rows
    parts = zip(rows.split(list(sizes)), matrices, strict=True)
    return torch.cat([F.linear(part, matrix.t()) for part, matrix in parts])


def _relu_of_sum(source: Tensor, target: Tensor, edge: Tensor | None) -> Tensor:
    return (source + target).relu()
