"""Define the base class of methods that fit one model for each target on features of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from molgraph.auxiliary.tabular.features import Features
from molgraph.auxiliary.tabular.shares import share_scores
from molgraph.auxiliary.tabular.table_featuriser import Choice
from molgraph.auxiliary.tabular.tanimoto_index import TanimotoIndex
from molgraph.auxiliary.tabular.target_model import SharesScore, StoredTarget, TargetData, TargetModel
from molgraph.auxiliary.targets import described, whole
from molgraph.base import progress
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.cores import cores
from molgraph.base.errors import BadValueError
from molgraph.base.finite import check_finite
from molgraph.data.labels import check_targets
from molgraph.data.limits import middle_of, refuse_limits
from molgraph.data.table import Table
from molgraph.data.target_json import notes_of, restore_unlearned, targets_from_json
from molgraph.embed.landmarks import read_vectors, without_folder
from molgraph.explain.feature_shares import FeatureShares
from molgraph.train.archive import refused
from molgraph.train.outputs import ClassWeights, class_tables

BLOCK, BUDGET = 10_000, 2 << 30  # the most rows that are predicted at once, and the most bytes that they may take


@dataclass(frozen=True)
class FittedTargets:
    """The fitted models of a table's targets."""

    targets: tuple[Target, ...]
    features: Features  # how features are computed
    models: tuple[TargetModel | None, ...]  # the model of each target; None for a target that could not be learned
    unlearned: dict[str, str]  # why, for each of those
    index: TanimotoIndex | None = None  # the training rows, for a method that compares molecules with them

    def predict(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and their standard deviations, float64 [n, columns of all targets], from features [n, width]."""
        asked = x if self.index is None else self.index.similarity(x)
        values, spreads = [], []
        for target, model in zip(self.targets, self.models, strict=True):
            empty = np.full((len(x), len(target.columns)), np.nan)
            value, spread = (empty, None) if model is None else model.predict(asked)
            values.append(value)
            spreads.append(empty if spread is None else spread)
        return np.concatenate(values, axis=1), np.concatenate(spreads, axis=1)


class TabularMethod(Method):
    """A method that fits one model for each target, on features computed from a table.

    A subclass has a constructor of keyword arguments, sets ``target_model``, and says how one target is fitted
    (``fit_target``). Features are computed from the molecule column; unreadable molecules are rows with a reason.

    Attributes:
        target_model: the class of the model of one target.
        compares: whether models read Tanimoto similarities to the training rows, in place of the features; these are
            then bits.
        max_rows: the most training rows that are compared with; None for all.
        descriptors: the file of an encoder whose vectors are features too, where the constructor has it.
        features, radius, n_bits, class_weights, seed, threads, store: those of the constructor, where it has them.
    """

    target_model: ClassVar[type[TargetModel]]
    compares: ClassVar[bool] = False
    reads_features = property(lambda self: not self.compares)
    max_rows: int | None = None
    features: Choice = "morgan"
    descriptors: str = "none"
    radius: int = 2
    n_bits: int = 2048
    class_weights: ClassWeights = None
    seed: int = 0
    threads: int | None = None
    store: str | None = None
    _fitted: FittedTargets

    def feature_choice(self) -> Features:
        """The features, by this method's parameters."""
        encoder = None
        if self.descriptors == "rdkit":
            hint = "-s params.features=morgan+descriptors reads RDKit's; --descriptors FILE.mgm an encoder's vectors"
            raise BadValueError(f"{self.name} reads no descriptors of the name 'rdkit'", hint=hint)
        if self.descriptors != "none":
            encoder = read_vectors(self.descriptors)
        return Features(self.features, self.radius, self.n_bits, encoder=encoder)

    @abstractmethod
    def fit_target(self, data: TargetData) -> TargetModel:
        """Fit the model of one target."""

    def n_steps(self) -> int | None:
        """Steps of progress that ``fit_target`` reports for a target; None where it reports none."""
        return None

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Fit a model for each target to the readable rows that have it; ``valid`` and ``workdir`` are not used."""
        self.check_params()
        table.check_one_molecule(self.name)
        bare = replace(table, features=None, feature_names=()) if self.compares else table  # fingerprints alone
        features, matrix = self.feature_choice().fit(bare, cores(self.threads), self.store)
        if not self.learns_limits:
            refuse_limits(table, self.name, "take a graph model, xgboost or gp")
        targets, labels = table.row_targets, check_targets(table, np.isin(np.arange(len(table)), matrix.rows))
        y = labels.y[matrix.rows]
        limited, limits = table.limited[matrix.rows], None if table.limits is None else table.limits[matrix.rows]
        y = y if limits is None else np.where(limited, middle_of(limits), y)
        classes = class_tables(targets, y, self.class_weights)
        weights = None if table.weights is None else table.weights[matrix.rows]
        index = TanimotoIndex.of(matrix.x, y, self.max_rows, int(self.seed)) if self.compares else None
        models: list[TargetModel | None] = []
        steps = self.n_steps()
        total = (len(targets) - len(labels.unlearned)) * (steps or 1)
        with progress.bar(type(self).name.replace("_", " "), total=total) as bar:
            for j, target in enumerate(targets):
                if target.name in labels.unlearned:
                    models.append(None)
                    continue
                use = ~np.isnan(y[:, j])
                if index is not None:
                    use &= index.place >= 0
                if weights is not None:
                    use &= weights > 0
                w = None if weights is None else weights[use]
                if j in classes:
                    w = classes[j][y[use, j].astype(np.int64)] * (1.0 if w is None else w)
                w = None if w is None or (w == w[:1]).all() else w  # equal ones draw other rows in a forest than none
                rows = np.flatnonzero(use)
                x = matrix.x if len(rows) == len(matrix.x) else matrix.x[use]
                place = rows if index is None else index.place[rows]
                bounds = limits[use, j] if limits is not None and limited[use, j].any() else None
                model = self.fit_target(TargetData(target, x, y[use, j], w, place, index, bounds, bar.advance))
                check_finite(model.arrays())
                models.append(model)
                bar.advance(0 if steps else 1)
        notes = () if index is None else index.notes
        if table.feature_names and index is not None:
            notes += ("the table's own feature columns are not used: this method compares fingerprints",)
        self.notes = (*notes_of(labels.unlearned), *notes)
        self._fitted = FittedTargets(targets, features, tuple(models), dict(labels.unlearned), index)
        return self

    @property
    def fitted(self) -> FittedTargets:
        """The fitted models; raises ``NotFittedError`` before ``fit``."""
        return whole(self)

    def predict(self, table: Table) -> Prediction:
        """Predict values, P(class 1), or one probability a class; NaN and a reason where there is none."""
        fitted, threads = self.fitted, cores(self.threads)
        width = sum(len(t.columns) for t in fitted.targets)
        value, spread = np.full((len(table), width), np.nan), np.full((len(table), width), np.nan)
        status, reason = table.status.copy(), table.reason.copy()
        n_index = 0 if fitted.index is None else len(fitted.index)
        rows = max(1, min(BLOCK, BUDGET // row_bytes(fitted.features.width, n_index, width)))
        for start in range(0, max(len(table), 1), rows):  # a table of no rows lacks columns as another does
            block = slice(start, start + rows)
            matrix = fitted.features.of(table.take(np.arange(len(table))[block]), threads, self.store)
            status[block], reason[block] = matrix.status, matrix.reason
            if len(matrix.rows):
                value[start + matrix.rows], spread[start + matrix.rows] = fitted.predict(matrix.x)
        known = None if np.isnan(spread).all() else spread
        more: dict[str, Any] = {"spread": known, "inputs": table.smiles, "unlearned": fitted.unlearned}
        return Prediction(table.ids, fitted.targets, value, status, reason, **more)

    @property
    def shares_features(self) -> bool:
        """Whether its predictions can be taken apart into shares of Morgan bits and other features."""
        return not self.compares and self.features != "vectors" and issubclass(self.target_model, SharesScore)

    def feature_shares(self, table: Table, columns: Sequence[int]) -> FeatureShares:
        """What each feature of each row adds to its score in one output column each, all of one target."""
        fitted = self.fitted
        return share_scores(fitted.targets, fitted.models, fitted.features, table, columns, cores(self.threads))

    def state(self) -> State:
        """The models' arrays, the fill values of the features and what the features are."""
        fitted = self.fitted
        arrays = fitted.features.arrays() | ({} if fitted.index is None else {"reference": fitted.index.packed})
        for j, model in enumerate(fitted.models):
            arrays |= {} if model is None else {f"target_{j}.{name}": array for name, array in model.arrays().items()}
        meta = described(self, fitted.targets, fitted.unlearned)
        if "descriptors" in meta["params"]:  # no folder of this machine
            meta["params"]["descriptors"] = without_folder(self.descriptors)
        return State(arrays, meta | {"features": fitted.features.meta(), "notes": list(self.notes)})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a fitted method; raises ``ModelFileError`` where the state is not whole."""
        with refused("the model's description is not whole"):
            stored_params = state.meta["params"]  # a file of another version may lack one, or have one that is gone
            params = {name: stored_params[name] for name in cls.param_names() if name in stored_params}
            targets = targets_from_json(state.meta["targets"])
            own = state.by_owner()
            fill = np.asarray(state.arrays["fill"])
            features = Features.from_meta(state.meta["features"], fill, own.get("encoder"))
            unlearned = restore_unlearned(state.meta, targets)
            notes = tuple(str(note) for note in state.meta.get("notes", notes_of(unlearned)))
            index = TanimotoIndex.from_arrays(state.arrays, features.n_bits) if cls.compares else None
            stored = [StoredTarget(t, own.get(f"target_{j}", {}), features.width, index) for j, t in enumerate(targets)]
            models = tuple(None if s.target.name in unlearned else cls.target_model.load(s) for s in stored)
            method = cls(**params)
        method._fitted = FittedTargets(targets, features, models, unlearned, index)
        method.notes = notes
        return method


def row_bytes(width: int, n_index: int, n_columns: int) -> int:
    """Bytes that a row takes while it is predicted: features, similarities to the training rows, values."""
    return 12 * width + 44 * n_index + 40 * n_columns
