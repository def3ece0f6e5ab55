"""MPNN: messages between atoms by an edge network, a matrix or both ends, with a GRU as the update."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.parameters import refuse_unread
from molgraph.base.ranges import INNER_LIMIT, Layers, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.feature_layout import FEATURISER, OLDER
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import RoundsEncoder, SharedStates
from molgraph.nn.attention_readouts import Gated
from molgraph.nn.deduplicate import AtomRounds
from molgraph.nn.hydrogens import with_hydrogens
from molgraph.nn.master_node import MasterNode
from molgraph.nn.messages import make_message
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate
from molgraph.nn.readouts import GraphStates
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Sources
from molgraph.nn.updates import GRU


@register(
    "encoder",
    "mpnn",
    systems=(
        SystemCard("mpnn", left_out="distances, which enn_s2s reads", off="gin", beside=("gin", "mean")),
        SystemCard("albert", left_out="texts, narrow embeddings", off="gin", beside=("gin",), part=True),
    ),
    summary="message passing between atoms: edge network, GRU, Set2Set",
    paper="Gilmer et al. 2017, ICML",
    line=("atoms", "bonds", "edge network", "GRU", "set2set", "supervised"),
)
class MPNN(RoundsEncoder):
    """Message passing neural network, the variant enn-s2s.

    Gilmer et al. 2017, "Neural Message Passing for Quantum Chemistry": ``h0_v = W x_v``, then ``rounds`` times
    ``m_v = sum_{w in N(v)} M(h_v, h_w, e_vw)`` and ``h_v = GRU(h_v, m_v)`` with the same weights, and the readout
    ``Set2Set({h_v})``. Edges are the chemical bonds. ``h0`` is a linear layer where the paper pads with zeros.

    The defaults are its best variant, enn-s2s, on bonds alone: without explicit hydrogens, and without the distances of
    all pairs, which ``enn_s2s`` reads. ``message``: ``edge_network`` is ``A(e_vw) h_w``, ``matrix`` one matrix for each
    label (GG-NN), ``pair`` reads both ends, worse in the paper. ``readout="gated"`` is GG-NN's, equation 4:
    ``sum_v sigmoid(i(h_v, h0_v)) * j(h_v)``. A master node carries what is far apart; it helped without distances.
    Use it to try the paper's variants. Known limits: Set2Set is a weighted mean, blind to size: on the zoo's sets its
    error is 129% of a forest's, that of ``gated`` 109%; the distances, on which the errors on QM9 depend, are not read;
    a master node's or hydrogens' gain has to be measured; with one, molecules are computed each by itself.

    Args:
        spec: what the graphs hold.
        d_hidden: width of an atom's state.
        rounds: rounds of messages (the paper's T, 3 to 8).
        d_edge: width of the hidden layer of the edge network, or of the message ``pair``.
        message: ``edge_network``, ``matrix`` or ``pair``.
        d_master: width of the master node; 0 for none.
        explicit_h: hydrogens as atoms of their own (molecules alone).
        norm: a registered norm, after each round; the paper has none.
        readout: rows to graph, a registered readout.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: fewer than 0 rounds, an unknown message, or what is not read: ``d_edge`` for ``matrix``, messages
            without rounds, a master node with fewer than 2 rounds.
        UsageError: an unknown norm or readout; explicit hydrogens of graphs that are no molecules.
    """

    counts_rows = True
    small = MappingProxyType({"d_hidden": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        rounds: Layers = 3,
        d_edge: Width = 128,
        message: Literal["edge_network", "matrix", "pair"] = "edge_network",
        d_master: Annotated[int, Range(0, INNER_LIMIT)] = 0,
        explicit_h: bool = False,
        norm: str = "none",
        readout: str = "set2set",
        distinct: bool = True,
    ) -> None:
        # equal atoms hear other master nodes in other graphs
        super().__init__(rounds, distinct and not d_master, least=0)
        if message == "matrix":
            refuse_unread(MPNN, "the message matrix", {"d_edge": d_edge})
        if rounds == 0:
            refuse_unread(MPNN, "rounds=0", {"message": message, "d_edge": d_edge})
        if rounds <= 1:  # the master node hears the atoms in one round, and is heard in the next
            refuse_unread(MPNN, f"rounds={rounds}", {"d_master": d_master})
        if explicit_h and spec.featuriser not in (FEATURISER, OLDER):
            words = f"explicit_h adds the hydrogens of molecules; these graphs are {spec.featuriser!r}"
            raise UnsupportedError(words, hint="leave explicit_h out")
        self.explicit_h = explicit_h
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        self.message = make_message(message, spec.width("bond"), d_hidden, d_edge)
        self.update = GRU(d_hidden, d_hidden)
        self.master = MasterNode(d_hidden, d_master) if d_master else None
        self.norms = make_norms(norm, [d_hidden] * rounds)
        self.d_layers = (d_hidden,) * rounds
        self.read_by(readout, d_hidden)
        if type(self.readout) is Gated:
            self.readout = _GatedByInput(d_hidden)

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states after the last round; hydrogens are read out, and are no rows of their own."""
        rounds = self.rounds_of(batch)
        h, members, layers = self.embed(rounds.atoms.rows()), rounds.readout, []
        first = h if isinstance(self.readout, _GatedByInput) else None
        g = None if self.master is None else self.master.start(h, members)
        for step, norm in zip(rounds.rounds, self.norms, strict=True):
            m = self.message.sums(step, h)  # sum_w M(h_v, h_w, e_vw)
            if self.master is not None and g is not None:
                heard, g = self.master(g, h, members)
                m = m + heard
            h = norm(self.update(step.previous(h), m), step.members)
            first = None if first is None else step.previous(first)
            layers.append((h, step.members))
        read = None if first is None else torch.cat([h, first], dim=1)
        return SharedStates(h, members, lambda rows: self._old(rounds.every_atom(rows), batch), layers, read)

    def rounds_of(self, batch: GraphBatch) -> AtomRounds:
        """The rows of each round, hydrogens among them where they are explicit."""
        return super().rounds_of(with_hydrogens(batch).batch if self.explicit_h else batch)

    def _old(self, rows: Tensor, batch: GraphBatch) -> Tensor:
        return rows.index_select(0, with_hydrogens(batch).atom) if self.explicit_h else rows


class _GatedByInput(Gated):
    """Equation 4's readout of rows [r, 2 d]: the last states, beside the first ones that the gate alone reads."""

    def __init__(self, d: int) -> None:
        super().__init__(d)
        self.gate = nn.Linear(2 * d, d)

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, 2 d] to [g, d]."""
        return propagate(self.gate(h).sigmoid() * self.value(h[:, : self.d_out]), relation)
