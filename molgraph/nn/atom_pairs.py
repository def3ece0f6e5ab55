"""List the pairs of atoms of each molecule of a batch, with the number of bonds between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from molgraph.base.packed import offsets_of, ranges
from molgraph.data.batch import GraphBatch
from molgraph.nn.relations import once_a_batch

FAR = 10  # bonds: pairs further apart, or not connected at all, count as one kind
MOST_ATOMS = 200  # of a graph, the first ones, whose pairs are formed


class AtomPairs(NamedTuple):
    """Pairs of different atoms of one graph, each once.

    Args:
        source, target: int64 [p], the atoms, counted over the batch; source < target.
        hops: int64 [p], bonds on the shortest way between them, ``FAR`` for more and for none.
    """

    source: Int[Tensor, " p"]
    target: Int[Tensor, " p"]
    hops: Int[Tensor, " p"]


@once_a_batch
def atom_pairs(batch: GraphBatch) -> AtomPairs:
    """The pairs of the first ``MOST_ATOMS`` atoms of each graph.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> pairs = atom_pairs(collate(featurize(["CCO", "N.C"]), np.arange(2)))
        >>> pairs.source.tolist(), pairs.target.tolist(), pairs.hops.tolist()
        ([0, 0, 1, 3], [1, 2, 2, 4], [1, 2, 1, 10])
    """
    offsets, graph = batch["atom"].offsets.numpy(force=True), batch.graph_of("atom").numpy(force=True)
    index = np.arange(len(graph))
    begin, size = offsets[graph], offsets[graph + 1] - offsets[graph]
    roots = index[index - begin < MOST_ATOMS]
    last = begin[roots] + np.minimum(size[roots], MOST_ATOMS)
    target, spans = ranges(roots + 1, last)
    row = np.repeat(np.arange(len(roots)), np.diff(spans))
    base = offsets_of(size[roots])[:-1] - begin[roots]  # base[row] + atom: the place of a root's atom
    far = np.full(int(size[roots].sum()), FAR, dtype=np.int8)
    far[base + roots] = 0
    start, end = batch.source.numpy(force=True), batch.target.numpy(force=True)
    leaving = end[np.argsort(start, kind="stable")]
    first = offsets_of(np.bincount(start, minlength=len(graph)))
    root_of, atom_of = np.arange(len(roots)).repeat(size[roots]), ranges(begin[roots], begin[roots] + size[roots])[0]
    front = base + roots
    for hop in range(1, FAR):
        atom = atom_of[front]
        bonds, steps = ranges(first[atom], first[atom + 1])
        near = base[np.repeat(root_of[front], np.diff(steps))] + leaving[bonds]
        near = near[far[near] == FAR]
        if not len(near):
            break
        far[near] = hop
        front = np.flatnonzero(far == hop)
    source, hops = roots[row], far[base[row] + target].astype(np.int64)
    put = batch["atom"].offsets.device
    return AtomPairs(*(torch.as_tensor(array, device=put) for array in (source, target, hops)))
