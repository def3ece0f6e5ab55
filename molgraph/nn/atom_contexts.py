"""Find the context of each ligand atom: its nearest atoms of the ligand and of the protein."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from molgraph.data.batch import GraphBatch
from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.relations import once_a_batch


@once_a_batch
def contexts(batch: GraphBatch, k_c: int, k_p: int) -> tuple[Int[Tensor, " m"], Int[Tensor, "m {k_c+k_p}"], Relation]:
    """The ligand's atoms, their nearest atoms of the ligand and then of the protein, and the relation to their graphs.

    The nearest come first, and of equally far ones those of the lower element, residue and charge. -1 stands where a
    graph has too few; the atoms of a graph without a ligand count as one.
    """
    level = batch["atom"]
    at, residue, charge = (level.arrays[name].numpy(force=True) for name in ("position", "residue", "charge"))
    offsets, kind = level.offsets.numpy(force=True), level.code.numpy(force=True)
    centres, neighbours, counts = [np.zeros(0, np.int64)], [np.zeros((0, k_c + k_p), np.int64)], []
    for a, b in pairwise(offsets):
        ligand_mask = residue[a:b] == 0
        ligand, protein = (a + np.flatnonzero(array) for array in (ligand_mask, ~ligand_mask))
        ligand, protein = (ligand, protein) if len(ligand) else (protein, ligand)
        sides = [np.full((len(ligand), k), -1, np.int64) for k in (k_c, k_p)]
        for side, atoms in zip(sides, (ligand, protein), strict=True):
            if not side.size or not len(atoms):
                continue
            apart = sum((at[ligand, i][:, None] - at[atoms, i][None]) ** 2 for i in range(3))
            ties = [np.broadcast_to(array[atoms], apart.shape) for array in (charge, residue, kind)]
            order = np.lexsort((*ties, apart), axis=1)[:, : side.shape[1]]
            side[:, : order.shape[1]] = atoms[order]
        centres.append(ligand)
        neighbours.append(np.concatenate(sides, axis=1))
        counts.append(len(ligand))
    centre, near = torch.from_numpy(np.concatenate(centres)), torch.from_numpy(np.concatenate(neighbours))
    device, n = level.offsets.device, len(centre)
    sizes = torch.tensor(counts, dtype=torch.long, device=device)
    members = Relation(torch.arange(n, device=device), row_offsets(sizes), n, batch.n_graphs)
    return centre.to(device), near.to(device), members
