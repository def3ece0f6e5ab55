"""Split the graphs of a batch into a chosen part of their atoms and the rest, or take the last graphs of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from molgraph.data.batch import BatchLevel, GraphBatch
from molgraph.data.graph_store import BOND_INDEX


def subgraphs(batch: GraphBatch, keep: Tensor) -> GraphBatch:
    """The batch with some of its atoms, and the bonds between two of those, in their order.

    Features stay those of the atoms in their graphs, so that a cut bond shows in an atom's degree.

    Args:
        batch: graphs with each bond in both directions.
        keep: bool [n], which atoms stay; a graph may lose all.

    Example:
        >>> import numpy as np
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> made = subgraphs(collate(featurize(["CCO", "CN"]), np.arange(2)), torch.tensor([0, 1, 1, 1, 0]).bool())
        >>> made["atom"].offsets.tolist(), made.source.tolist(), made.reverse.tolist()
        ([0, 2, 3], [1, 0], [1, 0])
    """
    kept = {"atom": keep, "bond": keep[batch.source] & keep[batch.target]}
    place = {level: rows.long().cumsum(0) - 1 for level, rows in kept.items()}
    levels = {}
    for name, rows in kept.items():
        entry = batch[name]
        arrays = {key: values[rows] for key, values in entry.arrays.items()}
        if name == "bond":
            arrays |= {key: place[of][arrays[key]] for key, of in BOND_INDEX.items() if key in arrays}
        offsets = torch.cat([place[name].new_zeros(1), place[name] + 1])[entry.offsets]
        levels[name] = BatchLevel(offsets, arrays, entry.table)
    return GraphBatch(batch.n_graphs, levels)


def last_graphs(batch: GraphBatch, n: int) -> GraphBatch:
    """The batch of the last n graphs of a batch.

    Example:
        >>> import numpy as np
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> made = last_graphs(collate(featurize(["CCO", "CN"]), np.arange(2)), 1)
        >>> made["atom"].offsets.tolist(), made.source.tolist(), made.reverse.tolist()
        ([0, 2], [1, 0], [1, 0])
    """
    first = {name: int(level.offsets[batch.n_graphs - n]) for name, level in batch.levels.items()}
    levels = {}
    for name, level in batch.levels.items():
        arrays = {key: values[first[name] :] for key, values in level.arrays.items()}
        if name == "bond":
            arrays |= {key: arrays[key] - first[of] for key, of in BOND_INDEX.items() if key in arrays}
        levels[name] = BatchLevel(level.offsets[batch.n_graphs - n :] - first[name], arrays, level.table)
    return GraphBatch(n, levels)
