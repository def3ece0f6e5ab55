"""Compute random-walk positional encodings: the probabilities that a walk returns to its atom."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse import coo_array
from torch import Tensor

from molgraph.data.batch import GraphBatch
from molgraph.nn.relations import once_a_batch


@once_a_batch
def walk_returns(batch: GraphBatch, steps: int) -> Float[Tensor, "n_atoms steps"]:
    """Float32 [n_atoms, steps]: the chance that a walk of 1, 2, ... steps along bonds ends where it began.

    Dwivedi et al. 2022, "Graph Neural Networks with Learnable Structural and Positional Representations", equation 12:
    the diagonals of ``(A D^-1)^k``. An atom without bonds has zeros.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> walk_returns(collate(featurize(["CCO"]), np.arange(1)), 3).tolist()
        [[0.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.0]]
    """
    source, target, n = batch.source.numpy(force=True), batch.target.numpy(force=True), batch.n_atoms
    degree = np.bincount(source, minlength=n).clip(min=1)
    # D^-1/2 A D^-1/2 is symmetric and its powers have the same diagonals: those of S^(a + b) are row sums of S^a * S^b
    step = coo_array((1 / np.sqrt(degree[source] * degree[target]), (target, source)), shape=(n, n)).tocsr()
    out, walk = np.zeros((n, steps), np.float32), step
    out[:, 0] = step.diagonal()
    for k in range(1, steps):
        before, walk = walk, walk if k % 2 else walk @ step
        out[:, k] = before.multiply(walk).sum(axis=1)
    return torch.from_numpy(out).to(batch.source.device)
