"""The baseline that often wins: Morgan bits and RDKit descriptors into a scikit-learn random forest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from molgraph.auxiliary import parts
from molgraph.auxiliary.features import Choice, Features
from molgraph.auxiliary.parts import Fitted, Lesson, Said
from molgraph.auxiliary.trees import Trees, tree_size
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.cores import cores
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.size import Shapes, Size
from molgraph.base.space import Categorical, Int, Space
from molgraph.data.table import Table
from molgraph.train.outputs import ClassWeights

STEP = 25  # trees grown between two ticks of the progress bar


@dataclass(frozen=True)
class Forest:
    """The trees of one target."""

    trees: Trees

    def predict(self, x: np.ndarray) -> Said:
        """Means over the trees' leaves [n, columns]: values, P(class 1), or one probability a class."""
        return self.trees.predict(x), None

    def arrays(self) -> dict[str, np.ndarray]:
        """The trees' five arrays."""
        return self.trees.arrays()


def load_forest(arrays: Mapping[str, np.ndarray], target: Target, base: Fitted) -> Forest:
    """From a file's arrays; raises ``ModelFileError`` where they could lead a walk astray."""
    trees = Trees.from_arrays(arrays, base.features.width)
    if trees.value.shape[1] != len(target.columns):
        raise ValueError(f"the forest of {target.name!r} has leaves of another width")
    return Forest(trees)


@register(
    "method",
    "random_forest",
    summary="Morgan bits and RDKit descriptors into a random forest; the baseline",
    paper="Breiman 2001, Mach. Learn. 45:5; Rogers and Hahn 2010, J. Chem. Inf. Model. 50:742",
)
class RandomForest(Method):
    """Random forest (Breiman 2001) on Morgan bits, RDKit descriptors and the table's own feature columns.

    One forest a target, on the rows that have it. A saved forest predicts what it predicted before, to the bit.

    Args:
        n_estimators: trees.
        features: ``morgan+descriptors``, ``morgan`` or ``maplight``.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        max_features: share of the columns that a split looks at, or ``sqrt``; by default a third for numbers
            (Svetnik et al. 2003, J. Chem. Inf. Comput. Sci. 43:1947) and the square root for classes.
        min_samples_leaf: rows that a leaf holds at least.
        class_weights: None, ``balanced``, or a weight for each class label, as for graph models.
        seed: the same seed gives the same forest, for any number of threads.
        threads: cores to use; None for all.
        store: a folder that keeps features, so that they are made once for all splits and methods; auto for one in
            molgraph's cache; None keeps none.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["C", "CC", "CCC", "C(C"], targets=(Target("size"),), y=[1, 2, 3, 4])
        >>> forest = RandomForest(n_estimators=20, features="morgan", threads=1).fit(table)
        >>> forest.predict(table).status.tolist()
        ['ok', 'ok', 'ok', 'unreadable']
    """

    name = "random_forest"

    def __init__(
        self,
        n_estimators: int = 300,
        features: Choice = "morgan+descriptors",
        radius: int = 2,
        n_bits: int = 2048,
        max_features: float | Literal["sqrt", "log2"] | None = None,
        min_samples_leaf: float = 1,
        class_weights: ClassWeights = None,
        seed: int = 0,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.features = features
        self.radius = radius
        self.n_bits = n_bits
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.class_weights = class_weights
        self.seed = seed
        self.threads = threads
        self.store = store

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Grow the forests on ``table``; ``valid`` and ``workdir`` are not used."""
        features = Features(self.features, self.radius, self.n_bits)
        self._fitted = parts.learn(
            self, table, features, self._grow, class_weights=self.class_weights, steps=self.n_estimators
        )
        return self

    def predict(self, table: Table) -> Prediction:
        """Means over the trees' leaves: values, P(class 1), or one probability a class."""
        return parts.predict(self, table)

    def state(self) -> State:
        """The trees' arrays, the fill values and what the features are."""
        return parts.state(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a fitted forest; raises ``ModelFileError`` where an array could lead a walk astray."""
        return parts.restore(cls, state, load_forest)

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the stored state needs to predict."""
        return parts.size_of(meta, shapes, tree_size)

    def space(self) -> Space:
        """Columns that a split looks at, leaves, and the features."""
        return {
            "max_features": Categorical(("sqrt", 0.1, 0.33, 1.0)),
            "min_samples_leaf": Int(1, 10, log=True),
            "features": Categorical(("morgan+descriptors", "morgan")),
        }

    def _grow(self, lesson: Lesson) -> Forest:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        target = lesson.target
        classes = target.kind in ("binary", "multiclass")
        share = self.max_features if self.max_features is not None else ("sqrt" if classes else 1 / 3)
        seed = derive(self.seed, "random_forest", target.name) % 2**32
        settings: dict[str, Any] = {"max_features": share, "min_samples_leaf": self.min_samples_leaf}
        kind = RandomForestClassifier if classes else RandomForestRegressor
        forest = kind(n_jobs=cores(self.threads), random_state=seed, warm_start=True, **settings)
        y = lesson.y.astype(np.int64) if classes else lesson.y
        grown = 0
        while grown < self.n_estimators:
            step = min(STEP, self.n_estimators - grown)
            grown += step
            forest.set_params(n_estimators=grown).fit(lesson.x, y, sample_weight=lesson.weights)
            lesson.advance(step)
        columns = None
        if classes:
            columns = forest.classes_ if target.kind == "multiclass" else np.where(forest.classes_ == 1, 0, -1)
        return Forest(Trees.from_sklearn(forest.estimators_, lesson.x.shape[1], columns, len(target.columns)))
