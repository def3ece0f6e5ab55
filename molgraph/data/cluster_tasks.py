"""Make classification tasks of molecules without labels, by clusters of their vectors (CACTUs)."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from molgraph.base.errors import EmptyError
from molgraph.base.seeds import derive, generator


def partitions(x: np.ndarray, clusters: int, number: int, *, scaling: float = 1.0, seed: int = 0) -> np.ndarray:
    """Divide rows into clusters several times, each time in another metric.

    Hsu et al. 2019, "Unsupervised Learning via Meta-Learning", section 3.3: k-means under a random diagonal rescaling,
    which is drawn here as ``exp(scaling z)`` with normal z for each component of the vectors, all of unit variance.

    Args:
        x: float [n, d], vectors of molecules.
        clusters: of each partition (k).
        number: partitions (P).
        scaling: spread of the rescaling; 0 gives the same partition each time.
        seed: of the rescaling and of k-means, which has one start for all partitions.

    Returns:
        int [number, n]: clusters from 0.
    """
    z = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-8)
    rng, first = generator(seed, "cluster tasks"), derive(seed, "k-means") % 2**31
    weights = np.exp(scaling * rng.normal(size=(number, x.shape[1])))
    make = MiniBatchKMeans(clusters, batch_size=2048, n_init=3, random_state=first)
    return np.stack([make.fit_predict(z * weight) for weight in weights])


def cluster_tasks(
    x: np.ndarray,
    tasks: int,
    *,
    clusters: int = 50,
    number: int = 16,
    least: int = 20,
    scaling: float = 1.0,
    seed: int = 0,
) -> np.ndarray:
    """Tasks of two classes: the members of one cluster against those of another of the same partition.

    Args:
        x: float [n, d], vectors of molecules.
        tasks: how many.
        clusters: of each partition.
        number: partitions.
        least: members below which a cluster is left out.
        scaling: spread of the rescaling.
        seed: of everything.

    Returns:
        float64 [n, tasks]: 1 or 0, and NaN for molecules of other clusters.

    Raises:
        EmptyError: no partition has two clusters of that size.
    """
    rng, assignments = generator(seed, "pairs of clusters"), np.zeros((0, len(x)), np.int64)
    if len(x) >= clusters:
        assignments = partitions(x, clusters, number, scaling=scaling, seed=seed)
    large = [np.flatnonzero(np.bincount(assignment, minlength=clusters) >= least) for assignment in assignments]
    usable = [i for i, labels in enumerate(large) if len(labels) > 1]
    if not usable:
        words = f"no partition of {len(x):,} molecules into {clusters} clusters has two of {least} members"
        raise EmptyError(words, hint="fewer clusters, or a larger library")
    y = np.full((len(x), tasks), np.nan)
    for task in range(tasks):
        part = usable[task % len(usable)]
        one, other = rng.choice(large[part], 2, replace=False)
        y[assignments[part] == one, task], y[assignments[part] == other, task] = 1.0, 0.0
    return y
