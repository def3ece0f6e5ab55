"""RFM: a recurrent graph network with states of bonds, atoms and the whole molecule."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.parts import make_part
from molgraph.base.ranges import INNER_LIMIT, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.gn_block import GNBlock, GraphGRU, GraphState, Widths
from molgraph.nn.penalties import Penalties


@register(
    "encoder",
    "rfm",
    systems=(
        SystemCard(
            "rfm",
            left_out="series of time steps: a molecule is read for a number of rounds",
            off="gin",
            beside=("gin", "the model without training"),
            modules=("molgraph.nn.gn_block",),
        ),
    ),
    summary="graph network: bond, atom, molecule states",
    paper="Tacchetti et al. 2019, ICLR; Battaglia et al. 2018, arXiv:1806.01261",
    line=("bonds, atoms, graph", "bonds; members", "perceptron", "GRU", "state of the graph", "supervised"),
)
class RFM(Encoder):
    """Relational forward model: encoder block, recurrent core, decoder block.

    Tacchetti et al. 2019, "Relational Forward Models for Multi-Agent Learning", section 2, with the block of Battaglia
    et al. 2018, ``e' = phi_e(e, v_s, v_r, u)``, ``v' = phi_v(sum e', v, u)``, ``u' = phi_u(sum e', sum v', u)``:
    ``x = GN_encode(bonds, atoms, nothing)``, ``h = GraphGRU(x, h)`` from zeros, ``GN_decode(h)``. The paper's core
    steps over the frames of a game, and its decoder predicts each agent's action; a molecule is one static graph, so
    the core takes ``rounds`` steps on the same x, and the vector of the molecule is the decoder's u'.

    Use it where bonds or the whole molecule should have states of their own: the rows of the level ``bond`` are the
    decoder's e', beside the atoms' v'. Sums tell sizes apart, as an extensive property asks.

    Known limits: it takes several times as long as ``mpnn``: no rows are shared, and every directed bond has a GRU;
    large molecules give large sums. The paper reads the norm of an edge's state as its salience, which
    ``molgraph.draw_salience`` draws: a heuristic that depends on the block. How the paper's GraphGRU is wired inside is
    our reading.

    Args:
        spec: what the graphs hold.
        d_hidden: width of all states.
        rounds: steps of the core, 1 or more.
        norm: a registered norm, of the core's v before the decoder; the paper has none.
        readout: a registered readout of v' in the place of u'; None for u'.

    Raises:
        ValueError: fewer than 1 round.
        UsageError: an unknown norm or readout.
    """

    small = MappingProxyType({"d_hidden": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        rounds: Annotated[int, Range(1, INNER_LIMIT)] = 3,
        norm: str = "none",
        readout: str | None = None,
    ) -> None:
        super().__init__()
        if rounds < 1:
            raise ValueError(f"rounds must be 1 or more, got {rounds}")
        self.rounds, self.d_rows = rounds, d_hidden
        self.encode = GNBlock(Widths(spec.width("bond"), spec.width("atom"), 0), d_hidden, d_hidden)
        self.core = GraphGRU(d_hidden, d_hidden)
        self.decode = GNBlock(Widths(*[d_hidden] * 3), d_hidden, d_hidden, updates_graphs=readout is None)
        self.norm = make_part("norm", norm, d_hidden)
        self.readout = None if readout is None else make_part("readout", readout, d_hidden)
        self.d_out = d_hidden if self.readout is None else self.readout.d_out

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations ahead."""
        _ = relations.bonds(batch), relations.arriving(batch).transpose
        _ = relations.members(batch), relations.members(batch, "bond")

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch; with ``rows``, write out the states of atoms and of directed bonds too."""
        e, v, u = self.states(batch)["decoder"]
        penalties: Penalties = {}
        if self.readout is not None:
            u, penalties = self.readout(v, relations.members(batch))
        if not rows:
            return Encoded(u, (), penalties)
        below = Rows("atom", v, batch.graph_of("atom")), Rows("bond", e, batch.graph_of("bond"))
        return Encoded(u, below, penalties)

    def bond_states(self, batch: GraphBatch) -> dict[str, Float[Tensor, "n_bonds _"]]:
        """The states of directed bonds after each block."""
        return {block: state.edges for block, state in self.states(batch).items()}

    def states(self, batch: GraphBatch) -> dict[str, GraphState]:
        """States of bonds, atoms and graphs after each block: ``encoder``, ``core`` and ``decoder``."""
        bonds, atoms = batch.features("bond"), batch.features("atom")
        x = self.encode(GraphState(bonds, atoms, atoms.new_zeros(batch.n_graphs, 0)), batch)
        h = GraphState(*map(torch.zeros_like, x))
        for _ in range(self.rounds):
            h = self.core(x, h, batch)
        h = h._replace(nodes=self.norm(h.nodes, relations.members(batch)))
        return {"encoder": x, "core": h, "decoder": self.decode(h, batch)}
