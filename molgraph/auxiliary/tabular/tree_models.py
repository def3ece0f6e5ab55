"""Predict one target with stored ensembles of decision trees (random forest, XGBoost, CatBoost)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from molgraph.auxiliary.tabular.target_model import (
    StoredTarget,
    TargetData,
    TargetModel,
    TargetPrediction,
    values_of_scores,
)
from molgraph.auxiliary.tabular.trees import Nodes, Trees, tree_size
from molgraph.base.contracts import Target
from molgraph.base.size import Shapes, Size


@dataclass(frozen=True)
class MeanOfTrees(TargetModel):
    """The mean of trees whose leaves hold predictions: a random forest.

    Args:
        trees: their leaves hold values, P(class 1), or one probability a class.
    """

    trees: Trees

    def predict(self, x: np.ndarray) -> TargetPrediction:
        return TargetPrediction(self.trees.predict(x))

    def arrays(self) -> dict[str, np.ndarray]:
        return self.trees.arrays()

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        trees = Trees.from_arrays(stored.arrays, stored.width)
        if trees.value.shape[1] != len(stored.target.columns):
            raise ValueError(f"the forest of {stored.target.name!r} has leaves of another width")
        return cls(trees)

    @classmethod
    def size(cls, shapes: Shapes, width: int) -> Size:
        return tree_size(shapes, width)


@dataclass(frozen=True)
class SumOfTrees(TargetModel):
    """The sum of trees whose leaves hold scores: boosted trees.

    Args:
        target: the target.
        trees: their leaves hold scores, in one column or one a class.
        bias: float64 [k], the score that the sum starts from.
    """

    target: Target
    trees: Trees
    bias: np.ndarray

    def predict(self, x: np.ndarray) -> TargetPrediction:
        score = self.trees.predict(x) * len(self.trees) + self.bias
        return TargetPrediction(values_of_scores(self.target, score))

    def arrays(self) -> dict[str, np.ndarray]:
        return self.trees.arrays() | {"bias": self.bias}

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        trees = Trees.from_arrays(stored.arrays, stored.width)
        bias = stored.array("bias", len(stored.target.columns))
        if trees.value.shape[1] != len(bias):
            raise ValueError(f"the leaves of {stored.target.name!r} are {trees.value.shape[1]} wide, not {len(bias)}")
        return cls(stored.target, trees, bias)

    @classmethod
    def size(cls, shapes: Shapes, width: int) -> Size:
        return tree_size(shapes, width)

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
            bias = bias[1:] - bias[:1] if n == 2 and data.target.kind == "binary" else bias
        none = np.full(1, -1)
        leaf = Nodes(none, none, np.zeros(1, int), np.zeros(1), np.zeros((1, len(bias))))
        return cls(data.target, Trees.from_nodes([leaf], data.x.shape[1]), bias)


def nodes_of_xgboost(tree: Mapping[str, Any], column: int, k: int) -> Nodes:
    """Read a tree of xgboost's JSON: rows below a threshold go left, so those up to the next smaller float32."""
    left = np.array(tree["left_children"], dtype=np.int64)
    condition = np.array(tree["split_conditions"], dtype=np.float32)  # of a leaf, its value
    value = np.zeros((len(left), k))
    value[:, column] = condition
    below = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    right = np.array(tree["right_children"], dtype=np.int64)
    return Nodes(left, right, np.array(tree["split_indices"], dtype=np.int64), below, value)


def nodes_of_catboost(tree: Mapping[str, Any], columns: np.ndarray, k: int, scale: float) -> Nodes:
    """Read a tree of catboost's JSON, which has one split a level, as a full binary tree.

    Args:
        tree: its splits (the first is the leaf number's lowest bit) and the leaves' values, leaf after leaf.
        columns: the column of each of the leaves' values.
        k: number of columns.
        scale: factor of the values.
    """
    splits = list(reversed(tree.get("splits") or ()))
    depth = len(splits)
    inner, n = 2**depth - 1, 2 ** (depth + 1) - 1
    place = np.arange(n)
    level = np.frexp(place + 1.0)[1] - 1  # of a node counted by rows from the root: 0, 1 1, 2 2 2 2
    leaf = place >= inner
    feature = np.array([s["float_feature_index"] for s in splits] + [0])[np.minimum(level, depth)]
    border = np.array([s["border"] for s in splits] + [0.0])[np.minimum(level, depth)]
    value = np.zeros((n, k))
    value[inner:, columns] = np.array(tree["leaf_values"], dtype=np.float64).reshape(2**depth, -1) * scale
    children = np.where(leaf, -1, 2 * place + 1)
    # both libraries compare in float32: a threshold between two of its numbers means the lower
    return Nodes(children, np.where(leaf, -1, children + 1), feature, border.astype(np.float32).astype(float), value)
