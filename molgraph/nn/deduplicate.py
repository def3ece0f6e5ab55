"""Rounds of message passing over the rows of a batch that look different, or over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.packed import offsets_of
from molgraph.data.batch import GraphBatch
from molgraph.data.color_refinement import Links, next_bonds, refine_atoms, refine_bonds, transpose
from molgraph.nn.joined_linear import CodedRows
from molgraph.nn.relation import Relation

T = TypeVar("T")


@dataclass(frozen=True)
class BondRound:
    """One round of messages between directed bonds.

    Args:
        relation: from the rows before to the rows after, along "next bond, no U-turn".
        initial_row: int64 [rows after], the row of the first round that each row after was; None: the same rows.
    """

    relation: Relation
    initial_row: Int[Tensor, " {relation.n_target}"] | None

    def initial(self, h0: Float[Tensor, "rows_0 d"]) -> Float[Tensor, "_ d"]:
        """The rows after this round as they were before the first one."""
        return h0 if self.initial_row is None else h0.index_select(0, self.initial_row)


@dataclass(frozen=True)
class BondRounds:
    """Directed-bond message passing, round by round.

    Args:
        source_atoms, bonds: features of the first rows: of each bond's source atom, and of the bond.
        rounds: one for each further level.
        arriving: relation from the last rows to the atoms' rows.
        atoms: features of the atoms' rows.
        readout: relation from the atoms' rows to graphs, one pair an atom.
        atom_row: int64 [n], the row of each atom; None: the same rows.
    """

    source_atoms: CodedRows
    bonds: CodedRows
    rounds: tuple[BondRound, ...]
    arriving: Relation
    atoms: CodedRows
    readout: Relation
    atom_row: Int[Tensor, " n"] | None

    def every_atom(self, h: Float[Tensor, "rows d"]) -> Float[Tensor, "n d"]:
        """The state of each atom of the batch, from the states of the atoms' rows."""
        return h if self.atom_row is None else h.index_select(0, self.atom_row)


@dataclass(frozen=True)
class AtomRound:
    """One round of messages between atoms along bonds.

    Args:
        sender: int64 [q], the row before of each distinct (atom, kind of bond) that sends, sorted by kind of bond.
        kinds: float [k, d_bond], features of the kinds of bond; ``sizes``, k ints: how many send along each.
        relation: from the q senders to the rows after.
        previous_row: int64 [rows after], the row before that each row after was.
    """

    sender: Int[Tensor, " {relation.n_source}"]
    kinds: Float[Tensor, "{len(sizes)} d_bond"]
    sizes: tuple[int, ...]
    relation: Relation
    previous_row: Int[Tensor, " {relation.n_target}"]

    def senders(self, h: Float[Tensor, "before d"]) -> Float[Tensor, "q d"]:
        """The states that are sent, sorted by kind of bond."""
        return h.index_select(0, self.sender)

    def previous(self, h: Float[Tensor, "before d"]) -> Float[Tensor, "after d"]:
        """The rows after this round as they were before it."""
        return h.index_select(0, self.previous_row)


@dataclass(frozen=True)
class AtomRounds:
    """Message passing between atoms, round by round.

    Args:
        atoms: features of the rows before the first round.
        rounds: one a round.
        readout: relation from the last rows to graphs, one pair an atom.
        atom_row: int64 [n], the last row of each atom.
    """

    atoms: CodedRows
    rounds: tuple[AtomRound, ...]
    readout: Relation
    atom_row: Int[Tensor, " n"]

    def every_atom(self, h: Float[Tensor, "rows d"]) -> Float[Tensor, "n d"]:
        """The state of each atom of the batch, from the states of the last rows."""
        return h.index_select(0, self.atom_row)


def bond_rounds(batch: GraphBatch, depth: int, *, distinct: bool) -> BondRounds:
    """``depth`` levels of directed bonds, then the atoms at which they arrive; made once a batch.

    Args:
        batch: of molecules, or of graphs with each edge in both directions.
        depth: number of bond levels, 1 or more.
        distinct: compute rows that look alike once (decision 0001); False gives each bond and atom a row of its own.
    """
    make = _distinct_bonds if distinct else _all_bonds
    return _once(batch, ("bond_rounds", depth, distinct), lambda: make(batch, depth))


