"""GraphConv: graph convolution with a linear layer for each number of neighbours, as in DeepChem and MoleculeNet."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import RoundsEncoder, SharedStates
from molgraph.nn.by_degree import LinearByDegree
from molgraph.nn.deduplicate import AtomRound
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate


@register(
    "encoder",
    "graphconv",
    system="graphconv",
    summary="graph convolution by degree: MoleculeNet's, with pooling over neighbours",
    paper="Altae-Tran et al. 2017, ACS Cent. Sci. 3:283; Wu et al. 2018, Chem. Sci. 9:513",
    line=("atoms", "bonds", "sum, then max", "linear by degree", "sum and max", "supervised"),
)
class GraphConv(RoundsEncoder):
    """Graph convolutions with a maximum over neighbours after each.

    Altae-Tran et al. 2017, "Low Data Drug Discovery with One-Shot Learning", figure 2, after Duvenaud et al. 2015, in
    DeepChem's form: ``h_v <- norm(ReLU(W^deg(v) [h_v, sum_{u in N(v)} h_u]))``,
    ``h_v <- max(h_v, max_{u in N(v)} h_u)``, then a dense layer and the sum and the maximum of the atoms.

    Use it as MoleculeNet's baseline. Known limits: bonds count by their number alone, their features are not read.

    Args:
        spec: what the graphs hold.
        d_hidden: width of an atom's state in each layer.
        depth: layers.
        d_dense: width of the dense layer.
        norm: a registered norm, after each layer.
        dropout: probability of dropping a state's value while training.
        readout: rows to graph, a registered readout.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: a depth below 1.
        UsageError: an unknown norm or readout.
    """

    small = MappingProxyType({"d_hidden": 8, "d_dense": 8})
    counts_rows = True

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 2,
        d_dense: Width = 128,
        norm: str = "batch",
        dropout: Probability = 0.0,
        readout: str = "sum_max",
        distinct: bool = True,
    ) -> None:
        super().__init__(depth, distinct, per_layer=2)
        widths = [spec.width("atom")] + [d_hidden] * (depth - 1)
        self.layers = nn.ModuleList(LinearByDegree(2 * d, d_hidden) for d in widths)
        self.dense = nn.Linear(d_hidden, d_dense)
        self.norms = make_norms(norm, [d_hidden] * depth + [d_dense])
        self.dropout = nn.Dropout(dropout)
        self.d_layers = (d_hidden,) * depth
        self.read_by(readout, d_dense)

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states after the dense layer."""
        rounds = self.rounds_of(batch)
        h, layers = rounds.atoms.rows(), []
        for t, layer in enumerate(self.layers):
            convolve, pool = rounds.rounds[2 * t : 2 * t + 2]
            around = propagate(convolve.senders(h), convolve.relation)
            h = layer(torch.cat([convolve.previous(h), around], dim=1), convolve.relation.offsets.diff()).relu()
            h = _pooled(self.dropout(self.norms[t](h, convolve.members)), pool)
            layers.append((h, pool.members))
        h = self.dropout(self.norms[-1](self.dense(h).relu(), rounds.readout))
        return SharedStates(h, rounds.readout, rounds.every_atom, layers)


def _pooled(h: Tensor, step: AtomRound) -> Tensor:
    """The maximum of each atom and its neighbours."""
    previous, around = step.previous(h), propagate(step.senders(h), step.relation, reduce="max")
    some = (step.relation.offsets.diff() > 0).unsqueeze(1)
    return torch.where(some, torch.maximum(previous, around), previous)
