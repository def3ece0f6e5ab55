"""Neural fingerprints: a differentiable form of circular fingerprints (ECFP)."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import RoundsEncoder, SharedStates
from molgraph.nn.by_degree import LinearByDegree
from molgraph.nn.deduplicate import AtomRound, AtomRounds, atom_rounds
from molgraph.nn.norms import make_norms
from molgraph.nn.perceptron import make_activation
from molgraph.nn.propagate import propagate


@register(
    "encoder",
    "neural_fingerprint",
    systems=(SystemCard("neural-graph-fingerprints", off="linear", beside=("linear on Morgan fingerprints",)),),
    summary="a circular fingerprint that is learned",
    paper="Duvenaud et al. 2015, NeurIPS",
    line=("atoms", "bonds", "sum", "linear by degree", "softmax sum of every layer", "supervised"),
)
class NeuralFingerprint(RoundsEncoder):
    """A differentiable circular fingerprint.

    Duvenaud et al. 2015, "Convolutional Networks on Graphs for Learning Molecular Fingerprints", algorithm 2: in layer
    L = 1 ... ``depth`` of each atom a ``r_a <- act(H_L^deg(a) [r_a + sum_{i in N(a)} r_i, sum_{i in N(a)} e_ai])``, and
    ``f <- f + softmax(W_L r_a)``. The numbers of a molecule's fingerprint sum to its atoms times ``depth``; an atom's
    row is its own share of it.

    Use it where a learned fingerprint is wanted (``molgraph embed``), or its bits as fragments of molecules
    (``molgraph.explain_bit``); for accuracy alone begin with ``dmpnn``. With large random weights it behaves like ECFP.
    Known limits: sums lose which neighbour has which bond.

    Args:
        spec: what the graphs hold.
        length: width of the fingerprint.
        d_hidden: width of an atom's state.
        depth: layers, the radius of the fingerprint.
        activation: a name that ``molgraph.nn.perceptron`` knows; the paper's is a relu after batch norm.
        norm: a registered norm, before each activation (``batch`` in the paper).
        readout: rows to graph, a registered readout.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: a depth below 1, an unknown activation.
        UsageError: an unknown norm or readout.
    """

    small = MappingProxyType({"length": 16, "d_hidden": 8})
    counts_rows = True

    def __init__(
        self,
        spec: InputSpec,
        *,
        length: Width = 128,
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 4,
        activation: str = "relu",
        norm: str = "batch",
        readout: str = "sum",
        distinct: bool = True,
    ) -> None:
        super().__init__(depth, distinct)
        widths = [spec.width("atom")] + [d_hidden] * (depth - 1)
        self.hash = nn.ModuleList(LinearByDegree(d + spec.width("bond"), d_hidden) for d in widths)
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.index = nn.ModuleList(nn.Linear(d_hidden, length, bias=False) for _ in range(depth))
        self.activation = make_activation(activation)
        self.d_layers = (d_hidden,) * depth
        self.read_by(readout, length)

    def states(self, batch: GraphBatch) -> SharedStates:
        """Each atom's share of the fingerprint."""
        rounds, layers = self.rounds_of(batch), []
        r = rounds.atoms.rows()
        f = r.new_zeros(len(r), self.d_rows)
        for step, r, share in self.layers(rounds):
            f = step.previous(f) + share
            layers.append((r, step.members))
        return SharedStates(f, rounds.readout, rounds.every_atom, layers)

    def atom_bits(self, batch: GraphBatch) -> Float[Tensor, "n_atoms depth length"]:
        """What each atom adds to the fingerprint after each layer."""
        rounds = atom_rounds(batch, self.n_rounds, distinct=False)
        return torch.stack([share for _, _, share in self.layers(rounds)], dim=1)

    def layers(self, given: AtomRounds) -> Iterator[tuple[AtomRound, Float[Tensor, "_ _"], Float[Tensor, "_ _"]]]:
        """Each layer's round, its rows' states [rows, d_hidden] and what they add to the fingerprint [rows, length]."""
        r = given.atoms.rows()
        for step, hash_, norm, index in zip(given.rounds, self.hash, self.norms, self.index, strict=True):
            around = propagate(step.senders(r), step.relation)
            bonds = propagate(step.bonds, step.relation)
            v = torch.cat([step.previous(r) + around, bonds], dim=1)
            r = self.activation(norm(hash_(v, step.relation.offsets.diff()), step.members))
            yield step, r, index(r).softmax(dim=1)
