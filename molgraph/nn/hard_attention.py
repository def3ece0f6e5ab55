"""Pick rows of graphs by scores, none twice: the order, its probability, and what a model that picks atoms has."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from molgraph.data.batch import GraphBatch
from molgraph.nn.segment import logsumexp_by_graph


class Look(NamedTuple):
    """What the encoder has of a batch before atoms are picked.

    Args:
        h: float [atoms, d], the state of each atom, from the atoms within ``radius`` bonds.
        scores: float [atoms], the policy's logits.
        graph_of: int64 [atoms].
    """

    h: Float[Tensor, "atoms d"]
    scores: Float[Tensor, " atoms"]
    graph_of: Int[Tensor, " atoms"]


@runtime_checkable
class PicksAtoms(Protocol):
    """An encoder whose answer depends on the surroundings of a few atoms that it picks."""

    glimpses: int
    radius: int

    def look(self, batch: GraphBatch) -> Look:
        """The atoms' states, and the scores by which they are picked."""

    def picked(self, scores: Float[Tensor, " atoms"], graph_of: Int[Tensor, " atoms"]) -> Bool[Tensor, " atoms"]:
        """Which atoms are picked."""

    def mean_of(
        self, h: Float[Tensor, "atoms d"], share: Float[Tensor, " atoms"], batch: GraphBatch
    ) -> Float[Tensor, "graphs d"]:
        """The mean of atoms' states, each by its share."""


def ranks(scores: Float[Tensor, " rows"], graph_of: Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """The place of each row in its graph's order of falling scores, from 0.

    Example:
        >>> ranks(torch.tensor([0.1, 0.9, 0.5, 0.2]), torch.tensor([0, 0, 1, 1])).tolist()
        [1, 0, 0, 1]
    """
    order = scores.argsort(descending=True, stable=True)
    order = order[graph_of[order].argsort(stable=True)]
    counts = torch.bincount(graph_of, minlength=int(graph_of.max()) + 1 if len(graph_of) else 0)
    first = counts.cumsum(0) - counts
    place = torch.arange(len(order), device=scores.device) - first[graph_of[order]]
    return torch.empty_like(order).scatter(0, order, place)


def order_log_prob(look: Look, by: Float[Tensor, " atoms"], n: int, n_graphs: int) -> Float[Tensor, " graphs"]:
    """float [graphs]: ``sum_t log pi(v_t | v_1 ... v_(t-1))`` of the ``n`` atoms of the highest ``by``, in that order.

    Args:
        look: the policy's scores, float [atoms].
        by: float [atoms], which puts the atoms of each molecule in order.
        n: places that are visited.
        n_graphs: molecules.
    """
    place, total = ranks(by, look.graph_of), torch.zeros(n_graphs).to(look.scores)
    for t in range(n):
        here = place == t
        norm = logsumexp_by_graph(look.scores[place >= t], look.graph_of[place >= t], n_graphs)
        total = total.index_add(0, look.graph_of[here], look.scores[here] - norm[look.graph_of[here]])
    return total
