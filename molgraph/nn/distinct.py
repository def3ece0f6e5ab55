"""Which rows a model visits: a batch in, the relations of its levels out, over all rows or over distinct ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from molgraph.data.batch import GraphBatch
from molgraph.data.refinement import Links, csr, next_bonds, refine_atoms, refine_bonds, transpose
from molgraph.nn.relation import Relation

T = TypeVar("T")


@dataclass(frozen=True)
class BondLevels:
    """Rows and relations of directed-bond message passing, level by level.

    Args:
        atom_code, bond_code: int64 [rows of level 0], features of each row's source atom and of its bond.
        steps: one for each further level: the relation from the level before along "next bond, no U-turn", and the
            row of level 0 that each row of the new level began as (None: the same rows).
        arrive: relation from the last level's bonds to the atoms' rows.
        arrive_code: int64 [atom rows], features of each atom row.
        readout: relation from atom rows to graphs, one pair an atom.
        atom_row: int64 [n], the atom row of each atom (None: the same rows).
    """

    atom_code: Int[Tensor, " rows_0"]
    bond_code: Int[Tensor, " rows_0"]
    steps: tuple[tuple[Relation, Int[Tensor, " _"] | None], ...]
    arrive: Relation
    arrive_code: Int[Tensor, " {arrive.n_target}"]
    readout: Relation
    atom_row: Int[Tensor, " n"] | None


@dataclass(frozen=True)
class AtomRound:
    """One round of messages between atoms along bonds.

    Args:
        sent: int64 [q], the row before of each distinct (atom, kind of bond) that speaks, sorted by kind of bond.
        kinds: int64 [k], bond codes; ``sizes``, k ints: how many of ``sent`` speak along each.
        relation: from the q senders to the rows after.
        same: int64 [rows after], the row before that each row after was.
    """

    sent: Int[Tensor, " {relation.n_source}"]
    kinds: Int[Tensor, " {len(sizes)}"]
    sizes: tuple[int, ...]
    relation: Relation
    same: Int[Tensor, " {relation.n_target}"]


@dataclass(frozen=True)
class AtomLevels:
    """Rows and relations of message passing between atoms, round by round.

    Args:
        atom_code: int64 [rows before the first round], their features.
        rounds: one a round.
        readout: relation from the last rows to graphs, one pair an atom.
        atom_row: int64 [n], the last row of each atom.
    """

    atom_code: Int[Tensor, " rows_0"]
    rounds: tuple[AtomRound, ...]
    readout: Relation
    atom_row: Int[Tensor, " n"]


def atom_levels(batch: GraphBatch, rounds: int, distinct: bool = True) -> AtomLevels:
    """Rounds over atoms that look different, or over every atom; made once a batch."""
    return _once(batch, ("atom_levels", rounds, distinct), lambda: _atom_levels(batch, rounds, distinct))


def distinct_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    """Levels over rows that look different (see ``molgraph.data.refinement``); made once a batch."""
    return _once(batch, ("distinct_bonds", depth), lambda: _distinct_bonds(batch, depth))


def all_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    """Levels over every directed bond; made once a batch."""
    return _once(batch, ("all_bonds", depth), lambda: _all_bonds(batch, depth))


def _once(batch: GraphBatch, key: tuple, make: Callable[[], T]) -> T:
    needs_grad = torch.is_grad_enabled()  # which leaving inference mode would turn on

    def make_ordinary() -> T:
        # a batch that is predicted first may be trained on later
        with torch.inference_mode(False), torch.set_grad_enabled(needs_grad):
            return make()

    return batch.once(key, make_ordinary)


def _distinct_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    atom_code, bond_code, source, reverse, offsets = _arrays(batch)
    found = refine_bonds(atom_code, bond_code, source, reverse, offsets, depth)
    put = partial(torch.as_tensor, device=batch.source.device)
    relations = [_relation(links, put) for links in found.links]
    return BondLevels(
        put(atom_code[source[found.bonds[0]]]),
        put(bond_code[found.bonds[0]]),
        tuple(zip(relations[:-1], map(put, found.began), strict=True)),
        relations[-1],
        put(atom_code[found.atoms]),
        _relation(Links(found.atom_row, batch.atom_offsets.numpy(force=True), len(found.atoms)), put),
        put(found.atom_row),
    )


def _all_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    atom_code, _, source, reverse, offsets = _arrays(batch)
    n_atoms, n_bonds = len(atom_code), len(source)
    put = partial(torch.as_tensor, device=batch.source.device)
    step = _relation(Links(*next_bonds(source, reverse, offsets), n_bonds), put)
    return BondLevels(
        put(atom_code[source]),
        batch.bond_code,
        ((step, None),) * (depth - 1),
        _relation(Links(np.arange(n_bonds), offsets, n_bonds), put),
        batch.atom_code,
        _relation(Links(np.arange(n_atoms), batch.atom_offsets.numpy(force=True), n_atoms), put),
        None,
    )


def _atom_levels(batch: GraphBatch, rounds: int, distinct: bool) -> AtomLevels:
    atom_code, bond_code, source, _, offsets = _arrays(batch)
    found = refine_atoms(atom_code, bond_code, source, offsets, rounds, distinct)
    put = partial(torch.as_tensor, device=batch.source.device)
    made = [
        AtomRound(
            put(step.sent), put(step.kinds), tuple(step.sizes.tolist()), _relation(step.links, put), put(step.same)
        )
        for step in found.steps
    ]
    readout = _relation(Links(found.atom_row, batch.atom_offsets.numpy(force=True), found.n_rows), put)
    return AtomLevels(put(atom_code[found.atoms]), tuple(made), readout, put(found.atom_row))


def _arrays(batch: GraphBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    tensors = batch.atom_code, batch.bond_code, batch.source, batch.reverse, batch.target
    atom_code, bond_code, source, reverse, target = (t.numpy(force=True) for t in tensors)
    return atom_code, bond_code, source, reverse, csr(np.bincount(target, minlength=len(atom_code)))


def _relation(links: Links, put: Callable[[np.ndarray], Tensor]) -> Relation:
    back = None
    if torch.is_grad_enabled():  # inference never reads it; made later where it is needed after all
        target, offsets = transpose(links.source, links.offsets, links.n_source)
        back = put(target), put(offsets)
    return Relation(put(links.source), put(links.offsets), links.n_source, len(links.offsets) - 1, back)
