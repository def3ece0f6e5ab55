"""Keep the trees of random forests and boosted trees as flat arrays, and predict one target with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from molgraph.auxiliary.tabular.shapley import Trees, shapley_values
from molgraph.auxiliary.tabular.target_model import (
    SharesScore,
    StoredTarget,
    TargetData,
    TargetPrediction,
    values_of_scores,
)
from molgraph.base.contracts import Target
from molgraph.base.errors import DamagedModelError
from molgraph.base.packed import offsets_of

PAIRS = 40_000  # (row, tree) pairs walked at once: their arrays stay in the processor's cache
DEEPEST = 5_000  # levels of a tree
FIRST_DROP = 4  # level from which pairs that reached a leaf are set aside


class Nodes(NamedTuple):
    """One binary tree as libraries keep it, its root first."""

    left: np.ndarray  # int [n]: the children's numbers; -1 for a leaf
    right: np.ndarray  # int [n]: the children's numbers; -1 for a leaf
    feature: np.ndarray  # int [n]: the column that a node looks at
    threshold: np.ndarray  # float [n]: rows with at most this go left
    value: np.ndarray  # float [n, k]: the values of the leaves


@dataclass(frozen=True)
class MeanOfTrees(SharesScore):
    """The mean of trees whose leaves hold values, P(class 1), or one probability a class: a random forest.

    The trees stand one after the other, and siblings side by side, after their parent.
    """

    score_name: ClassVar[str] = "probability"

    target: Target
    width: int  # number of columns of the input
    offsets: np.ndarray  # int64 [n_trees + 1]: tree t's nodes are ``offsets[t]:offsets[t + 1]``, its root first
    # int32 [n_nodes]: the left child, counted from the tree's root; the right one is the next; 0 for a leaf
    left: np.ndarray
    feature: np.ndarray  # int32 [n_nodes]: the column that a node looks at; 0 for a leaf
    threshold: np.ndarray  # float64 [n_nodes]: rows with at most this go left; 0 for a leaf
    value: np.ndarray  # float64 [n_nodes, k]: the values of the leaves; zeros elsewhere

    @classmethod
    def from_nodes(cls, target: Target, trees: Iterable[Nodes], width: int, **more: np.ndarray) -> Self:
        """Trees of any library, for inputs of that many columns; ``more`` are the fields of a subclass."""
        left, feature, threshold, value, sizes = [], [], [], [], []
        for tree in trees:
            order, first = _siblings_adjacent(tree.left, tree.right)
            leaf = first == 0
            left.append(first)
            feature.append(np.where(leaf, 0, tree.feature[order]))
            threshold.append(np.where(leaf, 0.0, tree.threshold[order]))
            value.append(np.where(leaf[:, None], tree.value[order], 0.0))
            sizes.append(len(order))
        return cls(
            target,
            width,
            offsets=offsets_of(sizes),
            left=np.concatenate(left).astype(np.int32),
            feature=np.concatenate(feature).astype(np.int32),
            threshold=np.concatenate(threshold),
            value=np.concatenate(value),
            **more,
        )

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        k = len(stored.target.columns)
        offsets, left = stored.array("offsets", None), stored.array("left", None)
        n = len(left)
        feature, threshold = stored.array("feature", n), stored.array("threshold", n)
        value, sizes = stored.array("value", n, k), np.diff(offsets)
        if any(array.dtype.kind != "i" for array in (offsets, left, feature)):
            raise ValueError("the forest's arrays are of other types")
        if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != n or (sizes < 1).any():
            raise ValueError("the forest's trees do not cover its nodes")
        place = np.arange(n) - np.repeat(offsets[:-1], sizes)
        # children after their parent and inside the tree: a walk moves forward and ends
        if ((left != 0) & ((left <= place) | (left >= np.repeat(sizes, sizes) - 1))).any():
            raise ValueError("a tree of the forest points outside itself")
        if (feature < 0).any() or (feature >= stored.width).any():
            raise ValueError(f"the forest looks at a column beyond its {stored.width}")
        return cls(stored.target, stored.width, offsets, left, feature, threshold, value, **cls._more(stored))

    @classmethod
    def _more(cls, stored: StoredTarget) -> dict[str, np.ndarray]:
        """The stored arrays of a subclass."""
        return {}

    def predict(self, x: np.ndarray) -> TargetPrediction:
        return TargetPrediction(self.mean(x))

    def scores(self, x: np.ndarray) -> np.ndarray:
        """The means, which are the values."""
        return self.mean(x)

    def shares(self, x: np.ndarray, reference: np.ndarray, column: int) -> np.ndarray:
        """Shapley values of the features of one row."""
        trees = Trees(self.offsets, self.left, self.feature, self.threshold, self.value[:, column])
        return shapley_values(trees, x, reference) / self._divided_by

    @property
    def _divided_by(self) -> int:
        """What the sum of the trees is divided by."""
        return len(self.offsets) - 1

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Mean over the trees, float64 [n, k], summed in their order: the same for a row whatever stands beside it."""
        n_trees = len(self.offsets) - 1
        out = np.empty((len(x), self.value.shape[1]))
        block = max(1, PAIRS // n_trees)
        for start in range(0, len(x), block):
            leaves = self._leaves(x[start : start + block])
            for c in range(out.shape[1]):
                # accumulate adds strictly from the first tree to the last; sum() would pair them up by shape
                total = np.add.accumulate(self.value[:, c].take(leaves), axis=0)[-1]
                out[start : start + block, c] = total / n_trees
        return out

    def _leaves(self, x: np.ndarray) -> np.ndarray:
        """int64 [n_trees, n]: the leaf that each row reaches in each tree."""
        roots, n = self.offsets[:-1], len(x)
        leaves = np.empty(n * len(roots), dtype=np.int64)
        values, pair = x.ravel(), np.arange(n * len(roots))
        row, node = np.tile(np.arange(n) * self.width, len(roots)), np.repeat(roots, n)
        root, level = node, 0
        while len(pair):
            if level > DEEPEST:
                raise DamagedModelError("a tree of the forest is too deep to be walked", hint="fetch the file again")
            if level >= FIRST_DROP and level % 2 == 0:
                inner = self.left.take(node) != 0
                leaves[pair[~inner]] = node[~inner]
                pair, row, node, root = pair[inner], row[inner], node[inner], root[inner]
            left = self.left.take(node)
            right = values.take(row + self.feature.take(node)) > self.threshold.take(node)
            node = np.where(left == 0, node, root + left + right)
            level += 1
        return leaves.reshape(len(roots), n)


@dataclass(frozen=True)
class SumOfTrees(MeanOfTrees):
    """The sum of trees whose leaves hold scores, in one column or one a class: boosted trees."""

    score_name: ClassVar[str] = "log-odds"

    bias: np.ndarray  # float64 [k], the score that the sum starts from

    def predict(self, x: np.ndarray) -> TargetPrediction:
        return TargetPrediction(values_of_scores(self.target, self.scores(x)))

    def scores(self, x: np.ndarray) -> np.ndarray:
        """The sums of the trees: numbers, or log-odds."""
        return self.mean(x) * (len(self.offsets) - 1) + self.bias

    @property
    def _divided_by(self) -> int:
        return 1

    @classmethod
    def _more(cls, stored: StoredTarget) -> dict[str, np.ndarray]:
        return {"bias": stored.array("bias", len(stored.target.columns))}

    @classmethod
    def constant(cls, data: TargetData) -> Self | None:
        """A tree of one leaf where no feature varies, which the libraries refuse to fit; else None."""
        if len(data.x) and (data.x != data.x[0]).any():
            return None
        n, w = data.n_classes, data.weights
        if not n:
            bias = np.array([np.average(data.y, weights=w)])
        else:
            counts = np.bincount(data.y.astype(np.int64), weights=w, minlength=n) + 1e-6
            bias = np.log(counts / counts.sum())
            bias = bias[1:] - bias[:1] if data.target.kind == "binary" else bias
        none = np.full(1, -1)
        leaf = Nodes(none, none, np.zeros(1, int), np.zeros(1), np.zeros((1, len(bias))))
        return cls.from_nodes(data.target, [leaf], data.x.shape[1], bias=bias)


def _siblings_adjacent(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes in breadth-first order, and each one's left child in that order (0 for a leaf)."""
    levels = [np.zeros(1, dtype=np.int64)]
    while len(levels[-1]):
        parents = levels[-1][left[levels[-1]] >= 0]
        levels.append(np.stack([left[parents], right[parents]], axis=1).ravel())
    order = np.concatenate(levels)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    children = left[order]
    return order, np.where(children < 0, 0, place[children])
