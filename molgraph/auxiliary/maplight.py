"""MapLight: counts, reduced graphs and 200 descriptors into CatBoost, which leads many public ADMET boards."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from molgraph.auxiliary import parts
from molgraph.auxiliary.boosted import Boosted, constant, load_boosted, nodes_of_catboost
from molgraph.auxiliary.features import Features
from molgraph.auxiliary.parts import Lesson
from molgraph.auxiliary.trees import Trees, tree_size
from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.cores import cores
from molgraph.base.errors import UsageError, nearest
from molgraph.base.optional import need
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.size import Shapes, Size
from molgraph.base.space import Float, Int, Space
from molgraph.data.table import Table
from molgraph.train.outputs import ClassWeights

LOSSES = ("RMSE", "MAE")


@register(
    "method",
    "maplight",
    summary="Morgan and Avalon counts, ErG and 200 descriptors into CatBoost; leads many ADMET boards",
    paper="Notwell and Wood 2023, arXiv:2310.00174; Prokhorenkova et al. 2018, NeurIPS",
)
class MapLight(Method):
    """CatBoost (Prokhorenkova et al. 2018) on MapLight's features (Notwell and Wood 2023), without its GNN print.

    1,024 Morgan counts of radius 2, 1,024 Avalon counts, 315 ErG columns and 200 RDKit descriptors; numbers are
    standardised. The paper has catboost's defaults (1,000 trees of depth 6, a rate that catboost chooses by itself), a
    random strength of 2, and the loss MAE, which its boards judge by. Here the loss is RMSE, as ours judge; and
    ``iterations``, ``column_share`` and ``borders`` are smaller, for one core's sake: the paper's are
    ``iterations=1000, column_share=1, borders=254``. A missing descriptor is the training part's median.

    The trees are kept as arrays of molgraph's own: a saved model predicts without catboost, what it predicted before,
    to the bit; and a file from a stranger is never read by catboost.

    Args:
        iterations: trees.
        learning_rate: how much of each tree counts; None lets catboost choose by the number of rows and trees.
        depth: levels of a tree, each with one question.
        random_strength: how much the scores of questions are shaken while trees grow.
        l2_leaf_reg: pull of the leaves towards zero.
        column_share: share of the columns that each level looks at.
        borders: thresholds tried a column.
        loss: of numbers: RMSE or MAE.
        radius: of the Morgan counts.
        n_bits: columns of the Morgan counts, and of Avalon's.
        class_weights: None, ``balanced``, or a weight for each class label.
        seed: the same seed gives the same trees, for any number of threads.
        threads: cores to use; None for all.
        store: a folder that keeps features, so that they are made once for all splits and methods; auto for one in
            molgraph's cache; None keeps none.

    Example:
        >>> MapLight(iterations=1000).get_params()["depth"]
        6
    """

    name = "maplight"
    needs = ("catboost",)

    def __init__(
        self,
        iterations: int = 500,
        learning_rate: float | None = None,
        depth: int = 6,
        random_strength: float = 2.0,
        l2_leaf_reg: float = 3.0,
        column_share: float = 0.2,
        borders: int = 32,
        loss: Literal["RMSE", "MAE"] = "RMSE",
        radius: int = 2,
        n_bits: int = 1024,
        class_weights: ClassWeights = None,
        seed: int = 0,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        self.iterations, self.learning_rate, self.depth = iterations, learning_rate, depth
        self.random_strength, self.l2_leaf_reg = random_strength, l2_leaf_reg
        self.column_share, self.borders, self.loss = column_share, borders, loss
        self.radius, self.n_bits, self.class_weights = radius, n_bits, class_weights
        self.seed, self.threads, self.store = seed, threads, store

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Grow the trees on ``table``; ``valid`` and ``workdir`` are not used."""
        if self.loss not in LOSSES:
            raise UsageError(f"no loss is named {self.loss!r}", hint=nearest(str(self.loss), LOSSES))
        if not isinstance(self.iterations, (int, np.integer)) or self.iterations < 1 or not 1 <= self.depth <= 12:
            raise UsageError(
                f"iterations is {self.iterations!r} and depth {self.depth!r}, expected whole numbers from 1",
                hint="depth goes up to 12",
            )
        features = Features("maplight", self.radius, self.n_bits)
        self._fitted = parts.learn(self, table, features, self._grow, class_weights=self.class_weights)
        return self

    def predict(self, table: Table) -> Prediction:
        """Values, P(class 1), or one probability a class."""
        return parts.predict(self, table)

    def state(self) -> State:
        """The trees."""
        return parts.state(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; raises ``ModelFileError`` where an array could lead a walk astray."""
        return parts.restore(cls, state, load_boosted)

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the stored state needs to predict."""
        return parts.size_of(meta, shapes, tree_size)

    def space(self) -> Space:
        """The usual ones of boosted trees."""
        return {
            "iterations": Int(200, 1000, log=True),
            "learning_rate": Float(0.01, 0.3, log=True),
            "depth": Int(4, 8),
            "l2_leaf_reg": Float(1.0, 30.0, log=True),
            "column_share": Float(0.05, 1.0, log=True),
        }

    def _grow(self, lesson: Lesson) -> Boosted:
        catboost = need("catboost")
        if (flat := constant(lesson)) is not None:
            return flat
        target, n = lesson.target, parts.classes_of(lesson.target)
        mean, scale = 0.0, 1.0
        if not n:
            mean = float(np.average(lesson.y, weights=lesson.weights))
            scale = max(float(lesson.y.std()), 1e-12)
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
        y = (lesson.y - mean) / scale if not n else lesson.y.astype(np.int64)
        weights = None if lesson.weights is None else lesson.weights / lesson.weights.mean()
        model.fit(lesson.x, y, sample_weight=weights)
        with tempfile.TemporaryDirectory(prefix="molgraph-") as folder:
            path = Path(folder) / "model.json"
            model.save_model(str(path), format="json")
            whole = json.loads(path.read_text(encoding="utf-8"))
        k = len(target.columns)
        columns = np.arange(k)
        factor, bias = whole["scale_and_bias"]
        start = np.zeros(k)
        start[:] = (np.array(bias, dtype=np.float64) if len(bias) in (1, k) else np.zeros(k)) * scale + mean
        trees = [nodes_of_catboost(t, columns, k, factor * scale) for t in whole["oblivious_trees"]]
        return Boosted(target, Trees.from_nodes(trees, lesson.x.shape[1]), start)