def atom_rounds(batch: GraphBatch, rounds: int, *, distinct: bool) -> AtomRounds:
    """``rounds`` of messages between atoms, over atoms that look different or over every atom; made once a batch."""
    return _once(batch, ("atom_rounds", rounds, distinct), lambda: _atom_rounds(batch, rounds, distinct))


def _once(batch: GraphBatch, key: tuple, make: Callable[[], T]) -> T:
    needs_grad = torch.is_grad_enabled()  # which leaving inference mode would turn on

    def make_ordinary() -> T:
        # a batch that is predicted first may be trained on later
        with torch.inference_mode(False), torch.set_grad_enabled(needs_grad):
            return make()

    return batch.once(key, make_ordinary)


def _distinct_bonds(batch: GraphBatch, depth: int) -> BondRounds:
    atom_code, bond_code, source, reverse, offsets = _arrays(batch)
    found = refine_bonds(atom_code, bond_code, source, reverse, offsets, depth)
    put = partial(torch.as_tensor, device=batch.source.device)
    relations = [_relation(links, put) for links in found.links]
    atoms, bonds = _tables(batch)
    first = found.bonds[0]
    return BondRounds(
        CodedRows(atoms, put(atom_code[source[first]])),
        CodedRows(bonds, put(bond_code[first])),
        tuple(BondRound(link, put(row)) for link, row in zip(relations[:-1], found.initial_row, strict=True)),
        relations[-1],
        CodedRows(atoms, put(atom_code[found.atoms])),
        _relation(Links(found.atom_row, batch["atom"].offsets.numpy(force=True), len(found.atoms)), put),
        put(found.atom_row),
    )


def _all_bonds(batch: GraphBatch, depth: int) -> BondRounds:
    atom_code, _, source, reverse, offsets = _arrays(batch)
    n_atoms, n_bonds = len(atom_code), len(source)
    put = partial(torch.as_tensor, device=batch.source.device)
    atoms, bonds = _tables(batch)
    step = BondRound(_relation(Links(*next_bonds(source, reverse, offsets), n_bonds), put), None)
    return BondRounds(
        CodedRows(atoms, put(atom_code[source])),
        CodedRows(bonds, batch["bond"].code),
        (step,) * (depth - 1),
        _relation(Links(np.arange(n_bonds), offsets, n_bonds), put),
        CodedRows(atoms, batch["atom"].code),
        _relation(Links(np.arange(n_atoms), batch["atom"].offsets.numpy(force=True), n_atoms), put),
        None,
    )


def _atom_rounds(batch: GraphBatch, rounds: int, distinct: bool) -> AtomRounds:
    atom_code, bond_code, source, _, offsets = _arrays(batch)
    found = refine_atoms(atom_code, bond_code, source, offsets, rounds, distinct)
    put = partial(torch.as_tensor, device=batch.source.device)
    atoms, bonds = _tables(batch)
    made = [
        AtomRound(
            put(step.sender), bonds.index_select(0, put(step.kinds)), tuple(step.sizes.tolist()),
            _relation(step.links, put), put(step.previous_row),
        )
        for step in found.steps
    ]  # fmt: skip
    readout = _relation(Links(found.atom_row, batch["atom"].offsets.numpy(force=True), found.n_rows), put)
    return AtomRounds(CodedRows(atoms, put(atom_code[found.atoms])), tuple(made), readout, put(found.atom_row))


def _tables(batch: GraphBatch) -> tuple[Tensor, Tensor]:
    atoms, bonds = batch["atom"].table, batch["bond"].table
    assert atoms is not None and bonds is not None
    return atoms, bonds


def _arrays(batch: GraphBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    tensors = batch["atom"].code, batch["bond"].code, batch.source, batch.reverse, batch.target
    atom_code, bond_code, source, reverse, target = (t.numpy(force=True) for t in tensors)
    return atom_code, bond_code, source, reverse, offsets_of(np.bincount(target, minlength=len(atom_code)))


def _relation(links: Links, put: Callable[[np.ndarray], Tensor]) -> Relation:
    back = None
    if torch.is_grad_enabled():  # inference never reads it; made later where it is needed after all
        target, offsets = transpose(links.source, links.offsets, links.n_source)
        back = put(target), put(offsets)
    return Relation(put(links.source), put(links.offsets), links.n_source, len(links.offsets) - 1, back)
