"""A boosted model of xgboost or catboost in; our own trees, which need neither library to predict, out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from molgraph.auxiliary import parts
from molgraph.auxiliary.parts import Fitted, Lesson, Said
from molgraph.auxiliary.trees import Nodes, Trees
from molgraph.base.contracts import Target


@dataclass(frozen=True)
class Boosted:
    """A sum of trees, and what it means.

    Args:
        target: what was learned.
        trees: their leaves' values, in columns: one, or one a class.
        bias: float64 [k], what the sum starts from.
    """

    target: Target
    trees: Trees
    bias: np.ndarray

    def predict(self, x: np.ndarray) -> Said:
        """Values in the target's units, or probabilities [n, columns]."""
        z = self.trees.predict(x) * len(self.trees) + self.bias
        if not parts.classes_of(self.target):
            return parts.inside(self.target, z), None
        if self.target.kind == "binary":
            return 0.5 * (1.0 + np.tanh(0.5 * z)), None
        z = np.exp(z - z.max(axis=1, keepdims=True))
        return z / z.sum(axis=1, keepdims=True), None

    def arrays(self) -> dict[str, np.ndarray]:
        """The trees' five arrays and the bias."""
        return self.trees.arrays() | {"bias": self.bias}


def load_boosted(arrays: Mapping[str, np.ndarray], target: Target, base: Fitted) -> Boosted:
    """From a file's arrays; raises ``ModelFileError`` where they could lead a walk astray."""
    trees = Trees.from_arrays(arrays, base.features.width)
    bias = parts.array(arrays, "bias", len(target.columns))
    if trees.value.shape[1] != len(bias):
        raise ValueError(f"the leaves of {target.name!r} are {trees.value.shape[1]} wide, not {len(bias)}")
    return Boosted(target, trees, bias)


def constant(lesson: Lesson) -> Boosted | None:
    """A tree of one leaf where no feature varies, which the libraries refuse to learn from; else None."""
    if len(lesson.x) and (lesson.x != lesson.x[0]).any():
        return None
    n, w = parts.classes_of(lesson.target), lesson.weights
    if not n:
        bias = np.array([np.average(lesson.y, weights=w)])
    else:
        counts = np.bincount(lesson.y.astype(np.int64), weights=w, minlength=n) + 1e-6
        bias = np.log(counts / counts.sum())
        bias = bias[1:] - bias[:1] if n == 2 and lesson.target.kind == "binary" else bias
    none = np.full(1, -1)
    leaf = Nodes(none, none, np.zeros(1, int), np.zeros(1), np.zeros((1, len(bias))))
    return Boosted(lesson.target, Trees.from_nodes([leaf], lesson.x.shape[1]), bias)


def nodes_of_xgboost(tree: Mapping[str, Any], column: int, k: int) -> Nodes:
    """A tree of xgboost's JSON: rows below a threshold go left, so those at most the next smaller float32."""
    left = np.array(tree["left_children"], dtype=np.int64)
    said = np.array(tree["split_conditions"], dtype=np.float32)
    value = np.zeros((len(left), k))
    value[:, column] = said
    below = np.nextafter(said, np.float32(-np.inf)).astype(np.float64)
    right = np.array(tree["right_children"], dtype=np.int64)
    return Nodes(left, right, np.array(tree["split_indices"], dtype=np.int64), below, value)


def nodes_of_catboost(tree: Mapping[str, Any], columns: np.ndarray, k: int, scale: float) -> Nodes:
    """A tree of catboost's JSON, which asks one question a level: as a full binary tree.

    Args:
        tree: its splits (the first is the leaf number's lowest bit) and the leaves' values, leaf after leaf.
        columns: for each of the model's values the column of ours.
        k: our columns.
        scale: what the values are multiplied with.
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
    said = np.array(tree["leaf_values"], dtype=np.float64).reshape(2**depth, -1)
    value[inner:, columns] = said * scale
    children = np.where(leaf, -1, 2 * place + 1)
    # both libraries compare in float32: a threshold between two of its numbers means the lower
    return Nodes(children, np.where(leaf, -1, children + 1), feature, border.astype(np.float32).astype(float), value)
