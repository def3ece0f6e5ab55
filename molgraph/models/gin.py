"""GIN: sums of neighbours through a perceptron, as discriminating as the Weisfeiler-Leman test."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import RoundsEncoder, SharedStates
from molgraph.nn.deduplicate import AtomRound
from molgraph.nn.norms import make_norms
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.propagate import propagate
from molgraph.nn.removable import Axis, HiddenUnits, Units, vector_axes


@register(
    "encoder",
    "gin",
    system="gin",
    summary="graph isomorphism network (with or without chemistry)",
    paper="Xu et al. 2019, ICLR; edges: Hu et al. 2020, ICLR",
    line=("atoms", "bonds", "sum, or ReLU of the sum with the edge", "perceptron", "sum of every layer", "supervised"),
)
class GIN(RoundsEncoder):
    """Graph isomorphism network.

    Xu et al. 2019, "How Powerful are Graph Neural Networks?", equation 4.1:
    ``h_v = ReLU(norm(MLP((1 + eps) h_v + sum_{u in N(v)} h_u)))``, ``depth`` times from ``h = W x``, and equation 4.2:
    the readouts of all layers side by side, ``W x`` among them. With edge features the neighbour's term is
    ``ReLU(h_u + W e_uv)``, as in PyG's ``GINEConv`` (after Hu et al. 2020).

    Use it for graphs without chemistry, and as the encoder to pretrain: its rows hold every layer. Known limits: it
    tells no graphs apart that the Weisfeiler-Leman test does not; batch norm makes a prediction in training depend on
    the batch.

    Args:
        spec: what the graphs hold.
        d_hidden: width of all states.
        depth: number of layers, 1 or more.
        norm: a registered norm, after each perceptron (``batch`` in the paper).
        dropout: probability of dropping a state's value while training.
        readout: rows to graph, a registered readout, of the states of all layers side by side.
        edges: whether edge features are used, where there are any.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: a depth below 1.
        UsageError: an unknown readout or norm.
    """

    small = MappingProxyType({"d_hidden": 8, "depth": 2})
    counts_rows = True
    stacked = True

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
        distinct: bool = True,
    ) -> None:
        super().__init__(depth, distinct)
        self.edges = edges and spec.has_edge_features
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        self.eps = nn.Parameter(torch.zeros(depth))
        self.perceptrons = nn.ModuleList(Perceptron(d_hidden, d_hidden, d_hidden) for _ in range(depth))
        self.embed_edges = nn.ModuleList(
            nn.Linear(spec.width("bond"), d_hidden) for _ in range(depth if self.edges else 0)
        )
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.dropout = nn.Dropout(dropout)
        self.d_layers = (d_hidden,) * depth
        self.read_by(readout, (depth + 1) * d_hidden)

    def hidden_units(self) -> HiddenUnits:
        """Those of each layer's states, and those within its perceptron."""
        d = self.embed.out_features
        states, inner = [[Axis("embed.weight", 0), Axis("embed.bias", 0)]], list[list[Axis]]()
        for t, norm in enumerate(self.norms):
            first, second = (f"perceptrons.{t}.layers.{i}" for i in range(2))
            edges = [Axis(f"embed_edges.{t}.{name}", 0) for name in ("weight", "bias")] if self.edges else []
            states[-1] += [*edges, Axis(f"{first}.weight", 1)]
            inner.append([Axis(f"{first}.weight", 0), Axis(f"{first}.bias", 0), Axis(f"{second}.weight", 1)])
            norm_axes = vector_axes(norm, d, f"norms.{t}")
            states.append([Axis(f"{second}.weight", 0), Axis(f"{second}.bias", 0), *norm_axes])
        groups = tuple(Units(d, tuple(axes)) for axes in (*states, *inner))
        return HiddenUnits(groups, rows=tuple(range(len(states))))

    def prepare(self, batch: GraphBatch) -> None:
        """Make the rows of each round ahead, and what leads from them to the last."""
        _ = self.rounds_of(batch).to_last

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states of all layers side by side."""
        rounds = self.rounds_of(batch)
        h = self.embed(rounds.atoms.rows())
        steps, skips = rounds.rounds, [step.previous for step in rounds.rounds]
        layers = [h, *self.through([partial(self._layer, t, step) for t, step in enumerate(steps)], h, skips)]
        of_layers = [(layer, step.members) for layer, step in zip(layers[1:], rounds.rounds, strict=True)]
        return SharedStates(rounds.side_by_side(layers), rounds.readout, rounds.every_atom, of_layers)  # equation 4.2

    def _layer(self, t: int, step: AtomRound, h: Float[Tensor, "rows d"]) -> Float[Tensor, "_ d"]:
        sent = step.senders(h)
        if self.edges:
            sent = (sent + step.per_sender(self.embed_edges[t](step.kinds))).relu()
        m = propagate(sent, step.relation)
        h = self.perceptrons[t]((1 + self.eps[t]) * step.previous(h) + m)  # equation 4.1
        return self.dropout(self.norms[t](h, step.members).relu())
