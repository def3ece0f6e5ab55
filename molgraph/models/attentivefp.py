"""AttentiveFP: graph attention over neighbours, then attention over the atoms of a molecule."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from torch import nn
from torch.nn import functional as F

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import RoundsEncoder, SharedStates
from molgraph.nn.attention import AdditiveAttention, weigh
from molgraph.nn.norms import make_norms


@register(
    "encoder",
    "attentivefp",
    system="attentivefp",
    summary="attention over neighbours, then over atoms; gated updates",
    paper="Xiong et al. 2020, J. Med. Chem. 63:8749",
    line=("atoms", "bonds", "additive attention", "GRU", "attentive", "supervised"),
)
class AttentiveFP(RoundsEncoder):
    """Attentive fingerprints.

    Xiong et al. 2020, "Pushing the Boundaries of Molecular Representation for Drug Discovery with the Graph Attention
    Mechanism": ``h_v <- ReLU(GRU(C_v, h_v))`` from ``h_v = leaky_relu(W x_v)``, with the context
    ``C_v = elu(sum_{u in N(v)} a_vu W h_u + b)``. In the first layer
    ``a_vu = softmax_u(leaky_relu(w . leaky_relu(W_n [h_u, e_uv]) + w' . h_v))`` reads the bond, later ones
    ``softmax_u(leaky_relu(w . W h_u + w' . W h_v))``, as PyG has it. The readout attends likewise, ``attentive``.

    Use it as the baseline of attention. Known limits: bonds are read by the scores of the first layer alone, as in PyG
    (the authors' code reads them in its values too); attention over two or three neighbours has little to choose from.

    Args:
        spec: what the graphs hold.
        d_hidden: width of all states.
        depth: layers, 1 or more.
        norm: a registered norm, of what each GRU gives; the paper has none.
        dropout: probability of dropping a context's value while training.
        readout: rows to graph, a registered readout.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: a depth below 1.
        UsageError: an unknown norm or readout.
    """

    small = MappingProxyType({"d_hidden": 8})
    counts_rows = True

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 128,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 2,
        norm: str = "none",
        dropout: Probability = 0.0,
        readout: str = "attentive",
        distinct: bool = True,
    ) -> None:
        super().__init__(depth, distinct)
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        self.neighbour = nn.Linear(d_hidden + spec.width("bond"), d_hidden, bias=False)
        self.of_source, self.of_target = (nn.Linear(d_hidden, 1, bias=False) for _ in range(2))
        self.value = nn.Linear(d_hidden, d_hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(d_hidden))
        self.attention = nn.ModuleList(AdditiveAttention(d_hidden, d_hidden) for _ in range(depth - 1))
        self.cells = nn.ModuleList(nn.GRUCell(d_hidden, d_hidden) for _ in range(depth))
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.dropout = nn.Dropout(dropout)
        self.d_layers = (d_hidden,) * depth
        self.read_by(readout, d_hidden)

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states after the last layer."""
        rounds = self.rounds_of(batch)
        h, layers = F.leaky_relu(self.embed(rounds.atoms.rows())), []
        for t, (step, cell, norm) in enumerate(zip(rounds.rounds, self.cells, self.norms, strict=True)):
            sent, previous = step.senders(h), step.previous(h)
            if t:
                context = self.attention[t - 1](sent, previous, step.relation)
            else:
                near = F.leaky_relu(self.neighbour(torch.cat([sent, step.bonds], dim=1)))
                score = self.of_source(near).index_select(0, step.relation.source)
                score = score + self.of_target(previous).index_select(0, step.relation.target)
                context = weigh(F.leaky_relu(score), self.value(sent), step.relation) + self.bias
            h = norm(cell(self.dropout(F.elu(context)), previous), step.members).relu()
            layers.append((h, step.members))
        return SharedStates(h, rounds.readout, rounds.every_atom, layers)
