"""Saccader for molecules: predict from a few atoms' surroundings that a policy picks, and from nothing else."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.hard_attention import Look, ranks
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.propagate import propagate
from molgraph.nn.segment import softmax_by_graph


@register(
    "encoder",
    "hard_subgraphs",
    systems=(
        SystemCard(
            "saccader",
            left_out="images; features of several layers; an average over several samples of a molecule",
            off="-s params.glimpses=0",
            beside=("random picks",),
            command="molgraph train dataset:tox21 -m hard_subgraphs --objective saccader",
            modules=("molgraph.train.objectives.saccader", "molgraph.explain.glimpses"),
        ),
    ),
    summary="a few surroundings of atoms that a policy picks; the prediction depends on them alone",
    paper="Elsayed et al. 2019, NeurIPS",
    line=("atoms", "bonds", "ReLU of the sum with the edge", "perceptron + skip", "mean of the picks, linear head",
          "supervised, saccader"),
)  # fmt: skip
class HardSubgraphs(Encoder):
    """``y = b + 1/T sum_t w h_(v_t)``, with the atoms ``v_1 ... v_T`` of the highest policy scores.

    Elsayed et al. 2019, "Saccader: Improving Accuracy of Hard Attention Models for Vision": a network of local
    features whose states ``h_v`` see ``radius`` bonds (``additive``), a policy that scores places from a wider context
    (``rounds`` more rounds and the molecule's mean), and ``glimpses`` picks, none twice. The head behind it has one
    linear layer, so that the answer is the mean of the picks' own. ``--objective saccader`` trains it in the paper's
    three stages; under ``supervised`` the policy has the gradient of soft attention in the place of the picks'
    (straight-through).

    Use it where a rationale has to be faithful by construction: ``molgraph explain MODEL SMILES --by glimpses``.
    Known limits: the answer depends on the picks alone, but the choice of the picks sees the whole molecule, and may
    tell of it; properties that are sums over a molecule, such as solubility, are not learned from two places.

    Args:
        spec: what the graphs hold.
        glimpses: atoms that are picked; 0 for all of them, without a policy's choice.
        radius: bonds from which an atom hears.
        d_hidden: width of the states.
        rounds: further rounds of the policy.
        dropout: probability of dropping a state's value while training.
    """

    head_settings = MappingProxyType({"n_layers": 1})
    small = MappingProxyType({"d_hidden": 8, "radius": 1, "rounds": 1, "glimpses": 16})

    def __init__(
        self,
        spec: InputSpec,
        *,
        glimpses: Annotated[int, Range(0, 64)] = 2,
        radius: Annotated[int, Range(0, INNER_LIMIT)] = 2,
        d_hidden: Width = 64,
        rounds: Annotated[int, Range(0, INNER_LIMIT)] = 2,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        self.glimpses, self.radius, self.d_out, self.d_rows = glimpses, radius, d_hidden, d_hidden
        self.embed, n = nn.Linear(spec.width("atom"), d_hidden), radius + rounds
        d_bond = spec.width("bond") if spec.has_edge_features else 0
        self.embed_edges = nn.ModuleList(nn.Linear(d_bond, d_hidden) for _ in range(n if d_bond else 0))
        self.perceptrons = nn.ModuleList(Perceptron(2 * d_hidden, d_hidden, d_hidden) for _ in range(n))
        self.policy = Perceptron(2 * d_hidden, d_hidden, 1)
        self.dropout = nn.Dropout(dropout)

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations along bonds and from atoms to graphs ahead."""
        _ = relations.bonds(batch).transpose, relations.members(batch)

    def look(self, batch: GraphBatch) -> Look:
        """The states of the atoms, and the policy's scores, which send no gradient into the states."""
        h = self.embed(batch.features("atom")).relu()
        for t in range(self.radius):
            h = self._round(t, batch, h)
        wide, members = h.detach(), relations.members(batch)
        for t in range(self.radius, len(self.perceptrons)):
            wide = self._round(t, batch, wide)
        graph_of = batch.graph_of("atom")
        whole = propagate(wide, members, reduce="mean").index_select(0, graph_of)
        return Look(h, self.policy(torch.cat([wide, whole], dim=1))[:, 0], graph_of)

    def _round(self, t: int, batch: GraphBatch, h: Float[Tensor, "atoms d"]) -> Float[Tensor, "atoms d"]:
        bonds = relations.bonds(batch)
        e = self.embed_edges[t](batch.features("bond")) if len(self.embed_edges) else None
        sent = propagate(h, bonds, edge_rows=e, message=_sent)
        return h + self.dropout(self.perceptrons[t](torch.cat([h, sent], dim=1)))

    def picked(self, scores: Float[Tensor, " atoms"], graph_of: Int[Tensor, " atoms"]) -> Bool[Tensor, " atoms"]:
        """Which atoms have the highest scores of their molecule; all where ``glimpses`` is 0."""
        return ranks(scores, graph_of) < self.glimpses if self.glimpses else torch.ones_like(graph_of, dtype=torch.bool)

    def mean_of(
        self, h: Float[Tensor, "atoms d"], share: Float[Tensor, " atoms"], batch: GraphBatch
    ) -> Float[Tensor, "graphs d"]:
        """The mean of atoms' states, each by its share."""
        members = relations.members(batch)
        total = propagate(torch.cat([h * share[:, None], share[:, None]], dim=1), members)
        return total[:, :-1] / total[:, -1:].clamp(min=1.0)

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch by its picks."""
        look = self.look(batch)
        share = self.picked(look.scores.detach(), look.graph_of).to(look.h.dtype)
        if self.glimpses:  # the value of the picks, the gradient of soft attention
            soft = self.glimpses * softmax_by_graph(look.scores, look.graph_of, batch.n_graphs)
            share = share + (soft - soft.detach())
        states = (Rows("atom", look.h, look.graph_of),) if rows else ()
        return Encoded(self.mean_of(look.h, share, batch), states)


def _sent(source: Tensor, target: Tensor | None, edge: Tensor | None) -> Tensor:
    return (source if edge is None else source + edge).relu()
