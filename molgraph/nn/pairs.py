"""List pairs of atoms up to a graph distance, with their distance, bond and shared rings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from molgraph.base.packed import offsets_of
from molgraph.data.batch import GraphBatch
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.relations import hops, once_a_batch


@dataclass(frozen=True)
class Pairs:
    """Unordered pairs of two different atoms of a graph, sorted by their later atom; p of them."""

    ends: Int[Tensor, "p 2"]  # the atoms, the later one first
    distance: Int[Tensor, " p"]  # bonds of a shortest path between them, 1 or more
    same_ring: Bool[Tensor, " p"]  # whether one ring holds both; False where the graphs tell no rings
    bonds: Relation  # from directed bonds to pairs: both directions of the pair's bond, none where they are not bonded
    atoms: Relation  # from pairs to atoms, each to both of its ends
    graphs: Relation  # from pairs to graphs


@once_a_batch
def pairs(batch: GraphBatch, n: int) -> Pairs:
    """The pairs of atoms that are at most ``n`` bonds apart, found without a matrix of atoms x atoms.

    Args:
        batch: of molecules or other graphs; ``same_ring`` is read from the array ``atom.rings`` where it is there.
        n: largest graph distance.

    Raises:
        ValueError: ``n`` below 1.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> found = pairs(collate(featurize(["CCO"]), np.arange(1)), 2)
        >>> found.ends.tolist(), found.distance.tolist()
        ([[1, 0], [2, 0], [2, 1]], [1, 2, 1])
    """
    size = max(batch.n_atoms, 1)
    keys = _keys(hops(batch, n), size)  # a pair as one number, later atom * size + earlier atom
    distance = np.full(len(keys), n)
    for nearer in range(n - 1, 0, -1):
        distance[np.isin(keys, _keys(hops(batch, nearer), size))] = nearer
    late, early = keys // size, keys % size
    source, target = batch.source.numpy(force=True), batch.target.numpy(force=True)
    between = np.flatnonzero(source != target)
    of_bond = np.maximum(source, target)[between] * size + np.minimum(source, target)[between]
    graph = batch.graph_of("atom").numpy(force=True)[late]
    index, device = np.arange(len(keys)), batch.target.device

    def relation(source: np.ndarray, target: np.ndarray, n_source: int, n_target: int) -> Relation:
        order = np.argsort(target, kind="stable")
        offsets = offsets_of(np.bincount(target, minlength=n_target))
        return Relation(_put(source[order], device), _put(offsets, device), n_source, n_target)

    return Pairs(
        _put(np.stack([late, early], axis=1), device),
        _put(distance, device),
        _same_ring(batch, late, early),
        relation(between, np.searchsorted(keys, of_bond), batch.n_bonds, len(keys)),
        relation(np.concatenate([index, index]), np.concatenate([late, early]), len(keys), batch.n_atoms),
        relation(index, graph, len(keys), batch.n_graphs),
    )


def pair_features(batch: GraphBatch, n: int) -> Float[Tensor, "p d_pair"]:
    """The bond's features (zeros without a bond), the distance one-hot from 1 to ``n``, and the same ring."""
    atom_pairs, bonds = pairs(batch, n), batch.features("bond")
    near = torch.arange(1, n + 1, device=bonds.device) == atom_pairs.distance.unsqueeze(1)
    features = torch.cat([near, atom_pairs.same_ring.unsqueeze(1)], dim=1)
    return torch.cat([propagate(bonds, atom_pairs.bonds, reduce="mean"), features.to(bonds.dtype)], dim=1)


def _keys(near: Relation, size: int) -> np.ndarray:
    """Ascending numbers of the relation's pairs, each unordered pair once."""
    late, early = near.target.numpy(force=True), near.source.numpy(force=True)
    return np.sort((late * size + early)[early < late])


def _same_ring(batch: GraphBatch, late: np.ndarray, early: np.ndarray) -> Tensor:
    rings = batch["atom"].arrays.get("rings")
    if rings is None:
        return torch.zeros(len(late), dtype=torch.bool, device=batch.target.device)
    ring_bits = rings.numpy(force=True)
    return _put((ring_bits[late] & ring_bits[early]) != 0, batch.target.device)


def _put(values: np.ndarray, device: torch.device) -> Tensor:
    return torch.as_tensor(values, device=device)
