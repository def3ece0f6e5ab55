"""The baseline that often wins: Morgan bits and RDKit descriptors into a scikit-learn random forest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from molgraph.auxiliary.features import Choice, Features
from molgraph.auxiliary.targets import target_from_meta, target_meta
from molgraph.auxiliary.trees import Trees
from molgraph.base import progress
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.cores import cores
from molgraph.base.errors import ModelFileError, UsageError
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.space import Categorical, Int, Space
from molgraph.data.labels import check_targets
from molgraph.data.table import Table
from molgraph.data.unlearned import leave_empty, notes_of, restore_unlearned
from molgraph.train.outputs import ClassWeights, class_tables

STEP = 25  # trees grown between two ticks of the progress bar
BLOCK = 10_000  # rows predicted at once
AGAIN = "fetch the file again"


@dataclass(frozen=True)
class _Fitted:
    """What a fit leaves: a forest for each target, or None for one that was not learned, with why."""

    targets: tuple[Target, ...]
    features: Features
    trees: tuple[Trees | None, ...]
    unlearned: dict[str, str]

    def values(self, x: np.ndarray) -> np.ndarray:
        """float64 [n, columns of all targets]."""
        each = zip(self.targets, self.trees, strict=True)
        parts = [np.full((len(x), len(t.columns)), np.nan) if part is None else part.predict(x) for t, part in each]
        return np.concatenate(parts, axis=1)


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
        max_features: float | Literal["sqrt"] | None = None,
        min_samples_leaf: int = 1,
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
        chosen = Features(self.features, self.radius, self.n_bits)
        own, matrix = chosen.fit(table, cores(self.threads), self.store)
        targets, labels = table.row_targets, check_targets(table, np.isin(np.arange(len(table)), matrix.rows))
        classes = class_tables(targets, labels.y[matrix.rows], self.class_weights)
        self.notes = notes_of(labels.unlearned)
        trees: list[Trees | None] = []
        with progress.bar("random forest", total=self.n_estimators * (len(targets) - len(labels.unlearned))) as bar:
            for j, target in enumerate(targets):
                if target.name in labels.unlearned:
                    trees.append(None)
                    continue
                values = labels.y[matrix.rows, j]
                use = ~np.isnan(values)
                weights = None if table.weights is None else table.weights[matrix.rows][use]
                if j in classes:
                    weights = classes[j][values[use].astype(np.int64)] * (1.0 if weights is None else weights)
                trees.append(self._grow(matrix.x[use], values[use], weights, target, bar))
        self._fitted = _Fitted(targets, own, tuple(trees), dict(labels.unlearned))
        return self

    def predict(self, table: Table) -> Prediction:
        """Means over the trees' leaves: values, P(class 1), or one probability a class."""
        fitted = self._whole()
        targets = fitted.targets
        value = np.full((len(table), sum(len(t.columns) for t in targets)), np.nan)
        status, reason = table.status.copy(), table.reason.copy()
        for start in range(0, len(table), BLOCK):
            block = slice(start, start + BLOCK)
            part = table if len(table) <= BLOCK else table.take(np.arange(start, min(start + BLOCK, len(table))))
            matrix = fitted.features.of(part, cores(self.threads), self.store)
            status[block], reason[block] = matrix.status, matrix.reason
            if len(matrix.rows):
                value[start + matrix.rows] = fitted.values(matrix.x)
        made = Prediction(table.ids, targets, value, status, reason, inputs=table.smiles)
        return leave_empty(made, fitted.unlearned)

    def state(self) -> State:
        """The trees' arrays, the fill values and what the features are."""
        fitted = self._whole()
        arrays = {"fill": fitted.features.fill}
        for j, part in enumerate(fitted.trees):
            arrays |= {} if part is None else part.arrays(f"target_{j}.")
        meta = {
            "params": self.get_params() | {"store": None},  # no path of this machine
            "features": fitted.features.meta(),
            "targets": [target_meta(t) for t in fitted.targets],
            "unlearned": fitted.unlearned,
        }
        return State(arrays, meta)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a fitted forest; raises ``ModelFileError`` where an array could lead a walk astray."""
        try:
            given = state.meta["params"]  # an older molgraph's may lack one, or have one that is gone
            params = {name: given[name] for name in cls.param_names() if name in given}
            targets = tuple(target_from_meta(t) for t in state.meta["targets"])
            features = Features.from_meta(state.meta["features"], np.asarray(state.arrays["fill"]))
            unlearned = restore_unlearned(state.meta, targets)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"the forest's description is not whole: {error}", hint=AGAIN) from error
        trees = tuple(
            None if t.name in unlearned else Trees.from_arrays(state.arrays, features.width, f"target_{j}.")
            for j, t in enumerate(targets)
        )
        for target, part in zip(targets, trees, strict=True):
            if part is not None and part.value.shape[1] != len(target.columns):
                raise ModelFileError(f"the forest of {target.name!r} has leaves of another width", hint=AGAIN)
        method = cls(**params)
        method._fitted, method.notes = _Fitted(targets, features, trees, unlearned), notes_of(unlearned)
        return method

    def space(self) -> Space:
        """Columns that a split looks at, leaves, and the features."""
        return {
            "max_features": Categorical(("sqrt", 0.1, 0.33, 1.0)),
            "min_samples_leaf": Int(1, 10, log=True),
            "features": Categorical(("morgan+descriptors", "morgan")),
        }

    def _whole(self) -> _Fitted:
        if not hasattr(self, "_fitted"):
            raise UsageError("this forest has not been fitted", hint="call fit(table) first")
        return self._fitted

    def _grow(
        self, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None, target: Target, bar: progress.Bar
    ) -> Trees:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        classes = target.kind in ("binary", "multiclass")
        share = self.max_features if self.max_features is not None else ("sqrt" if classes else 1 / 3)
        seed = derive(self.seed, "random_forest", target.name) % 2**32
        settings: dict[str, Any] = {"max_features": share, "min_samples_leaf": self.min_samples_leaf}
        kind = RandomForestClassifier if classes else RandomForestRegressor
        forest = kind(n_jobs=cores(self.threads), random_state=seed, warm_start=True, **settings)
        grown = 0
        while grown < self.n_estimators:
            step = min(STEP, self.n_estimators - grown)
            grown += step
            forest.set_params(n_estimators=grown).fit(x, y.astype(np.int64) if classes else y, sample_weight=weights)
            bar.advance(step)
        columns = None
        if classes:
            columns = forest.classes_ if target.kind == "multiclass" else np.where(forest.classes_ == 1, 0, -1)
        return Trees.from_sklearn(forest.estimators_, x.shape[1], columns, len(target.columns))
