"""BagNet for molecules: predict the sum of contributions of atoms, each of which depends on its surroundings alone."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import RoundsEncoder, SharedStates
from molgraph.nn.deduplicate import AtomRound
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.propagate import propagate


@register(
    "encoder",
    "additive",
    systems=(
        SystemCard(
            "bagnet",
            left_out="images; which classes share which patches (section 4.3)",
            off="-s params.head=perceptron(n_layers=2)",
            beside=("dmpnn", "Crippen's contributions"),
            command="molgraph train dataset:esol -m additive",
            modules=("molgraph.explain.contributions", "molgraph.explain.occlusion"),
        ),
    ),
    summary="sum of contributions of atoms, each from atoms within a radius: its explanation is exact",
    paper="Brendel and Bethge 2019, ICLR",
    line=("atoms", "bonds", "ReLU of the sum with the edge", "perceptron + skip", "sum, linear head", "supervised"),
)
class Additive(RoundsEncoder):
    """``y = b + sum_v w h_v``, where the state ``h_v`` of an atom depends on the atoms within ``radius`` bonds.

    Brendel and Bethge 2019, "Approximating CNNs with Bag-of-local-Features models works surprisingly well on ImageNet",
    section 2: features of patches, a linear classifier on each, and the average of its evidence. Here a patch is an
    atom with all within ``radius`` bonds: ``h_v += MLP([h_v, sum_{u in N(v)} ReLU(h_u + W e_uv)])``, ``radius`` times
    from ``h_v = ReLU(W x_v)``. No node sees the whole molecule, no norm runs over it, no attention weighs its atoms,
    and the usual head behind it has one linear layer, whatever ``head_layers`` is
    (``head=perceptron(n_layers=2)`` gives a hidden one, with which nothing is exact).

    Use it where each prediction has to be accounted for atom by atom: ``molgraph explain MODEL SMILES --by
    contributions``. It costs accuracy: on ESOL's new scaffolds an RMSE of 0.95, where ``dmpnn`` has 0.77 from the same
    graphs (60 epochs, one seed). Known limits: what depends on two groups more than ``2 radius`` bonds apart is not
    learned; only sums are identified, so a molecule's total may lie on its atoms in several ways (log P of 500
    molecules: a correlation of 0.65 with Crippen's contributions); aromaticity, membership of rings and handedness are
    features of an atom that RDKit perceives in the whole molecule.

    Args:
        spec: what the graphs hold.
        radius: bonds from which an atom hears, 0 or more; at 0 a contribution is that of the atom's own features.
        d_hidden: width of the states.
        dropout: probability of dropping a state's value while training.
        reduce: ``sum`` (of a hundredth of each, as in ``dmpnn``: contributions begin near 0, since what cancels in
            sums at the start is never unlearned), or ``mean`` as in the paper for what does not grow with the molecule.
        distinct: compute rows that look alike once.
    """

    head_settings = MappingProxyType({"n_layers": 1})
    small = MappingProxyType({"d_hidden": 8, "radius": 2})

    def __init__(
        self,
        spec: InputSpec,
        *,
        radius: Annotated[int, Range(0, INNER_LIMIT)] = 3,
        d_hidden: Width = 128,
        dropout: Probability = 0.0,
        reduce: Literal["sum", "mean"] = "sum",
        distinct: bool = True,
    ) -> None:
        super().__init__(radius, distinct, least=0)
        self.radius = radius
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        d_bond = spec.width("bond") if spec.has_edge_features else 0
        self.embed_edges = nn.ModuleList(nn.Linear(d_bond, d_hidden) for _ in range(radius if d_bond else 0))
        self.perceptrons = nn.ModuleList(Perceptron(2 * d_hidden, d_hidden, d_hidden) for _ in range(radius))
        self.dropout = nn.Dropout(dropout)
        self.read_by("norm" if reduce == "sum" else reduce, d_hidden)

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states after ``radius`` rounds."""
        steps = self.rounds_of(batch)
        h = self.embed(steps.atoms.rows()).relu()
        for t, step in enumerate(steps.rounds):
            h = self._layer(t, step, h)
        return SharedStates(h, steps.readout, steps.every_atom)

    def _layer(self, t: int, step: AtomRound, h: Float[Tensor, "rows d"]) -> Float[Tensor, "_ d"]:
        sent = step.senders(h)
        if len(self.embed_edges):
            sent = sent + step.per_sender(self.embed_edges[t](step.kinds))
        previous = step.previous(h)
        both = torch.cat([previous, propagate(sent.relu(), step.relation)], dim=1)
        return previous + self.dropout(self.perceptrons[t](both))
