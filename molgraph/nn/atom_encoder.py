"""Base class of encoders whose rows are atoms: a subclass computes their states, a readout pools them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.parts import make_part
from molgraph.data.batch import GraphBatch
from molgraph.nn import relations
from molgraph.nn.deduplicate import AtomRounds, atom_rounds
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.penalties import Penalties
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation


class SharedStates(NamedTuple):
    """States of rows that may stand for several atoms that look alike.

    Args:
        h: float [rows, d].
        to_graphs: from rows to graphs, one pair for each atom.
        every_atom: float [rows, d] to [n_atoms, d], the state of each atom.
        layers: the states after each layer, with the relation from their rows to graphs, one pair for each atom; empty
            where the encoder does not tell.
        read: float [rows, d'], what the readout is given where it is not h.
        others: makes the states of further rows, such as bonds, where rows are asked for.
    """

    h: Float[Tensor, "rows d"]
    to_graphs: Relation
    every_atom: Callable[[Tensor], Tensor]
    layers: Sequence[tuple[Float[Tensor, "_ _"], Relation]] = ()
    read: Float[Tensor, "rows _"] | None = None
    others: Callable[[], tuple[Rows, ...]] = tuple


Pooled: TypeAlias = tuple[Float[Tensor, "g d_out"], Penalties]  # a state for each graph, and penalties


class AtomEncoder(Encoder):
    """An encoder whose rows are the atoms of molecules, or the nodes of other graphs.

    A subclass builds its layers and its norms (``nn.norms.make_norms(norm, widths)``), ends its constructor with
    ``self.read_by(readout, d)`` and gives the states of atoms in ``states``; ``prepare`` makes other relations than the
    bonds ahead, where it reads any.
    """

    #: whether its layers, of one width, are run by ``through``
    stacked: bool = False

    def read_by(self, readout: str, d: int) -> None:
        """Read states of width ``d`` out by a registered readout, such as ``set2set(steps=5)``."""
        self.readout = make_part("readout", readout, d)
        self.d_out, self.d_rows = self.readout.d_out, d

    @abstractmethod
    def states(self, batch: GraphBatch) -> Float[Tensor, "n_atoms d"] | list[Float[Tensor, "n_atoms d"]] | SharedStates:
        """The states of the batch's atoms: float [n_atoms, d], or those of rows that several atoms share.

        A list holds the states after each layer, as ``d_layers`` says, and the last are the atoms'.
        """

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations along bonds and from atoms to graphs ahead."""
        _ = relations.bonds(batch).transpose, relations.members(batch)

    def through(
        self,
        layers: Sequence[Callable[[Tensor], Tensor]],
        h: Float[Tensor, "rows d"],
        skips: Sequence[Callable[[Tensor], Tensor]] = (),
    ) -> list[Float[Tensor, "_ d"]]:
        """The states after each layer: one layer after the other, or as the option ``stack`` says.

        ``skips``: what takes the place of each layer that is left out, where a layer's rows are not those before it.
        """
        for option in self.options:
            if option.key == "stack":
                return option.run(layers, h, skips)
        states = []
        for layer in layers:
            h = layer(h)
            states.append(h)
        return states

    def pool(self, found: SharedStates) -> Pooled:
        """One state a graph, by the readout."""
        graphs, penalties = self.readout(found.h if found.read is None else found.read, found.to_graphs)
        return graphs, penalties

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch; with ``rows``, write out the atoms' states too."""
        states = self.states(batch)
        if not isinstance(states, SharedStates):
            members, steps = relations.members(batch), states if isinstance(states, list) else [states]
            states = SharedStates(steps[-1], members, lambda h: h, [(h, members) for h in steps[: len(self.d_layers)]])
        pool = self.pool
        for option in reversed(self.options):
            pool = partial(option.pool, pool)
        graphs, penalties = pool(states)
        if not rows:
            return Encoded(graphs, (), penalties)
        atoms = Rows("atom", states.every_atom(states.h), batch.graph_of("atom"))
        layers = tuple(propagate(h.to(_single(h)), members) for h, members in states.layers)
        return Encoded(graphs, (atoms, *states.others()), penalties, layers)


class RoundsEncoder(AtomEncoder):
    """An encoder of atoms that hear their neighbours round by round; atoms that look alike may share a row.

    A subclass asks ``rounds_of`` for the rows of each round in ``states``.

    Args:
        depth: layers.
        distinct: whether rows that look alike are computed once.
        per_layer: rounds of a layer.
        least: layers, at least.

    Raises:
        ValueError: fewer layers than that.
    """

    def __init__(self, depth: int, distinct: bool, *, per_layer: int = 1, least: int = 1) -> None:
        super().__init__()
        if depth < least:
            raise ValueError(f"{type(self).__name__} has {least} layers or more, got {depth}")
        self.n_rounds, self.distinct = per_layer * depth, distinct

    def prepare(self, batch: GraphBatch) -> None:
        """Make the rows of each round ahead."""
        self.rounds_of(batch)

    def rounds_of(self, batch: GraphBatch) -> AtomRounds:
        """The rows of each round."""
        return atom_rounds(batch, self.n_rounds, distinct=self.shares_rows)


def _single(h: Tensor) -> torch.dtype:
    """Single precision at least: sums over whole molecules are too coarse in bfloat16."""
    return torch.promote_types(h.dtype, torch.float32)
