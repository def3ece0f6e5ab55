"""Measure conformers against RDKit's own, and the pairs and triplets of atoms in space against torch alone, in turn.

Conformers: RDKit in a loop with ``numThreads`` for the conformers of a molecule, and RDKit in a pool of as many
processes. Both sides embed by ETKDGv3 from the same seeds and relax by MMFF94, and must come to the same positions.
Triplets: PyG's own need torch-sparse, so that the peer forms them as it does, by torch's operations.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers
from timing import in_turn
from torch import Tensor

from molgraph.base.cores import cores
from molgraph.base.paths import data_dir
from molgraph.chem.conformer import MOST, make_conformers
from molgraph.chem.smiles import quiet
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize_geometry import Geometries
from molgraph.data.read import read_table
from molgraph.nn import relations

MOLECULES = "guacamol_sample/guacamol_10k.smiles"  # drug-like
SHAPES = "qm9/qm9_3d_3000.npz"
N, COMPARED = {1: 128, 10: 16}, 4  # conformers a molecule -> molecules of a round; those that are compared
CUTOFF, SIZES, FROM = 5.0, (32, 128), 1_000
FLOORS = {"conformers": 0.9, "triplets": 3.0, "pairs": 1.0}


def place(name: str) -> Path:
    """A file of the folder of datasets."""
    folder = data_dir()
    if folder is None or not (folder / name).exists():
        raise SystemExit(f"MOLGRAPH_DATA names no folder with {name}")
    return folder / name


def embed(text: str, n: int, threads: int) -> list[np.ndarray]:
    """The positions of conformers as a script of RDKit makes them."""
    mol = Chem.AddHs(Chem.MolFromSmiles(text))
    params = rdDistGeom.ETKDGv3()
    params.randomSeed, params.enableSequentialRandomSeeds, params.numThreads = 0, True, threads
    rdDistGeom.EmbedMultipleConfs(mol, n, params)
    if rdForceFieldHelpers.MMFFHasAllMoleculeParams(mol):
        rdForceFieldHelpers.MMFFOptimizeMoleculeConfs(mol, numThreads=threads)
    return [each.GetPositions() for each in mol.GetConformers()]


def with_pool(smiles: list[str], n: int) -> list[list[np.ndarray]]:
    """RDKit in a pool of processes, one a core."""
    with multiprocessing.get_context("fork").Pool(cores()) as pool:
        return pool.map(partial(embed, n=n, threads=1), smiles, chunksize=8)


def with_threads(smiles: list[str], n: int) -> list[list[np.ndarray]]:
    """RDKit in a loop, with its threads for the conformers of a molecule."""
    return [embed(text, n, 0) for text in smiles]


def check_alike(smiles: list[str], n: int) -> None:
    """Refuse to time what differs; molecules that RDKit embeds from its usual start alone are compared."""
    ours, theirs = make_conformers(smiles[:COMPARED], n=n), with_threads(smiles[:COMPARED], n)
    for text, mine, other in zip(smiles, ours, theirs, strict=False):
        if mine.relaxed == "mmff" and len(other) and not np.allclose(mine.positions, other, atol=1e-2):
            raise SystemExit(f"conformers differ from RDKit's: {text}")
    assert n <= MOST


def conformer_rates(rounds: int) -> dict[str, dict[str, Any]]:
    """Rows of the table on conformers."""
    with open(place(MOLECULES), encoding="utf-8") as file:
        smiles = [line.split()[0] for line in file][: max(N.values())]
    rows: dict[str, dict[str, Any]] = {}
    with quiet():
        for n, many in N.items():
            some = smiles[:many]
            check_alike(some, n)
            peers = {"RDKit, a pool": with_pool, "RDKit, numThreads": with_threads}
            works: list[Callable[[], Any]] = [partial(make_conformers, some, n=n, workers=cores())]
            works += [partial(peer, some, n) for peer in peers.values()]
            ours, *others = in_turn(works, rounds)
            for name, seconds in zip(peers, others, strict=True):
                words = f"conformers, {n} a molecule with MMFF94, GuacaMol, against {name.split(', ')[1]}"
                facts = {"molgraph": many / ours, "peer": many / seconds, "ratio": seconds / ours}
                rows[words] = facts | {"peer_name": "RDKit", "unit": "molecules/s", "floor": FLOORS["conformers"]}
    return rows


def torch_triplets(source: Tensor, target: Tensor, n: int) -> tuple[Tensor, ...]:
    """Rows i, j, k and pairs kj, ji of all triplets k->j->i, as PyG's ``triplets`` gives them, without torch-sparse."""
    order = torch.argsort(target * n + source)
    counts = torch.bincount(target, minlength=n)
    starts = torch.cumsum(counts, 0) - counts
    many = counts[source]
    ji = torch.arange(len(source)).repeat_interleave(many)
    within = torch.arange(len(ji)) - (torch.cumsum(many, 0) - many).repeat_interleave(many)
    kj = order[starts[source].repeat_interleave(many) + within]
    i, j, k = target[ji], source[ji], source[kj]
    kept = i != k
    return i[kept], j[kept], k[kept], kj[kept], ji[kept]


def torch_radius(batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """Sources and targets of near pairs from the matrix of all distances, by torch alone."""
    at, graph = batch["atom"].arrays["position"], batch.graph_of("atom")
    near = (torch.cdist(at, at) < CUTOFF) & (graph[:, None] == graph)
    near.fill_diagonal_(False)
    target, source = near.nonzero(as_tuple=True)
    return source, target


def pair_rates(rounds: int) -> dict[str, dict[str, Any]]:
    """Rows of the table on near pairs and triplets of QM9 molecules."""
    shapes = read_table(str(place(SHAPES)), geometry="geometry").entities[0].values
    rows: dict[str, dict[str, Any]] = {}
    for size in SIZES:
        batch = collate(Geometries().featurise(list(shapes[FROM : FROM + size])), np.arange(size))
        near = relations.radius(batch, CUTOFF)
        ends = near.source, near.target, near.n_source
        if not relations.triplets(near).source.equal(torch_triplets(*ends)[3]):
            raise SystemExit("triplets differ from the peer's")
        if not torch.equal(torch.stack(ends[:2]), torch.stack(torch_radius(batch))):
            raise SystemExit("near pairs differ from the peer's")
        radius = relations.radius.__wrapped__  # type: ignore[attr-defined]
        works: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "triplets": (partial(relations.triplets, near), partial(torch_triplets, *ends)),
            "pairs": (partial(radius, batch, CUTOFF), partial(torch_radius, batch)),
        }
        for what, both in works.items():
            ours, theirs = in_turn([*both], rounds)
            facts = {"molgraph": 1 / ours, "peer": 1 / theirs, "ratio": theirs / ours, "floor": FLOORS[what]}
            words = f"{what} within {CUTOFF:g} angstrom, batches of {size} QM9 molecules"
            rows[words] = facts | {"peer_name": "torch alone", "unit": "batches/s"}
    return rows


def space_speed(rounds: int = 3) -> dict[str, dict[str, Any]]:
    """Rows of the speed table."""
    return conformer_rates(rounds) | pair_rates(7 * rounds)


if __name__ == "__main__":
    for name, facts in space_speed().items():
        print(f"{name:75} {facts['molgraph']:10.4g} {facts['peer']:10.4g} {facts['ratio']:6.2f}")
