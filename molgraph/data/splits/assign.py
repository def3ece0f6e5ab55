"""Fill parts and folds with whole groups of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.base.seeds import generator


def fill_parts(
    sizes: np.ndarray, fractions: tuple[float, float, float], seed: int, *, balanced: bool = False
) -> np.ndarray:
    """The part (0 train, 1 valid, 2 test) of each group; ``sizes`` int64 [n_groups] are their rows.

    Balanced: groups larger than half of the smallest part that was asked for go to train, largest first, as long as
    they fit there. All other groups are shuffled by the seed; each goes to the first of train, valid and
    test that it fits in, and where it fits in none to the one that lacks most rows (train before the others).

    Example:
        >>> int(fill_parts(np.array([8, 1, 1]), (0.8, 0.1, 0.1), seed=0, balanced=True)[0])
        0
    """
    total = int(sizes.sum())
    # Rounded edges, so that the three targets are whole and sum to the total.
    edges = np.rint(np.cumsum((0.0, *fractions)) * total).astype(np.int64)
    room = np.diff(edges)
    part_of = np.full(len(sizes), -1, dtype=np.int64)
    asked = [k for k in range(3) if fractions[k] > 0]
    if balanced and len(asked) > 1:
        limit = min(room[k] for k in asked) / 2
        large = np.flatnonzero(sizes > limit)
        for g in large[np.argsort(-sizes[large], kind="stable")]:
            if 0 in asked and sizes[g] <= room[0]:
                part_of[g] = 0
                room[0] -= sizes[g]
    rest = np.flatnonzero(part_of < 0)
    for g in generator(seed, "split").permutation(rest):
        fits = [k for k in asked if sizes[g] <= room[k]]
        k = fits[0] if fits else max(asked, key=lambda part: room[part])
        part_of[g] = k
        room[k] -= sizes[g]
    return part_of


def fill_evenly(counts: np.ndarray, shares: Sequence[float], seed: int) -> np.ndarray:
    """The part or fold of each group, so that each gets its share of every column, as well as whole groups allow.

    ``counts`` int64 [n_groups, n_columns], such as rows, and rows of each class; a part of share 0 gets nothing.

    The greedy rule of scikit-learn's ``StratifiedGroupKFold``, for shares that differ: groups that hold most of any
    column come first, ties shuffled by the seed; each goes where the squared deviations from the shares, relative to
    them, become smallest. Then a part that has nothing of a column gets a group from one that can spare it.

    Example:
        >>> counts = np.array([[6, 0], [1, 1], [1, 1], [1, 1], [1, 0]])  # rows; hits
        >>> sorted(fill_evenly(counts, (0.6, 0.2, 0.2), seed=0)[1:4].tolist())
        [0, 1, 2]
    """
    asked = np.flatnonzero(np.asarray(shares) > 0)
    share = np.asarray(shares, dtype=np.float64)[asked]
    counts = counts[:, counts.any(axis=0)]
    weight = counts / counts.sum(axis=0)
    order = generator(seed, "evenly").permutation(len(counts))
    order = order[np.argsort(-weight.max(axis=1, initial=0.0)[order], kind="stable")]
    filled = np.zeros((len(asked), counts.shape[1]))
    part_of = np.full(len(counts), -1)
    for g in order:
        cost = ((2 * (filled - share[:, None]) + weight[g]) * weight[g]).sum(axis=1) / share
        part_of[g] = int(cost.argmin())
        filled[part_of[g]] += weight[g]
    _fill_gaps(counts, part_of, len(asked))
    return asked[part_of]


def _fill_gaps(counts: np.ndarray, part_of: np.ndarray, k: int) -> None:
    """Move groups, in place, to parts that have nothing of a column, while fewer such gaps are left."""
    has = counts > 0
    groups = np.stack([has[part_of == part].sum(axis=0) for part in range(k)])  # groups of each part with each column
    while not groups.all():
        best: tuple[int, int, int, int] | None = None
        for part, column in zip(*np.nonzero(groups == 0), strict=True):
            for g in np.flatnonzero(has[:, column]):
                opened = int((has[g] & (groups[part_of[g]] == 1)).sum())
                closed = int((has[g] & (groups[part] == 0)).sum())
                move = (opened - closed, int(counts[g, 0]), int(g), int(part))
                best = move if best is None else min(best, move)
        if best is None or best[0] >= 0:
            return
        _, _, moved, to = best
        groups[part_of[moved]] -= has[moved]
        groups[to] += has[moved]
        part_of[moved] = to


def fill_folds(sizes: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The fold of each group: each goes to a fold with fewest rows, those first that tend to be large.

    Groups come in the order of their sizes times a random factor of 1/4 to 4: by the sizes alone the largest are
    in the same folds in every repeat (on BACE's scaffolds 40% of the rows kept their fold between repeats, by chance
    20%); small groups come last, so that the folds are equally large.

    Example:
        >>> folds = fill_folds(np.ones(6, dtype=np.int64), 3, seed=0)
        >>> np.bincount(folds).tolist()
        [2, 2, 2]
    """
    drawn = generator(seed, "folds")
    order = np.argsort(-sizes * 4.0 ** drawn.uniform(-1, 1, len(sizes)), kind="stable")
    filled, name = np.zeros(k, dtype=np.int64), drawn.permutation(k)
    fold_of = np.empty(len(sizes), dtype=np.int64)
    for g in order:
        fold = int(filled.argmin())
        fold_of[g] = name[fold]
        filled[fold] += sizes[g]
    return fold_of
