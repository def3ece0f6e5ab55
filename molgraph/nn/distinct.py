"""Which rows a model visits: a batch in, the relations of its levels out, over all rows or over distinct ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from molgraph.data.batch import GraphBatch
from molgraph.data.refinement import Links, csr, next_bonds, refine_atoms, refine_bonds, transpose
from molgraph.nn.relation import Relation


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

    atom_code: Tensor
    bond_code: Tensor
    steps: tuple[tuple[Relation, Tensor | None], ...]
    arrive: Relation
    arrive_code: Tensor
    readout: Relation
    atom_row: Tensor | None

    def to(self, device: torch.device | str) -> BondLevels:
        """The same levels on another device."""
        steps = tuple((r.to(device), None if b is None else b.to(device)) for r, b in self.steps)
        row = None if self.atom_row is None else self.atom_row.to(device)
        return BondLevels(
            self.atom_code.to(device),
            self.bond_code.to(device),
            steps,
            self.arrive.to(device),
            self.arrive_code.to(device),
            self.readout.to(device),
            row,
        )


@dataclass(frozen=True)
class AtomRound:
    """One round of messages between atoms along bonds.

    Args:
        sent: int64 [q], the row before of each distinct (atom, kind of bond) that speaks, sorted by kind of bond.
        kinds: int64 [k], bond codes; ``sizes``, k ints: how many of ``sent`` speak along each.
        relation: from the q senders to the rows after.
        same: int64 [rows after], the row before that each row after was.
    """

    sent: Tensor
    kinds: Tensor
    sizes: tuple[int, ...]
    relation: Relation
    same: Tensor

    def to(self, device: torch.device | str) -> AtomRound:
        """The same round on another device."""
        sent, kinds, same = (t.to(device) for t in (self.sent, self.kinds, self.same))
        return AtomRound(sent, kinds, self.sizes, self.relation.to(device), same)


@dataclass(frozen=True)
class AtomLevels:
    """Rows and relations of message passing between atoms, round by round.

    Args:
        atom_code: int64 [rows before the first round], their features.
        rounds: one a round.
        readout: relation from the last rows to graphs, one pair an atom.
        atom_row: int64 [n], the last row of each atom.
    """

    atom_code: Tensor
    rounds: tuple[AtomRound, ...]
    readout: Relation
    atom_row: Tensor

    def to(self, device: torch.device | str) -> AtomLevels:
        """The same levels on another device."""
        rounds = tuple(r.to(device) for r in self.rounds)
        return AtomLevels(self.atom_code.to(device), rounds, self.readout.to(device), self.atom_row.to(device))


def atom_levels(batch: GraphBatch, rounds: int, distinct: bool = True) -> AtomLevels:
    """Rounds over atoms that look different, or over every atom; made once a batch."""
    key = ("atom_levels", rounds, distinct)
    return batch.once(key, lambda: _atom_levels(batch, rounds, distinct).to(batch.source.device))


def distinct_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    """Levels over rows that look different (see ``molgraph.data.refinement``); made once a batch."""
    return batch.once(("distinct_bonds", depth), lambda: _distinct_bonds(batch, depth).to(batch.source.device))


def all_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    """Levels over every directed bond; made once a batch."""
    return batch.once(("all_bonds", depth), lambda: _all_bonds(batch, depth).to(batch.source.device))


def _distinct_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    atom_code, bond_code, source, reverse, offsets = _arrays(batch)
    found = refine_bonds(atom_code, bond_code, source, reverse, offsets, depth)
    relations = [_relation(links) for links in found.links]
    began = map(torch.from_numpy, found.began)
    return BondLevels(
        torch.from_numpy(atom_code[source[found.bonds[0]]]),
        torch.from_numpy(bond_code[found.bonds[0]]),
        tuple(zip(relations[:-1], began, strict=True)),
        relations[-1],
        torch.from_numpy(atom_code[found.atoms]),
        _relation(Links(found.atom_row, batch.atom_offsets.numpy(force=True), len(found.atoms))),
        torch.from_numpy(found.atom_row),
    )


def _atom_levels(batch: GraphBatch, rounds: int, distinct: bool) -> AtomLevels:
    atom_code, bond_code, source, _, offsets = _arrays(batch)
    found = refine_atoms(atom_code, bond_code, source, offsets, rounds, distinct)
    made = []
    for step in found.steps:
        sent, kinds, same = map(torch.from_numpy, (step.sent, step.kinds, step.same))
        made.append(AtomRound(sent, kinds, tuple(step.sizes.tolist()), _relation(step.links), same))
    readout = _relation(Links(found.atom_row, batch.atom_offsets.numpy(force=True), found.n_rows))
    return AtomLevels(
        torch.from_numpy(atom_code[found.atoms]), tuple(made), readout, torch.from_numpy(found.atom_row)
    )


def _all_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    atom_code, bond_code, source, reverse, offsets = _arrays(batch)
    n_atoms, n_bonds = len(atom_code), len(source)
    step = _relation(Links(*next_bonds(source, reverse, offsets), n_bonds))
    return BondLevels(
        torch.from_numpy(atom_code[source]),
        torch.from_numpy(bond_code),
        ((step, None),) * (depth - 1),
        _relation(Links(np.arange(n_bonds), offsets, n_bonds)),
        torch.from_numpy(atom_code),
        _relation(Links(np.arange(n_atoms), batch.atom_offsets.numpy(force=True), n_atoms)),
        None,
    )


def _arrays(batch: GraphBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    tensors = batch.atom_code, batch.bond_code, batch.source, batch.reverse, batch.target
    atom_code, bond_code, source, reverse, target = (t.numpy(force=True) for t in tensors)
    return atom_code, bond_code, source, reverse, csr(np.bincount(target, minlength=len(atom_code)))


def _relation(links: Links) -> Relation:
    back = transpose(links.source, links.offsets, links.n_source)
    arrays = [torch.from_numpy(a) for a in (links.source, links.offsets, *back)]
    return Relation(arrays[0], arrays[1], links.n_source, len(links.offsets) - 1, (arrays[2], arrays[3]))
