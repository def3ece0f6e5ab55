"""Random forest on Morgan bits and RDKit descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from molgraph.auxiliary.tabular import TabularMethod, TargetData
from molgraph.auxiliary.tabular.table_featuriser import Choice
from molgraph.auxiliary.tabular.trees import MeanOfTrees, Nodes
from molgraph.base.cores import cores
from molgraph.base.ranges import Bits, Count, Radius, Range, Share
from molgraph.base.registry import register
from molgraph.base.search_space import Categorical, Int, Space
from molgraph.base.seeds import derive
from molgraph.train.outputs import ClassWeights

STEP = 25  # trees grown between two ticks of the progress bar


@register(
    "method",
    "random_forest",
    tags=("fingerprints", "trees", "baseline"),
    summary="a forest on Morgan bits and descriptors: the baseline",
    paper="Breiman 2001, Mach. Learn. 45:5; Rogers and Hahn 2010, J. Chem. Inf. Model. 50:742",
)
@dataclass(eq=False)
class RandomForest(TabularMethod):
    """Random forest (Breiman 2001) on Morgan bits, RDKit descriptors and the table's own feature columns.

    One forest a target, on the rows that have it. A saved forest predicts what it predicted before, to the bit.

    Use it first, and as the mark that another model has to pass; ``molgraph models --why`` tells which ones do. Known
    limits: the numbers that it predicts lie within the training labels; it reads no 3D structure.

    Args:
        n_estimators: trees.
        features: ``morgan+descriptors``, ``morgan``, ``morgan-counts``, ``maplight`` or ``vectors``.
        descriptors: an encoder's file (.mgm), whose vectors are features too; ``none`` for none.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        max_features: share of the columns that a split looks at, or ``sqrt``; by default a third for numbers
            (Svetnik et al. 2003, J. Chem. Inf. Comput. Sci. 43:1947) and the square root for classes.
        min_samples_leaf: rows that a leaf holds at least.
        class_weights: None, ``balanced``, or a weight for each class label, as for graph models.
        seed: the same seed gives the same forest, for any number of threads.
        threads: cores to use; None for all.
        store: a folder that keeps features for all splits and methods; auto for molgraph's cache; None keeps none.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["C", "CC", "CCC", "C(C"], targets=(Target("size"),), y=[1, 2, 3, 4])
        >>> forest = RandomForest(n_estimators=20, features="morgan", threads=1).fit(table)
        >>> forest.predict(table).status.tolist()
        ['ok', 'ok', 'ok', 'unreadable']
    """

    name = "random_forest"
    small = MappingProxyType({"n_estimators": 5, "n_bits": 256})
    target_model = MeanOfTrees

    n_estimators: Count = 300
    features: Choice = "morgan+descriptors"
    descriptors: str = "none"
    radius: Radius = 2
    n_bits: Bits = 2048
    max_features: Count | Share | Literal["sqrt", "log2"] | None = None
    min_samples_leaf: Count | Annotated[float, Range(0, 1, above=True, below=True)] = 1
    class_weights: ClassWeights = None
    seed: int = 0
    threads: int | None = None
    store: str | None = None

    def n_steps(self) -> int:
        return self.n_estimators

    def fit_target(self, data: TargetData) -> MeanOfTrees:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        target, classes = data.target, data.n_classes > 0
        share = self.max_features if self.max_features is not None else ("sqrt" if classes else 1 / 3)
        seed = derive(self.seed, "random_forest", target.name) % 2**32
        settings: dict[str, Any] = {"max_features": share, "min_samples_leaf": self.min_samples_leaf}
        settings |= {"n_jobs": cores(self.threads), "random_state": seed, "warm_start": True}
        forest = (RandomForestClassifier if classes else RandomForestRegressor)(**settings)
        y = data.y.astype(np.int64) if classes else data.y
        grown = 0
        while grown < self.n_estimators:
            step = min(STEP, self.n_estimators - grown)
            grown += step
            forest.set_params(n_estimators=grown).fit(data.x, y, sample_weight=data.weights)
            data.advance(step)
        columns: Any = [0]
        if classes:
            columns = forest.classes_ if target.kind == "multiclass" else np.where(forest.classes_ == 1, 0, -1)
        trees = (nodes_of_sklearn(estimator.tree_, columns, len(target.columns)) for estimator in forest.estimators_)
        return MeanOfTrees.from_nodes(target, trees, data.x.shape[1])

    def space(self) -> Space:
        """Columns that a split looks at, leaves, and the features."""
        return {
            "max_features": Categorical(("sqrt", 0.1, 0.33, 1.0)),
            "min_samples_leaf": Int(1, 10, log=True),
            "features": Categorical(("morgan+descriptors", "morgan")),
        }

    def sizes(self) -> Space:
        """Trees."""
        return {"n_estimators": Int(30, 500, log=True)}


def nodes_of_sklearn(tree: Any, columns: Sequence[int], k: int) -> Nodes:
    """Read a fitted tree of scikit-learn of one output.

    Args:
        tree: the estimator's ``tree_``.
        columns: for each of its classes the column of the values it goes to, -1 for none; [0] for a regression.
        k: number of columns of the values.
    """
    value = np.zeros((tree.node_count, k))
    for c, column in enumerate(columns):
        if column >= 0:
            value[:, column] = tree.value[:, 0, c]
    return Nodes(tree.children_left, tree.children_right, tree.feature, tree.threshold, value)
