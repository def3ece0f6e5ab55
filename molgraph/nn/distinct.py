"""Which rows a D-MPNN visits: a batch in, the relations of its levels out, over all bonds or over distinct ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from molgraph.data.batch import GraphBatch
from molgraph.data.refinement import Links, csr, next_bonds, refine, transpose
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


def distinct_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    """Levels over rows that look different (see ``molgraph.data.refinement``); made once a batch."""
    return batch.once(("distinct_bonds", depth), lambda: _distinct_bonds(batch, depth).to(batch.source.device))


def all_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    """Levels over every directed bond; made once a batch."""
    return batch.once(("all_bonds", depth), lambda: _all_bonds(batch, depth).to(batch.source.device))


def _distinct_bonds(batch: GraphBatch, depth: int) -> BondLevels:
    atom_code, bond_code, source, reverse, offsets = _arrays(batch)
    found = refine(atom_code, bond_code, source, reverse, offsets, depth)
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
