"""Base class of encoders whose rows are atoms: a subclass computes their states, a readout pools them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from molgraph.base.registry import get
from molgraph.data.batch import GraphBatch
from molgraph.nn import relations
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.relation import Relation


class SharedStates(NamedTuple):
    """States of rows that may stand for several atoms that look alike.

    Args:
        h: float [rows, d].
        to_graphs: from rows to graphs, one pair for each atom.
        every_atom: float [rows, d] to [n_atoms, d], the state of each atom.
    """

    h: Float[Tensor, "rows d"]
    to_graphs: Relation
    every_atom: Callable[[Tensor], Tensor]


class AtomEncoder(Encoder):
    """An encoder whose rows are the atoms of molecules, or the nodes of other graphs.

    A subclass builds its layers and its norms (``nn.norms.make_norms(norm, widths)``), ends its constructor with
    ``self.read_by(readout, d)`` and gives the states of atoms in ``states``; ``prepare`` makes other relations than the
    bonds ahead, where it reads any.
    """

    def read_by(self, readout: str, d: int) -> None:
        """Read states of width ``d`` out by a registered readout."""
        self.readout = get("readout", readout)(d)
        self.d_out, self.d_rows = self.readout.d_out, d

    @abstractmethod
    def states(self, batch: GraphBatch) -> Float[Tensor, "n_atoms d"] | SharedStates:
        """The states of the batch's atoms: float [n_atoms, d], or those of rows that several atoms share."""

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations along bonds and from atoms to graphs ahead."""
        _ = relations.bonds(batch).transpose, relations.members(batch)

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch; with ``rows``, write out the atoms' states too."""
        found = self.states(batch)
        h, to_graphs, every_atom = found if isinstance(found, SharedStates) else (found, relations.members(batch), None)
        graphs, penalties = self.readout(h, to_graphs)
        if not rows:
            return Encoded(graphs, (), penalties)
        atoms = h if every_atom is None else every_atom(h)
        return Encoded(graphs, (Rows("atom", atoms, batch.graph_of("atom")),), penalties)
