"""Cut molecules into ring systems and chains: a partition of each molecule's atoms into fragments."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from molgraph.data.batch import GraphBatch
from molgraph.nn.relations import once_a_batch

IN_RING = 6  # column of a bond's features


@once_a_batch
def ring_chains(batch: GraphBatch) -> Int[Tensor, " n"]:
    """The fragment of each atom: rings that share atoms, and the connected atoms between and beside ring systems.

    Bonds are kept where they are in a ring, or join two atoms of which neither is in one. Fragments are numbered over
    the whole batch, by their first atoms.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> ring_chains(collate(featurize(["CCc1ccccc1", "O"]), np.arange(2))).tolist()
        [0, 0, 1, 1, 1, 1, 1, 1, 2]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ring = batch.features("bond")[:, IN_RING].numpy(force=True) > 0
    source, target, n = batch.source.numpy(force=True), batch.target.numpy(force=True), batch.n_atoms
    cyclic = np.bincount(target, ring, minlength=n) > 0
    keep = ring | ~(cyclic[source] | cyclic[target])
    graph = csr_array((np.ones(int(keep.sum())), (source[keep], target[keep])), shape=(n, n))
    _, label = connected_components(graph, directed=False)
    return torch.from_numpy(label.astype(np.int64)).to(batch.target.device)
