"""Gradient boosting with XGBoost on Morgan bits and RDKit descriptors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.auxiliary.tabular import TabularMethod, TargetData
from molgraph.auxiliary.tabular.table_featuriser import Choice
from molgraph.auxiliary.tabular.trees import Nodes, SumOfTrees
from molgraph.base.cores import cores
from molgraph.base.optional import need
from molgraph.base.ranges import LARGEST, Bits, Count, NotNegative, Probability, Radius, Range, Share
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Int, Space
from molgraph.base.seeds import derive, generator
from molgraph.train.outputs import ClassWeights

#: the loss where labels are limits: a normal about the logarithm of a lifetime, so values are learnt as its exponent
AFT = {"objective": "survival:aft", "aft_loss_distribution": "normal", "base_score": 1.0}
SIGMAS = (0.2, 1.0)  # least and largest deviation of it, of standardised values


@register(
    "method",
    "xgboost",
    tags=("fingerprints", "trees"),
    summary="gradient-boosted trees (XGBoost) on Morgan bits and RDKit descriptors",
    paper="Chen and Guestrin 2016, KDD; Sheridan et al. 2016, J. Chem. Inf. Model. 56:2353",
)
@dataclass(eq=False)
class XGBoost(TabularMethod):
    """Gradient-boosted trees of XGBoost (Chen and Guestrin 2016) on Morgan bits, descriptors and the table's columns.

    Use it where the forest takes too long: it learns in a fraction of the time, and ``molgraph models xgboost --why``
    tells how the two compare. Known limits: it has no uncertainty of its own; far from the training rows it does not
    extrapolate.

    Labels that are limits, such as >8, are learnt by the accelerated failure time of XGBoost (Barnwal et al. 2022, J.
    Comput. Graph. Stat. 31) with a normal, whose deviation is that of a fifth of the measured values from trees on the
    others.

    Each target has its own model. The trees are stored as molgraph's own arrays: a saved model predicts the same bits
    without xgboost, and xgboost never reads a stranger's file.

    Args:
        n_estimators: number of trees; of several classes, for each class.
        learning_rate: factor of each tree's values.
        max_depth: depth of a tree.
        min_child_weight: the least sum of second derivatives in a leaf.
        subsample: share of the rows that each tree is fitted to.
        colsample: share of the columns that each tree may use.
        reg_lambda: L2 penalty on the leaves' values.
        max_bin: number of thresholds tried for each column.
        features: ``morgan+descriptors``, ``morgan``, ``morgan-counts``, ``maplight`` or ``vectors``.
        descriptors: an encoder's file (.mgm), whose vectors are features too; ``none`` for none.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        class_weights: None, ``balanced``, or a weight for each class label.
        seed: the same seed gives the same trees, for any number of threads.
        threads: cores to use; None for all.
        store: a folder that keeps features for all splits and methods; auto for molgraph's cache; None keeps none.

    Example:
        >>> XGBoost(max_depth=4).get_params()["max_depth"]
        4
    """

    name = "xgboost"
    small = MappingProxyType({"n_estimators": 8, "n_bits": 256})
    target_model = SumOfTrees
    needs = ("xgboost",)
    learns_limits = True

    n_estimators: Count = 300
    learning_rate: Probability = 0.05
    max_depth: Count = 6
    min_child_weight: NotNegative = 1.0
    subsample: Share = 0.8
    colsample: Share = 0.3
    reg_lambda: NotNegative = 1.0
    max_bin: Annotated[int, Range(2, LARGEST)] = 64
    features: Choice = "morgan+descriptors"
    descriptors: str = "none"
    radius: Radius = 2
    n_bits: Bits = 2048
    class_weights: ClassWeights = None
    seed: int = 0
    threads: int | None = None
    store: str | None = None

    def fit_target(self, data: TargetData) -> SumOfTrees:
        xgboost = need("xgboost")
        if (constant := SumOfTrees.constant(data)) is not None:
            return constant
        target, n = data.target, data.n_classes
        k = len(target.columns)
        mean, scale = (0.0, 1.0) if n else data.mean_and_sd()
        objective = "reg:squarederror" if not n else "binary:logistic" if target.kind == "binary" else "multi:softprob"
        share = float(np.clip(np.average(data.y, weights=data.weights), 1e-6, 1 - 1e-6))
        start = 0.0 if not n else share if target.kind == "binary" else 0.5
        settings = {
            "objective": objective,
            "base_score": start,
            "learning_rate": self.learning_rate,
            "max_depth": int(self.max_depth),
            "min_child_weight": self.min_child_weight,
            "subsample": self.subsample,
            "colsample_bytree": self.colsample,
            "reg_lambda": self.reg_lambda,
            "max_bin": int(self.max_bin),
            "tree_method": "hist",
            "seed": derive(self.seed, "xgboost", target.name) % 2**31,
            "nthread": cores(self.threads),
            "verbosity": 0,
        } | ({"num_class": k} if objective == "multi:softprob" else {})
        known, weights = data.exact, data.scaled_weights
        how = {"max_bin": int(self.max_bin), "nthread": cores(self.threads)}

        def fitted(rows: np.ndarray, more: Mapping[str, Any], **labels: np.ndarray) -> Any:
            row_labels = {name: values[rows] for name, values in labels.items()}
            options = row_labels | {"weight": None if weights is None else weights[rows]} | how
            matrix = xgboost.QuantileDMatrix(data.x[rows], **options)
            return xgboost.train({**settings, **more}, matrix, num_boost_round=int(self.n_estimators))

        if known.all():
            model = fitted(known, {}, label=(data.y - mean) / scale)
        else:
            low, high = data.ends(mean, scale)
            apart = np.zeros(len(low), dtype=bool)  # values that tell how far off the trees are
            apart[generator(self.seed, "residuals").permutation(np.flatnonzero(known))[: max(1, known.sum() // 5)]] = (
                True
            )
            seen = fitted(known & ~apart, {}, label=low) if (known & ~apart).any() else None
            left = low[apart] if seen is None else low[apart] - seen.inplace_predict(data.x[apart])
            more = AFT | {"aft_loss_distribution_scale": float(np.clip(np.sqrt(np.mean(left**2)), *SIGMAS))}
            ends = {"label_lower_bound": np.exp(low), "label_upper_bound": np.exp(high)}
            model = fitted(np.ones(len(low), dtype=bool), more, **ends)
        whole = json.loads(model.save_raw("json").decode())["learner"]["gradient_booster"]["model"]
        trees = [nodes_of_xgboost(t, c, k) for t, c in zip(whole["trees"], whole["tree_info"], strict=True)]
        for tree in trees:
            tree.value[:] *= scale
        bias = np.array([mean]) if not n else np.array([np.log(share / (1 - share))]) if k == 1 else np.zeros(k)
        return SumOfTrees.from_nodes(target, trees, data.x.shape[1], bias=bias)

    def space(self) -> Space:
        """The parameters that Sheridan et al. 2016 found to matter, and the learning rate."""
        return {
            "n_estimators": Int(100, 1000, log=True),
            "learning_rate": Float(0.01, 0.2, log=True),
            "max_depth": Int(3, 10),
            "min_child_weight": Float(0.5, 10.0, log=True),
            "subsample": Float(0.5, 1.0),
            "colsample": Float(0.1, 1.0),
        }


def nodes_of_xgboost(tree: Mapping[str, Any], column: int, k: int) -> Nodes:
    """Read a tree of xgboost's JSON: rows below a threshold go left, so those up to the next smaller float32."""
    left = np.array(tree["left_children"], dtype=np.int64)
    condition = np.array(tree["split_conditions"], dtype=np.float32)  # of a leaf, its value
    value = np.zeros((len(left), k))
    value[:, column] = condition
    below = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    right = np.array(tree["right_children"], dtype=np.int64)
    return Nodes(left, right, np.array(tree["split_indices"], dtype=np.int64), below, value)
