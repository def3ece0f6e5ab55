"""MPNN: atoms speak along bonds through a matrix that each kind of bond has, and remember in a GRU."""

from __future__ import annotations

from torch import nn

from molgraph.base.registry import get, register
from molgraph.data.batch import GraphBatch
from molgraph.nn import readouts  # noqa: F401 - registers the readouts
from molgraph.nn.distinct import AtomLevels, atom_levels
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.messages import EdgeNetwork
from molgraph.nn.passing import propagate
from molgraph.nn.updates import GRU


@register(
    "encoder",
    "mpnn",
    summary="message passing between atoms: edge network, GRU, Set2Set",
    paper="Gilmer et al. 2017, ICML",
    line=("atoms", "bonds", "edge network", "GRU", "set2set", "supervised"),
)
class MPNN(Encoder):
    """Message passing neural network, the variant enn-s2s.

    Gilmer et al. 2017, "Neural Message Passing for Quantum Chemistry": ``h0_v = W x_v``, then ``rounds`` times
    ``m_v = sum_{w in N(v)} A(e_vw) h_w`` and ``h_v = GRU(h_v, m_v)`` with the same weights, and the readout
    ``Set2Set({h_v})``. Edges are the chemical bonds. ``h0`` is a linear layer where the paper pads with zeros.

    Args:
        d_atom, d_bond: widths of the atom and bond features.
        d_hidden: width of an atom's state.
        rounds: rounds of messages (the paper's T, 3 to 8).
        d_edge: width of the edge network's hidden layer.
        readout: rows to graph, a registered readout.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: fewer than 0 rounds.
        UsageError: an unknown readout.
    """

    repeats = ("rounds",)

    def __init__(
        self,
        d_atom: int,
        d_bond: int,
        *,
        d_hidden: int = 64,
        rounds: int = 3,
        d_edge: int = 128,
        readout: str = "set2set",
        distinct: bool = True,
    ) -> None:
        super().__init__()
        if rounds < 0:
            raise ValueError(f"rounds must be 0 or more, got {rounds}")
        self.rounds, self.distinct = rounds, distinct
        self.embed = nn.Linear(d_atom, d_hidden)
        self.message = EdgeNetwork(d_bond, d_hidden, d_edge)
        self.update = GRU(d_hidden, d_hidden)
        self.readout = get("readout", readout)(d_hidden)
        self.d_out = self.readout.d_out

    def prepare(self, batch: GraphBatch) -> None:
        """Find the distinct rows and their relations ahead."""
        self._levels(batch)

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch; with ``rows``, write out the atoms' states too."""
        levels = self._levels(batch)
        h = self.embed(batch.atom_table.index_select(0, levels.atom_code))
        for step in levels.rounds:
            kinds = batch.bond_table.index_select(0, step.kinds)
            sent = self.message.by_kind(h.index_select(0, step.sent), kinds, step.sizes)
            h = propagate(sent, step.relation, target_rows=h.index_select(0, step.same), update=self.update)
        graphs = self.readout(h, levels.readout)
        if not rows:
            return Encoded(graphs)
        return Encoded(graphs, (Rows("atom", h.index_select(0, levels.atom_row), batch.graph_of),))

    def _levels(self, batch: GraphBatch) -> AtomLevels:
        return atom_levels(batch, self.rounds, self.distinct)
