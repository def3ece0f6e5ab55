"""Define the base class of methods that train a network of another library for each kind of target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np

from molgraph.auxiliary.tabular.target_model import clip_to_bounds
from molgraph.auxiliary.targets import checked, described, whole
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.cores import cores
from molgraph.base.finite import check_finite
from molgraph.base.ranges import Range
from molgraph.data.labels import check_targets
from molgraph.data.table import Table
from molgraph.data.target_json import notes_of, restore_unlearned, targets_from_json
from molgraph.train.archive import refused
from molgraph.train.outputs import DescriptorScale, Outputs
from molgraph.train.restore import bounded_by

if TYPE_CHECKING:
    from torch import nn

Width = Annotated[int, Range(1, 100_000)]


@dataclass(frozen=True)
class Group:
    """Targets that one network learns: all numbers, all binary ones, or one of several classes."""

    kind: str  # ``regression``, ``binary`` or ``multiclass``
    columns: tuple[int, ...]  # their numbers among the table's targets
    n_classes: int = 0  # of a multiclass target; 0 for others
    d_extra: int = 0  # number of the table's own feature columns


class PeerRows(NamedTuple):
    """Readable rows for a group."""

    smiles: list[str]  # n molecules
    extra: np.ndarray  # float32 [n, d_extra], standardised feature columns
    # float64 [n, targets of the group]: scaled values, or class codes; NaN where missing. None to predict
    y: np.ndarray | None = None
    weights: np.ndarray | None = None  # float64 [n], of mean 1; None to predict


class Fitted(NamedTuple):
    """What ``fit`` leaves: the targets and their scale, the scale of feature columns, and a model for each group."""

    outputs: Outputs
    descriptors: DescriptorScale
    groups: tuple[Group, ...]
    models: tuple[Any, ...]


class PeerMethod(Method):
    """A method that trains a network of another library for each kind of target.

    A subclass has a constructor of keyword arguments with ``threads`` among them, and makes, trains and asks the other
    library's models. Numbers are standardised, as are the table's own feature columns.
    """

    gradient_descent = True
    threads: int | None
    _fitted: Fitted

    @abstractmethod
    def build(self, group: Group) -> Any:
        """The library's model with fresh weights."""

    @abstractmethod
    def train(self, group: Group, rows: PeerRows, valid: PeerRows | None) -> Any:
        """A trained model; ``valid`` is None for a method that does not use it."""

    @abstractmethod
    def ask(self, model: Any, group: Group, rows: PeerRows) -> np.ndarray:
        """Predictions, float64 [n, k]: scaled values, P(class 1) of each target, or one probability a class."""

    def network(self, model: Any) -> nn.Module:
        """The torch module of a model: by default the model itself."""
        return model

    def _weights(self, model: Any) -> dict[str, np.ndarray]:
        weights = self.network(model).state_dict()
        return {name: value.detach().cpu().numpy().copy() for name, value in weights.items()}

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Train on ``table``; ``valid`` picks the epoch where ``uses_valid``; ``workdir`` is not used."""
        self.check_params()
        cores(self.threads)
        table.check_one_molecule(self.name)
        table = checked(table)
        targets, labels = table.row_targets, check_targets(table)
        mean, scale = np.zeros(len(targets)), np.ones(len(targets))
        for j, target in enumerate(targets):
            y = labels.y[table.ok & ~np.isnan(labels.y[:, j]), j]
            if target.kind in ("regression", "bounded") and len(y):
                mean[j], scale[j] = y.mean(), y.std() or 1.0
        outputs = Outputs(targets, mean, scale, dict(labels.unlearned))
        features = None if table.features is None else table.features[table.ok]
        descriptors = DescriptorScale.fit(features, tuple(table.feature_names))
        groups, models = groups_of(targets, labels.unlearned, len(descriptors.names)), []
        judged = checked(valid) if self.uses_valid and valid is not None and valid.y is not None else None
        for group in groups:
            rows = _rows(outputs, descriptors, table, labels.y, group)
            other = None if judged is None else _rows(outputs, descriptors, judged, judged.y, group)
            models.append(self.train(group, rows, other if other and other.smiles else None))
            check_finite(self._weights(models[-1]))
        self.notes = notes_of(labels.unlearned)
        self._fitted = Fitted(outputs, descriptors, groups, tuple(models))
        return self

    @property
    def fitted(self) -> Fitted:
        """What was fitted; raises ``NotFittedError`` before ``fit``."""
        return whole(self)

    def predict(self, table: Table) -> Prediction:
        """Predict values, P(class 1), or one probability a class."""
        outputs, descriptors, groups, models = self.fitted
        table = checked(table)
        rows, value = np.flatnonzero(table.ok), np.full((len(table), outputs.d_out), np.nan)
        asked = PeerRows(list(table.smiles[rows]), _extra(descriptors, table)[rows])
        for group, model in zip(groups, models, strict=True) if len(rows) else ():
            answers = self.ask(model, group, asked)
            for i, j in enumerate(group.columns):
                values = answers if group.n_classes else answers[:, [i]] * outputs.scale[j] + outputs.mean[j]
                value[rows, outputs.slices[j]] = clip_to_bounds(outputs.targets[j], values)
        status, reason, unlearned = table.status, table.reason, outputs.unlearned
        return Prediction(table.ids, outputs.targets, value, status, reason, inputs=table.smiles, unlearned=unlearned)

    def state(self) -> State:
        """The networks' weights as arrays, the rest as JSON."""
        outputs, descriptors, _, models = self.fitted
        arrays = {
            "scale": np.stack([outputs.mean, outputs.scale]),
            "extra": np.stack([descriptors.mean, descriptors.scale]),
        }
        for i, model in enumerate(models):
            arrays |= {f"group_{i}.{name}": array for name, array in self._weights(model).items()}
        meta = described(self, outputs.targets, outputs.unlearned)
        return State(arrays, meta | {"feature_names": list(descriptors.names)})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a fitted method; raises ``ModelFileError`` where the state is not whole."""
        import torch

        with refused("the model's description is not whole"):
            method = cls(**state.meta["params"])
            method.check_params()
            targets = targets_from_json(state.meta["targets"])
            unlearned = restore_unlearned(state.meta, targets)
            names = tuple(str(name) for name in state.meta["feature_names"])
            scale, extra = np.asarray(state.arrays["scale"]), np.asarray(state.arrays["extra"])
            if scale.shape != (2, len(targets)) or extra.shape != (2, len(names)) or not (extra[1] > 0).all():
                raise ValueError("the scales do not fit the targets")
            groups, parts, models = groups_of(targets, unlearned, len(names)), state.by_owner(), []
            for i, group in enumerate(groups):
                arrays = parts.get(f"group_{i}", {})
                with bounded_by(arrays):
                    model = method.build(group)
                weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
                method.network(model).load_state_dict(weights)
                method.ask(
                    model, group, PeerRows(["CO"], np.zeros((1, len(names)), dtype=np.float32))
                )  # can it predict?
                models.append(model)
        outputs = Outputs(targets, scale[0], scale[1], unlearned)
        method._fitted = Fitted(outputs, DescriptorScale(names, extra[0], extra[1]), groups, tuple(models))
        method.notes = notes_of(unlearned)
        return method


def groups_of(targets: tuple[Target, ...], unlearned: Mapping[str, str], d_extra: int) -> tuple[Group, ...]:
    """The networks that a table needs."""
    learned = [j for j, t in enumerate(targets) if t.name not in unlearned]
    numbers = tuple(j for j in learned if targets[j].kind in ("regression", "bounded"))
    binary = tuple(j for j in learned if targets[j].kind == "binary")
    several = [j for j in learned if targets[j].kind == "multiclass"]
    groups = [Group(kind, js, 0, d_extra) for kind, js in (("regression", numbers), ("binary", binary)) if js]
    return (*groups, *(Group("multiclass", (j,), len(targets[j].classes), d_extra) for j in several))


def _rows(outputs: Outputs, descriptors: DescriptorScale, table: Table, y: Any, group: Group) -> PeerRows:
    js = np.array(group.columns)
    weights = np.ones(len(table)) if table.weights is None else table.weights
    use = np.flatnonzero(table.ok & ~np.isnan(y[:, js]).all(axis=1) & (weights > 0))
    scaled = (y[np.ix_(use, js)] - outputs.mean[js]) / outputs.scale[js]
    mean = weights[use].mean() if len(use) else 1.0
    return PeerRows(list(table.smiles[use]), _extra(descriptors, table)[use], scaled, weights[use] / mean)


def _extra(descriptors: DescriptorScale, table: Table) -> np.ndarray:
    """The table's own feature columns, standardised, float32 [n, d_extra]."""
    extra = descriptors.apply(table.features, tuple(table.feature_names))
    return np.zeros((len(table), 0), dtype=np.float32) if extra is None else extra
