"""MPNN: messages between atoms through a matrix for each kind of bond, and a GRU as the update."""

from __future__ import annotations

from types import MappingProxyType

from torch import nn

from molgraph.base.ranges import Layers, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import AtomEncoder, SharedStates
from molgraph.nn.deduplicate import AtomRounds, atom_rounds
from molgraph.nn.messages import EdgeNetwork
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate
from molgraph.nn.updates import GRU


@register(
    "encoder",
    "mpnn",
    system="mpnn",
    summary="message passing between atoms: edge network, GRU, Set2Set",
    paper="Gilmer et al. 2017, ICML",
    line=("atoms", "bonds", "edge network", "GRU", "set2set", "supervised"),
)
class MPNN(AtomEncoder):
    """Message passing neural network, the variant enn-s2s.

    Gilmer et al. 2017, "Neural Message Passing for Quantum Chemistry": ``h0_v = W x_v``, then ``rounds`` times
    ``m_v = sum_{w in N(v)} A(e_vw) h_w`` and ``h_v = GRU(h_v, m_v)`` with the same weights, and the readout
    ``Set2Set({h_v})``. Edges are the chemical bonds. ``h0`` is a linear layer where the paper pads with zeros.

    Args:
        spec: what the graphs hold.
        d_hidden: width of an atom's state.
        rounds: rounds of messages (the paper's T, 3 to 8).
        d_edge: width of the edge network's hidden layer.
        norm: a registered norm, after each round; the paper has none.
        readout: rows to graph, a registered readout.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: fewer than 0 rounds.
        UsageError: an unknown norm or readout.
    """

    repeats = ("rounds",)
    small = MappingProxyType({"d_hidden": 8, "d_edge": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        rounds: Layers = 3,
        d_edge: Width = 128,
        norm: str = "none",
        readout: str = "set2set",
        distinct: bool = True,
    ) -> None:
        super().__init__()
        if rounds < 0:
            raise ValueError(f"rounds must be 0 or more, got {rounds}")
        self.rounds, self.distinct = rounds, distinct
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        self.message = EdgeNetwork(spec.width("bond"), d_hidden, d_edge)
        self.update = GRU(d_hidden, d_hidden)
        self.norms = make_norms(norm, [d_hidden] * rounds)
        self.read_by(readout, d_hidden)

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations ahead."""
        self._rounds(batch)

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states after the last round."""
        given = self._rounds(batch)
        h = self.embed(given.atoms.rows())
        for step, norm in zip(given.rounds, self.norms, strict=True):
            m = self.message.by_kind(step.senders(h), step.kinds, step.sizes)  # A(e_vw) h_w
            h = norm(propagate(m, step.relation, target_rows=step.previous(h), update=self.update), given.readout)
        return SharedStates(h, given.readout, given.every_atom)

    def _rounds(self, batch: GraphBatch) -> AtomRounds:
        return atom_rounds(batch, self.rounds, distinct=self.shares_rows)
