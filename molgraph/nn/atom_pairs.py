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
    each = np.arange(len(graph))
    last = np.maximum(np.minimum(offsets[graph + 1], offsets[graph] + MOST_ATOMS), each + 1)
    target, spans = ranges(each + 1, last)
    source = np.repeat(each, np.diff(spans))
    n = max(len(graph), 1)
    keys, hops = source * n + target, np.full(len(source), FAR)
    start, end = batch.source.numpy(force=True), batch.target.numpy(force=True)
    leaving = np.argsort(start, kind="stable")
    first = offsets_of(np.bincount(start, minlength=len(graph)))
    seen = front = each * n + each  # root * n + atom
    for far in range(1, FAR):
        bonds, steps = ranges(first[front % n], first[front % n + 1])
        root = np.repeat(front // n, np.diff(steps))
        front = np.setdiff1d(root * n + end[leaving[bonds]], seen)
        if not len(front):
            break
        seen = np.union1d(seen, front)
        ordered = front[front // n < front % n]
        place = np.searchsorted(keys, ordered).clip(max=max(len(keys) - 1, 0))
        known = keys[place] == ordered if len(keys) else np.zeros(len(ordered), bool)
        hops[place[known]] = far
    put = batch["atom"].offsets.device
    return AtomPairs(*(torch.as_tensor(array, device=put) for array in (source, target, hops)))
