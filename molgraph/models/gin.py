"""GIN: sums of neighbours through a perceptron, as discriminating as the Weisfeiler-Leman test."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.norms import make_norms
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.propagate import propagate


@register(
    "encoder",
    "gin",
    system="gin",
    summary="graph isomorphism network (with or without chemistry)",
    paper="Xu et al. 2019, ICLR; edges: Hu et al. 2020, ICLR",
    line=("atoms", "bonds", "sum, or ReLU of the sum with the edge", "perceptron", "sum of every layer", "supervised"),
)
class GIN(AtomEncoder):
    """Graph isomorphism network.

    Xu et al. 2019, "How Powerful are Graph Neural Networks?", equation 4.1:
    ``h_v = MLP((1 + eps) h_v + sum_{u in N(v)} h_u)``, ``depth`` times, and equation 4.2: the readouts of all layers
    side by side. With edge features the neighbour's term is ``ReLU(h_u + W e_uv)`` (Hu et al. 2020).

    Args:
        spec: what the graphs hold.
        d_hidden: width of all states.
        depth: number of layers, 1 or more.
        norm: a registered norm, after each perceptron (``batch`` in the paper).
        dropout: probability of dropping a state's value while training.
        readout: rows to graph, a registered readout, of the states of all layers side by side.
        edges: whether edge features are used, where there are any.

    Raises:
        ValueError: a depth below 1.
        UsageError: an unknown readout or norm.
    """

    small = MappingProxyType({"d_hidden": 8, "depth": 2})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 5,
        norm: str = "batch",
        dropout: Probability = 0.0,
        readout: str = "sum",
        edges: bool = True,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"depth must be 1 or more, got {depth}")
        self.edges = edges and spec.width("bond") > 1  # edges without features have one column of ones
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        self.eps = nn.Parameter(torch.zeros(depth))
        self.perceptrons = nn.ModuleList(Perceptron(d_hidden, d_hidden, d_hidden) for _ in range(depth))
        self.embed_edges = nn.ModuleList(
            nn.Linear(spec.width("bond"), d_hidden) for _ in range(depth if self.edges else 0)
        )
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.dropout = nn.Dropout(dropout)
        self.d_layers = (d_hidden,) * (depth + 1)
        self.read_by(readout, sum(self.d_layers))

    def states(self, batch: GraphBatch) -> Float[Tensor, "n_atoms d"]:
        """The atoms' states of all layers side by side."""
        bonds, members = relations.bonds(batch), relations.members(batch)
        h = self.embed(batch.features("atom"))
        layers = [h]
        for t, perceptron in enumerate(self.perceptrons):
            if self.edges:
                edges = self.embed_edges[t](batch.features("bond"))
                m = propagate(h, bonds, edge_rows=edges, message=_with_edge)
            else:
                m = propagate(h, bonds)
            h = perceptron((1 + self.eps[t]) * h + m)  # equation 4.1
            h = self.dropout(self.norms[t](h, members).relu())
            layers.append(h)
        return torch.cat(layers, dim=1)  # equation 4.2


def _with_edge(source: torch.Tensor, target: torch.Tensor | None, edge: torch.Tensor) -> torch.Tensor:
    return (source + edge).relu()
