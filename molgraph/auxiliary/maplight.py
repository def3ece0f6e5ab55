"""MapLight: Morgan and Avalon counts, ErG and 200 descriptors with CatBoost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from molgraph.auxiliary.tabular import TabularMethod, TargetData
from molgraph.auxiliary.tabular.trees import Nodes, SumOfTrees
from molgraph.base.cores import cores
from molgraph.base.optional import need
from molgraph.base.paths import temporary_error
from molgraph.base.ranges import Bits, Count, NotNegative, Radius, Range, Share
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Int, Space
from molgraph.base.seeds import derive
from molgraph.train.outputs import ClassWeights


@register(
    "method",
    "maplight",
    system="maplight",
    tags=("fingerprints", "trees"),
    summary="CatBoost on counts, ErG and descriptors: leads many ADMET boards",
    paper="Notwell and Wood 2023, arXiv:2310.00174; Prokhorenkova et al. 2018, NeurIPS",
)
@dataclass(eq=False)
class MapLight(TabularMethod):
    """CatBoost (Prokhorenkova et al. 2018) on MapLight's features (Notwell and Wood 2023), without its GNN print.

    1,024 Morgan counts of radius 2, 1,024 Avalon counts, 315 ErG columns and 200 RDKit descriptors; numbers are
    standardised. As in the paper: catboost's defaults (1,000 trees of depth 6, a learning rate that catboost finds) and
    a random strength of 2. The paper's loss is MAE, by which its boards judge; here it is RMSE, by which ours judge. A
    missing descriptor becomes the training rows' median. ``iterations=500, column_share=0.2, borders=32``, which boards
    call ``maplight-small``, takes a fraction of the time.

    Use it where minutes do not count and every percent does; ``molgraph models maplight --why`` tells how it fares
    beside the forest. Known limits: each target fits trees of its own, so that many tasks take long.

    The trees are stored as molgraph's own arrays: a saved model predicts the same bits without catboost, and catboost
    never reads a stranger's file.

    Args:
        iterations: number of trees.
        learning_rate: factor of each tree's values; None lets catboost choose by the number of rows and trees.
        depth: depth of a tree, which has one split a level.
        random_strength: amount of random noise added to the scores of splits.
        l2_leaf_reg: L2 penalty on the leaves' values.
        column_share: share of the columns that each level may use.
        borders: number of thresholds tried for each column.
        loss: for numbers, RMSE or MAE.
        descriptors: an encoder's file (.mgm), whose vectors are features too; ``none`` for none.
        radius: of the Morgan counts.
        n_bits: columns of the Morgan counts, and of Avalon's.
        class_weights: None, ``balanced``, or a weight for each class label.
        seed: the same seed gives the same trees, for any number of threads.
        threads: cores to use; None for all.
        store: a folder that keeps features for all splits and methods; auto for molgraph's cache; None keeps none.

    Example:
        >>> MapLight(iterations=500).get_params()["depth"]
        6
    """

    name = "maplight"
    small = MappingProxyType({"iterations": 8, "depth": 3, "n_bits": 64})
    target_model = SumOfTrees
    features = "maplight"
    needs = ("catboost",)

    iterations: Count = 1000
    learning_rate: Share | None = None
    depth: Annotated[int, Range(1, 12)] = 6
    random_strength: NotNegative = 2.0
    l2_leaf_reg: NotNegative = 3.0
    column_share: Share = 1.0
    borders: Annotated[int, Range(1, 65_535)] = 254
    loss: Literal["RMSE", "MAE"] = "RMSE"
    descriptors: str = "none"
    radius: Radius = 2
    n_bits: Bits = 1024
    class_weights: ClassWeights = None
    seed: int = 0
    threads: int | None = None
    store: str | None = None

    def fit_target(self, data: TargetData) -> SumOfTrees:
        catboost = need("catboost")
        if (constant := SumOfTrees.constant(data)) is not None:
            return constant
        target, n = data.target, data.n_classes
        mean, scale = (0.0, 1.0) if n else data.mean_and_sd()
        several = n and target.kind == "multiclass"
        model = catboost.CatBoost(
            {
                "loss_function": self.loss if not n else "MultiClass" if several else "Logloss",
                "iterations": int(self.iterations),
                "learning_rate": self.learning_rate,
                "depth": int(self.depth),
                "random_strength": self.random_strength,
                "l2_leaf_reg": self.l2_leaf_reg,
                "rsm": self.column_share,
                "border_count": int(self.borders),
                "random_seed": derive(self.seed, "maplight", target.name) % 2**31,
                "thread_count": cores(self.threads),
                "logging_level": "Silent",
                "allow_writing_files": False,
            }
            | ({"classes_count": n} if several else {})
        )
        y = (data.y - mean) / scale if not n else data.y.astype(np.int64)
        model.fit(data.x, y, sample_weight=data.scaled_weights)
        try:
            with tempfile.TemporaryDirectory(prefix="molgraph-") as folder:
                path = Path(folder) / "model.json"
                model.save_model(str(path), format="json")
                whole = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, catboost.CatBoostError) as error:  # ValueError: the file was cut short
            raise temporary_error(error) from error
        k = len(target.columns)
        columns = np.arange(k)
        factor, bias = whole["scale_and_bias"]
        start = np.zeros(k)
        start[:] = (np.array(bias, dtype=np.float64) if len(bias) in (1, k) else np.zeros(k)) * scale + mean
        trees = [nodes_of_catboost(t, columns, k, factor * scale) for t in whole["oblivious_trees"]]
        return SumOfTrees.from_nodes(target, trees, data.x.shape[1], bias=start)

    def space(self) -> Space:
        """The usual parameters of boosted trees."""
        return {
            "iterations": Int(200, 1000, log=True),
            "learning_rate": Float(0.01, 0.3, log=True),
            "depth": Int(4, 8),
            "l2_leaf_reg": Float(1.0, 30.0, log=True),
            "column_share": Float(0.05, 1.0, log=True),
        }


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
