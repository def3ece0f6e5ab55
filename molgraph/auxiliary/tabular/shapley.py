"""Compute exact Shapley values of features in a sum of decision trees, against one reference row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from molgraph.base.errors import DamagedModelError

DEEPEST = 5_000  # levels of a tree


class Trees(NamedTuple):
    """Trees as ``MeanOfTrees`` keeps them, with one value a leaf."""

    offsets: np.ndarray  # int64 [n_trees + 1]
    left: np.ndarray  # int [n_nodes]: the left child, counted from the root; 0 for a leaf
    feature: np.ndarray  # int [n_nodes]
    threshold: np.ndarray  # float64 [n_nodes]: rows with at most this go left
    value: np.ndarray  # float64 [n_nodes]


class _Level(NamedTuple):
    """Paths of one length, of all trees."""

    parent: np.ndarray  # int64: the path of the level before
    feature: np.ndarray  # int64: the feature that was decided in the last step; -1 for none
    from_x: np.ndarray  # bool: whether it was taken from x


def shapley_values(trees: Trees, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """float64 [width]: the Shapley value of each feature in ``v(S) = sum of trees at (x in S, reference elsewhere)``.

    Lundberg et al. 2020, Nat. Mach. Intell. 2:56, section "interventional": a leaf that is reached where the a features
    A come from x and the b features B from the reference adds ``v (a - 1)! b! / (a + b)!`` to each of A and takes
    ``v a! (b - 1)! / (a + b)!`` from each of B. All paths of all trees are walked level by level. The values sum to
    ``f(x) - f(reference)``.

    Args:
        trees: the trees.
        x, reference: float [width].

    Example:
        >>> stump = Trees(np.array([0, 3]), np.array([1, 0, 0]), np.array([1, 0, 0]), np.full(3, 0.5), np.arange(3.0))
        >>> shapley_values(stump, np.array([1.0, 1.0]), np.zeros(2)).tolist()
        [0.0, 1.0]
    """
    root = trees.offsets[:-1].astype(np.int64)
    node, n = root.copy(), len(root)
    decided = np.zeros((n, 0), dtype=np.int64)  # the feature of each step; -1 where none was decided
    sides = np.zeros((n, 0), dtype=bool)
    levels, leaves = [_Level(np.arange(n), np.full(n, -1), np.zeros(n, dtype=bool))], []
    while len(node):
        if len(levels) > DEEPEST:
            raise DamagedModelError("a tree of the forest is too deep to be walked", hint="fetch the file again")
        inner = trees.left[node] != 0
        leaves.append((~inner, trees.value[node] * ~inner, *_counts(decided, sides)))
        place = np.flatnonzero(inner)
        at, base = node[place], root[place]
        f = trees.feature[at].astype(np.int64)
        by_x, by_r = x[f] > trees.threshold[at], reference[f] > trees.threshold[at]
        same = decided[place] == f[:, None]
        known = same.any(axis=1)
        side = (same & sides[place]).any(axis=1)
        one = known | (by_x == by_r)  # the other way is not open
        right = np.where(known, np.where(side, by_x, by_r), by_x)
        both = np.flatnonzero(~one)
        parent = np.concatenate([place[one], place[both], place[both]])
        feature = np.concatenate([np.full(int(one.sum()), -1), f[both], f[both]])
        from_x = np.concatenate([np.zeros(int(one.sum()), bool), np.ones(len(both), bool), np.zeros(len(both), bool)])
        go = np.concatenate([right[one], by_x[both], by_r[both]])
        start = np.concatenate([base[one], base[both], base[both]])
        first = np.concatenate([at[one], at[both], at[both]])
        node, root = start + trees.left[first] + go, start
        decided = np.column_stack([decided[parent], feature])
        sides = np.column_stack([sides[parent], from_x])
        levels.append(_Level(parent, feature, from_x))
    return _gathered(levels, leaves, len(x))


def _counts(decided: np.ndarray, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many features each path took from x, and how many from the reference."""
    some = decided >= 0
    return (some & sides).sum(axis=1), (some & ~sides).sum(axis=1)


def _gathered(levels: list[_Level], leaves: Sequence[tuple[np.ndarray, ...]], width: int) -> np.ndarray:
    """Add the leaves' terms up, from the longest paths to the roots."""
    totals = np.zeros(width)
    up_x, up_r = np.zeros(0), np.zeros(0)  # sums over the leaves below each path of the level after
    for depth in range(len(leaves) - 1, -1, -1):
        _, value, a, b = leaves[depth]
        own_x = value * (a > 0) * np.exp(gammaln(np.maximum(a, 1)) + gammaln(b + 1) - gammaln(a + b + 1))
        own_r = value * (b > 0) * np.exp(gammaln(a + 1) + gammaln(np.maximum(b, 1)) - gammaln(a + b + 1))
        below = levels[depth + 1]
        own_x += np.bincount(below.parent, up_x, len(value))
        own_r += np.bincount(below.parent, up_r, len(value))
        here = levels[depth]
        ours, theirs = (here.feature >= 0) & here.from_x, (here.feature >= 0) & ~here.from_x
        totals += np.bincount(here.feature[ours], own_x[ours], width)
        totals -= np.bincount(here.feature[theirs], own_r[theirs], width)
        up_x, up_r = own_x, own_r
    return totals
