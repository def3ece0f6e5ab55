"""Name hidden units by SMARTS: from the atoms that excite a unit most, or from the molecules that it tells apart."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from molgraph.base.seeds import generator
from molgraph.chem.atom_labels import AtomLabels

DRAWS, PERMUTATIONS = 2000, 200  # of the null: random units; permutations of each size of a code
EPS = 0.05  # share of molecules that a listener takes for others
By = Literal["exemplars", "belief", "overlap"]
TIE = 1e-9  # scores that differ by less are equal


def exemplars(values: np.ndarray, start: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [k, units]: of the k molecules that excite each unit most, the atom that does; ties are broken at random.

    Args:
        values: float [atoms, units].
        start: int64 [molecules], the first atom of each.
        k: molecules.
        rng: for ties.
    """
    n, shuffled = len(values), rng.permutation(len(values))
    top = np.maximum.reduceat(values, start, axis=0)
    size = np.diff([*start, n])
    # of equal atoms the one that comes first in a random order
    first = np.minimum.reduceat(np.where(values == np.repeat(top, size, axis=0), shuffled[:, None], n), start, axis=0)
    order = rng.permutation(len(start))
    best = order[np.argsort(-top[order], axis=0, kind="stable")[:k]]
    return np.asarray(np.argsort(shuffled)[np.take_along_axis(first, best, axis=0)])


def information(share: np.ndarray, usual: np.ndarray, k: int, prior: float) -> np.ndarray:
    """``log p(d | E) - prior log p(d)`` of each label, from its share of k exemplars and of all atoms.

    Hernandez et al. 2022, equation 2. A half is added to what is counted, so that none is certain.
    """
    return np.asarray(np.log((share * k + 0.5) / (k + 1)) - prior * np.log(usual))


def exemplar_names(values: np.ndarray, labels: AtomLabels, *, k: int, prior: float, seed: int) -> pd.DataFrame:
    """A row a unit: the label of most information about its exemplars, and how often a random unit has as much.

    The exemplars are one atom of each of k molecules. ``p`` is the share of random units whose best label of all
    has as much information.

    Args:
        values: float [atoms, units], states.
        labels: of those atoms.
        k: exemplars.
        prior: weight of how usual a label is; 0: the commonest ones win.
        seed: of ties and of the random units.
    """
    rng, usual = generator(seed, "exemplars"), labels.has.mean(axis=0)
    score, share = _scores(values, labels, k, prior, rng)
    best = score.argmax(axis=1)
    chance = np.concatenate(
        [_scores(rng.random((len(values), 100)), labels, k, prior, rng)[0].max(axis=1) for _ in range(DRAWS // 100)]
    )
    rows = np.arange(len(best))
    frame = _named(labels, best, score[rows, best], _tail(chance, score[rows, best], rng))
    frame.insert(2, "share", share[rows, best])
    frame.insert(3, "usual", usual[best])
    return frame


def _scores(
    values: np.ndarray, labels: AtomLabels, k: int, prior: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """float64 [units, m]: information of each label, and its share of the exemplars."""
    share = labels.has[exemplars(values, labels.start, k, rng)].mean(axis=0)
    return information(share, labels.has.mean(axis=0), k, prior), share


def codes(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """bool [molecules, units]: whether a molecule's largest value is in the upper of two groups of least variance.

    Args:
        values: float [atoms, units].
        start: int64 [molecules], the first atom of each.
    """
    top = np.maximum.reduceat(values, start, axis=0)
    code = np.zeros(top.shape, dtype=bool)
    for unit, column in enumerate(top.T):
        x = np.sort(column)
        n, total = np.arange(1, len(x)), np.cumsum(x)[:-1]
        between = (total / n - (x.sum() - total) / (len(x) - n)) ** 2 * n * (len(x) - n)
        between[x[1:] <= x[:-1]] = -1  # between equal values there is no border
        code[:, unit] = column >= x[between.argmax() + 1]
    return code


def belief_distance(code: np.ndarray, has: np.ndarray, by: By = "belief", eps: float = EPS) -> np.ndarray:
    """float64 [codes, m]: ``KL(p(x | code) || p(x | label))`` over a population of n molecules x.

    Andreas et al. 2017, equation 1, without the listener's own context: ``p(x | code)`` is uniform over the molecules
    with the code, and ``p(x | label)`` that of a listener who takes a share ``eps`` of molecules for others, without
    which the distance would be infinite. ``overlap``: ``-p(label | code)``, the co-occurrence that it is compared with.

    Args:
        code: bool [n, codes].
        has: bool [n, m].
        by: ``belief`` or ``overlap``.
        eps: of the listener.
    """
    size, n = np.maximum(code.sum(axis=0), 1)[:, None].astype(np.float64), has.shape[0]
    both = (code.T.astype(np.float32) @ has.astype(np.float32)) / size
    if by == "overlap":
        return np.asarray(-both)
    total = has.sum(axis=0)
    mass = (1 - eps) * total + eps * (n - total)
    return np.asarray(np.log(mass) - np.log(size) - both * np.log(1 - eps) - (1 - both) * np.log(eps))


def belief_names(values: np.ndarray, labels: AtomLabels, *, by: By, eps: float, seed: int) -> pd.DataFrame:
    """A row a unit: the label whose molecules are believed most like those that the unit is on for.

    ``share``: of those molecules that have the label; ``usual``: of all. ``p`` is the share of as large random sets of
    molecules whose nearest label of all is as near.

    Args:
        values: float [atoms, units].
        labels: of those atoms.
        by: ``belief`` or ``overlap``.
        eps: of the listener.
        seed: of the random sets.
    """
    rng, has, code = generator(seed, "belief"), labels.of_molecules, codes(values, labels.start)
    distance = belief_distance(code, has, by, eps)
    best, rows, p = distance.argmin(axis=1), np.arange(code.shape[1]), np.ones(code.shape[1])
    shuffled = np.argsort(rng.random((len(has), PERMUTATIONS)), axis=0)
    for size in np.unique(code.sum(axis=0)):
        mask = code.sum(axis=0) == size
        chance = belief_distance(shuffled < size, has, by, eps).min(axis=1)
        p[mask] = _tail(-chance, -distance[rows, best][mask], rng)
    frame = _named(labels, best, -distance[rows, best], p)
    both = (code & has[:, best]).sum(axis=0) / np.maximum(code.sum(axis=0), 1)
    frame.insert(2, "share", both)
    frame.insert(3, "usual", has[:, best].mean(axis=0))
    return frame


def _tail(chance: np.ndarray, score: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """float64 [n]: the share of chance scores, and the score itself, that are as high; equal ones are put in a random
    order, so that p is uniform where there is nothing."""
    ordered = np.sort(chance + rng.uniform(0, TIE, chance.shape))
    return (1 + len(ordered) - np.searchsorted(ordered, score + rng.uniform(0, TIE, score.shape))) / (1 + len(ordered))


def _named(labels: AtomLabels, best: np.ndarray, score: np.ndarray, p: np.ndarray) -> pd.DataFrame:
    columns = {"unit": np.arange(len(best)), "name": [labels.names[m] for m in best], "score": score, "p": p}
    more = {"q": false_discovery_control(p) if len(p) else p, "smarts": [labels.smarts[m] for m in best]}
    return pd.DataFrame(columns | more)
