"""Turn fitted trees into flat arrays that can be saved, checked and walked by numpy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from molgraph.base.errors import ModelFileError
from molgraph.base.packed import offsets_of
from molgraph.base.size import Shapes, Size

PAIRS = 40_000  # (row, tree) pairs walked at once: their arrays stay in the processor's cache
DEEPEST = 5_000  # levels of a tree
FIRST_DROP = 4  # level from which pairs that reached a leaf are set aside


@dataclass(frozen=True)
class Nodes:
    """One binary tree as libraries keep it, its root first.

    Args:
        left, right: int [n]: the children's numbers; -1 for a leaf.
        feature: int [n]: the column that a node looks at.
        threshold: float [n]: rows with at most this go left.
        value: float [n, k]: what a leaf says.
    """

    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class Trees:
    """Binary trees, one after the other; siblings stand side by side, after their parent.

    Args:
        offsets: int64 [n_trees + 1]: tree t's nodes are ``offsets[t]:offsets[t + 1]``, its root first.
        left: int32 [n_nodes]: the left child, counted from the tree's root; the right one is the next; 0 for a leaf.
        feature: int32 [n_nodes]: the column that a node looks at; 0 for a leaf.
        threshold: float64 [n_nodes]: rows with at most this go left; 0 for a leaf.
        value: float64 [n_nodes, k]: what a leaf says; zeros elsewhere.
        width: number of columns of the input.
    """

    offsets: np.ndarray
    left: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    width: int

    def __post_init__(self) -> None:
        self._check()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], width: int) -> Trees:
        """Trees from a file's arrays; raises ``ModelFileError`` where one could lead a walk astray."""
        names = ("offsets", "left", "feature", "threshold", "value")
        missing = [name for name in names if name not in arrays]
        if missing:
            raise ModelFileError(f"the forest lacks its arrays {missing}", hint="fetch the file again")
        offsets, left, feature, threshold, value = (np.asarray(arrays[name]) for name in names)
        return cls(offsets, left, feature, threshold, value, width)

    @classmethod
    def from_sklearn(
        cls, estimators: Iterable[Any], width: int, columns: np.ndarray | None = None, k: int = 1
    ) -> Trees:
        """Trees of fitted scikit-learn estimators.

        Args:
            estimators: decision trees of one output.
            width: number of columns that they were fitted on.
            columns: for each of the estimators' classes the column of ``value`` it goes to, -1 for none;
                None for a regression.
            k: width of ``value``.
        """
        nodes = []
        for estimator in estimators:
            tree = estimator.tree_
            value = np.zeros((tree.node_count, k))
            for c, column in enumerate([0] if columns is None else columns):
                if column >= 0:
                    value[:, column] = tree.value[:, 0, c]
            nodes.append(Nodes(tree.children_left, tree.children_right, tree.feature, tree.threshold, value))
        return cls.from_nodes(nodes, width)

    @classmethod
    def from_nodes(cls, trees: Iterable[Nodes], width: int) -> Trees:
        """Trees of any library, for inputs of that many columns."""
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
            offsets=offsets_of(sizes),
            left=np.concatenate(left).astype(np.int32),
            feature=np.concatenate(feature).astype(np.int32),
            threshold=np.concatenate(threshold),
            value=np.concatenate(value),
            width=width,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """The five arrays by name."""
        return {n: getattr(self, n) for n in ("offsets", "left", "feature", "threshold", "value")}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Mean over the trees, summed in their order: the same for a row whatever stands beside it.

        Args:
            x: float32 [n, width], finite.

        Returns:
            float64 [n, k].
        """
        if x.ndim != 2 or x.shape[1] != self.width:
            raise ValueError(f"x has shape {x.shape}, expected [n, {self.width}]")
        out = np.empty((len(x), self.value.shape[1]))
        block = max(1, PAIRS // len(self))
        for start in range(0, len(x), block):
            leaves = self._leaves(x[start : start + block])
            for c in range(out.shape[1]):
                # accumulate adds strictly from the first tree to the last; sum() would pair them up by shape
                total = np.add.accumulate(self.value[:, c].take(leaves), axis=0)[-1]
                out[start : start + block, c] = total / len(self)
        return out

    def _leaves(self, x: np.ndarray) -> np.ndarray:
        """int64 [n_trees, n]: the leaf that each row reaches in each tree."""
        roots, n = self.offsets[:-1], len(x)
        leaves = np.empty(n * len(self), dtype=np.int64)
        values, pair = x.ravel(), np.arange(n * len(self))
        row, node = np.tile(np.arange(n) * self.width, len(self)), np.repeat(roots, n)
        root, level = node, 0
        while len(pair):
            if level >= FIRST_DROP and level % 2 == 0:
                inner = self.left.take(node) != 0
                leaves[pair[~inner]] = node[~inner]
                pair, row, node, root = pair[inner], row[inner], node[inner], root[inner]
            left = self.left.take(node)
            right = values.take(row + self.feature.take(node)) > self.threshold.take(node)
            node = np.where(left == 0, node, root + left + right)
            level += 1
        return leaves.reshape(len(self), n)

    def _check(self) -> None:
        n = len(self.left) if self.left.ndim == 1 else -1
        k = self.value.shape[1] if self.value.ndim == 2 else 0
        shapes = {"feature": (n,), "threshold": (n,), "value": (n, k), "left": (n,)}
        kinds = {"offsets": "i", "left": "i", "feature": "i", "threshold": "f", "value": "f"}
        whole = all(getattr(self, name).shape == shape for name, shape in shapes.items()) and k > 0
        if not whole or any(getattr(self, name).dtype.kind != kind for name, kind in kinds.items()):
            raise ModelFileError("the forest's arrays do not fit each other", hint="fetch the file again")
        o = self.offsets
        if o.ndim != 1 or len(o) < 2 or o[0] != 0 or o[-1] != n or (np.diff(o) < 1).any():
            raise ModelFileError("the forest's trees do not cover its nodes", hint="fetch the file again")
        if not (np.isfinite(self.threshold).all() and np.isfinite(self.value).all()):
            raise ModelFileError("the forest holds values that are not finite", hint="fetch the file again")
        size = np.repeat(np.diff(o), np.diff(o))
        place = np.arange(n) - np.repeat(o[:-1], np.diff(o))
        inner = self.left != 0
        # children after their parent and inside the tree: a walk moves forward and ends
        if (inner & ((self.left <= place) | (self.left >= size - 1))).any():
            raise ModelFileError("a tree of the forest points outside itself", hint="fetch the file again")
        self._check_paths(o, inner)
        if (self.feature < 0).any() or (self.feature >= self.width).any():
            raise ModelFileError(f"the forest looks at a column beyond its {self.width}", hint="fetch the file again")

    def _check_paths(self, offsets: np.ndarray, inner: np.ndarray) -> None:
        """Every node but a root is one node's child, and no path is longer than trees of data grow."""
        root = np.repeat(offsets[:-1], np.diff(offsets))
        first = root + self.left
        parents = np.zeros(len(root), dtype=np.int8)
        parents[first[inner]] += 1
        parents[first[inner] + 1] += 1
        parents[offsets[:-1]] += 1
        levels, nodes = 0, offsets[:-1]
        if 2 * int(inner.sum()) + len(offsets) - 1 == len(root) and (parents == 1).all():
            while len(nodes) and levels <= DEEPEST:
                nodes = first[nodes[inner[nodes]]]
                nodes, levels = np.concatenate([nodes, nodes + 1]), levels + 1
        if len(nodes):
            raise ModelFileError("a tree of the forest is none, or too deep to be walked", hint="fetch the file again")


def tree_size(shapes: Shapes, width: int) -> Size:
    """What stored trees need: the words of a walk, which visits a node at most once a row."""
    nodes = math.prod(shapes["left"])
    return Size(bytes=64 * nodes, row_operations=nodes)


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
