"""PNA: aggregate neighbours by mean, minimum, maximum and standard deviation, scaled by degree."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.nn.atom_encoder import RoundsEncoder, SharedStates
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.segment import segment_max, segment_mean, segment_min, segment_std


@register(
    "encoder",
    "pna",
    system="pna",
    summary="neighbours aggregated in several ways: scaled by degree",
    paper="Corso et al. 2020, NeurIPS",
    line=("atoms", "bonds", "linear", "mean, min, max, std x degree scalers", "mean", "supervised"),
)
class PNA(RoundsEncoder):
    """Principal neighbourhood aggregation.

    Corso et al. 2020, "Principal Neighbourhood Aggregation for Graph Nets", equations 5 to 8: from ``h_v = W x_v``
    ``depth`` times
    ``h_v <- h_v + ReLU(norm(U [h_v, S(d_v) (x) [mean, min, max, std]_{u in N(v)} M(h_v, h_u, e_uv)]))`` with a linear
    ``M`` and the scalers ``S(d) = [1, log(d + 1) / delta, delta / log(d + 1)]``; two linear layers are ``U``.

    Use it where one kind of sum loses what counts, as in graphs of varied degree. Known limits: molecules have degrees
    of 1 to 4, so its scalers say little; it costs more a layer than the others. ``M`` of one linear layer splits into a
    part of the sender and one of the receiver, so nothing is multiplied pair by pair.

    Args:
        spec: what the graphs hold.
        d_hidden: width of an atom's state.
        depth: layers, 1 or more.
        delta: the mean of ``log(degree + 1)`` over the training atoms, which is computed where none is given.
        norm: a registered norm.
        dropout: probability of dropping a state's value while training.
        readout: rows to graph, a registered readout.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: a depth below 1.
        UsageError: an unknown norm or readout.
    """

    small = MappingProxyType({"d_hidden": 8})
    counts_rows = True
    delta: Float[Tensor, ""]

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 4,
        delta: Annotated[float, Range(0.1, 20)] | None = None,
        norm: str = "batch",
        dropout: Probability = 0.0,
        readout: str = "mean",
        distinct: bool = True,
    ) -> None:
        super().__init__(depth, distinct)
        self.given = delta
        self.register_buffer("delta", torch.tensor(1.1 if delta is None else delta))  # 1.1: of drug-like molecules
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        self.layers = nn.ModuleList(_Layer(d_hidden, spec.width("bond")) for _ in range(depth))
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.dropout = nn.Dropout(dropout)
        self.d_layers = (d_hidden,) * depth
        self.read_by(readout, d_hidden)

    def measure(self, store: GraphStore) -> None:
        """Compute delta, where none was given; graphs without a bond leave it."""
        atoms, bonds = store.levels["atom"].offsets, store.levels["bond"]
        first = np.repeat(atoms[:-1], np.diff(bonds.offsets))
        degree = np.bincount(first + bonds.arrays["target"], minlength=atoms[-1])
        if self.given is None and degree.any():
            self.delta.fill_(float(np.log1p(degree).mean()))

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states after the last layer."""
        rounds = self.rounds_of(batch)
        h, layers = self.embed(rounds.atoms.rows()), []
        for step, layer, norm in zip(rounds.rounds, self.layers, self.norms, strict=True):
            previous = step.previous(h)
            messages = layer(previous, step.senders(h), step.bonds, step.relation, self.delta)
            h = previous + self.dropout(norm(messages, step.members).relu())
            layers.append((h, step.members))
        return SharedStates(h, rounds.readout, rounds.every_atom, layers)


class _Layer(nn.Module):
    """``U [h_v, scaled aggregations of W_t h_v + W_s h_u + W_e e_uv + b]``."""

    def __init__(self, d: int, d_bond: int) -> None:
        super().__init__()
        self.of_target, self.of_source = nn.Linear(d, d), nn.Linear(d, d, bias=False)
        self.of_bond = nn.Linear(d_bond, d, bias=False)
        self.update = nn.Sequential(nn.Linear(13 * d, d), nn.Linear(d, d))

    def forward(
        self,
        own: Float[Tensor, "{relation.n_target} d"],
        sent: Float[Tensor, "{relation.n_source} d"],
        bonds: Float[Tensor, "{relation.n_source} d_bond"],
        relation: Relation,
        delta: Float[Tensor, ""],
    ) -> Float[Tensor, "{relation.n_target} d"]:
        """float [n, d] of the targets, [q, d] and [q, d_bond] of the senders, to [n, d]."""
        degree = relation.offsets.diff().unsqueeze(1)
        aggregates = propagate(self.of_source(sent) + self.of_bond(bonds), relation, reduce=_aggregations)
        mean, least, largest, spread = aggregates.chunk(4, dim=1)
        base = self.of_target(own) * (degree > 0)  # of a row without neighbours everything is zero
        scaled = [mean + base, least + base, largest + base, spread]
        amplify = (degree.clamp(min=1) + 1).to(own.dtype).log() / delta
        every = torch.cat([own, *scaled, *(x * amplify for x in scaled), *(x / amplify for x in scaled)], dim=1)
        return self.update(every)


def _aggregations(pairs: Tensor, relation: Relation) -> Tensor:
    """Mean, minimum, maximum and standard deviation side by side."""
    reductions = (segment_mean, segment_min, segment_max, segment_std)
    return torch.cat([reduce(pairs, relation) for reduce in reductions], dim=1)
