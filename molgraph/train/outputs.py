"""Scale labels and descriptors for learning, and convert a network's outputs to values in the targets' units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError, FormatError, MissingColumnError
from molgraph.base.table import Gaps, LevelName
from molgraph.data.labels import bounds_of
from molgraph.data.levels import level_of
from molgraph.train.references import References
from molgraph.train.sparsity import mean_observed, own_columns, sparsity_normalised

LIMIT = 30.0  # standard deviations: further out, a descriptor says no more than that it is far out
ClassWeights = Literal["balanced"] | Mapping[str, Any] | None


@dataclass(frozen=True)
class Outputs:
    """Targets, and the scale that their values are learned on.

    Args:
        targets: all of one level, in the order of ``y``'s columns.
        mean: float64 [t], taken from regression values before learning; 0 for other kinds.
        scale: float64 [t], what they are then divided by; 1 for other kinds and for a constant target.
        unlearned: why, for each target that the labels could not teach; its outputs mean nothing.
        references: what each atom adds by its element, taken from values before the mean is; None without.
    """

    targets: tuple[Target, ...]
    mean: np.ndarray
    scale: np.ndarray
    unlearned: Mapping[str, str] = field(default_factory=dict)
    references: References | None = None

    @classmethod
    def fit(
        cls,
        targets: tuple[Target, ...],
        y: np.ndarray,
        unlearned: Mapping[str, str] | None = None,
        row_weights: np.ndarray | None = None,
        counts: np.ndarray | None = None,
    ) -> Outputs:
        """Scale regression targets to mean 0 and standard deviation 1, from these rows alone; NaN is no value.

        Mean and deviation are weighted as the loss is, so that rows which hardly count don't set the scale. With
        ``counts``, float64 [n, elements], the atoms of each element, the targets are extensive: a least-squares value
        of each element is taken off in the place of a mean, and the deviation is that of what is left.

        Example:
            >>> out = Outputs.fit((Target("a"),), np.array([[1.0], [3.0], [np.nan]]))
            >>> out.mean.tolist(), out.scale.tolist()
            ([2.0], [1.0])
        """
        mean, scale, references = np.zeros(len(targets)), np.ones(len(targets)), None
        whole = y
        if counts is not None:
            numbers = [target.kind == "regression" for target in targets]
            references = References.fit(counts, np.where(numbers, y, np.nan), row_weights)
            y = y - references.total(counts)
        for j, target in enumerate(targets):
            here = ~np.isnan(y[:, j])
            if target.kind == "regression" and here.any():
                weights = None if row_weights is None else row_weights[here]
                mean[j] = np.average(y[here, j], weights=weights) if references is None else 0.0
                spread = np.sqrt(np.average((y[here, j] - mean[j]) ** 2, weights=weights))
                rounding = 1e-12 * (abs(mean[j]) if references is None else 100 * np.abs(whole[here, j]).max())
                scale[j] = spread if spread > max(1e-12, rounding) else 1.0
        return cls(targets, mean, scale, dict(unlearned or {}), references)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Mean, scale and references as arrays of a model file."""
        arrays = {"target.mean": self.mean, "target.scale": self.scale}
        return arrays if self.references is None else arrays | self.references.to_arrays()

    @property
    def level(self) -> LevelName:
        """The level that all targets share."""
        return level_of(self.targets)

    @property
    def slices(self) -> tuple[slice, ...]:
        """The output columns of each target."""
        edges = np.cumsum([0] + [len(t.columns) for t in self.targets])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(edges))

    @property
    def d_out(self) -> int:
        """Number of output columns."""
        return sum(len(t.columns) for t in self.targets)

    @property
    def column_scale(self) -> np.ndarray:
        """float64 [d_out]: the scale of each output column."""
        return np.repeat(self.scale, [len(t.columns) for t in self.targets])

    def labels(self, y: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """float32 [n, t]: scaled values, class codes, or fractions of the way between bounds; 0 where missing.

        ``counts``, float64 [n, elements], where there are references.
        """
        out = (y - self.mean - self._references(counts)) / self.scale
        for j, target in enumerate(self.targets):
            if target.bounds is not None and target.kind == "bounded":
                low, high = target.bounds
                out[:, j] = (y[:, j] - low) / (high - low)
        return np.nan_to_num(out, nan=0.0).astype(np.float32)

    def limits(self, limits: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """float32 [n, t, 2]: limits of regression targets on the scale of ``labels``."""
        taken = (self.mean + self._references(counts))[..., None]
        return ((limits - taken) / self.scale[:, None]).astype(np.float32)

    def values(self, raw: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """float64 [n, d_out]: raw outputs as values in the targets' own units, or as probabilities.

        ``counts``, float64 [n, elements], where there are references.
        """
        out, references = raw.astype(np.float64), self._references(counts)
        for j, (target, columns) in enumerate(zip(self.targets, self.slices, strict=True)):
            part = out[:, columns]
            if target.kind == "regression":
                part = part * self.scale[j] + self.mean[j] + references[:, j : j + 1]
            elif target.kind == "multiclass":
                part = np.exp(part - part.max(axis=1, keepdims=True))
                part /= part.sum(axis=1, keepdims=True)
            else:
                part = 0.5 * (1.0 + np.tanh(0.5 * part))
                if target.kind == "bounded":
                    low, high = bounds_of(target)
                    part = low + part * (high - low)
            out[:, columns] = part
        return out

    def _references(self, counts: np.ndarray | None) -> np.ndarray:
        """float64 [n or 1, t]: what the atoms of each row add by their elements."""
        return np.zeros((1, len(self.targets))) if self.references is None else self.references.total(counts)


@dataclass(frozen=True)
class DescriptorScale:
    """Mean and scale of each descriptor over the training part.

    ``observed``: how many of the table's own columns a row has on average, where a row with fewer has them scaled up
    (``train.sparsity``); their mean is then 0, and their scale the root of the mean square. 0 elsewhere.
    """

    names: tuple[str, ...]  # the columns, which prediction needs again
    mean: np.ndarray  # float64 [f]
    scale: np.ndarray  # float64 [f]
    limit: float = LIMIT  # of a scaled value, either way
    observed: float = 0.0

    @classmethod
    def fit(
        cls,
        features: np.ndarray | None,
        names: tuple[str, ...],
        row_weights: np.ndarray | None = None,
        gaps: Gaps = "mark",
    ) -> DescriptorScale:
        """Take the scale from these rows alone, weighted as the loss is.

        Example:
            >>> d = DescriptorScale.fit(np.array([[1.0], [3.0]]), ("logp",))
            >>> d.apply(np.array([[3.0], [2.0]]), ("logp",)).ravel().tolist()
            [1.0, 0.0]
        """
        if features is None or not features.shape[1]:
            return cls((), np.zeros(0), np.ones(0))
        weights = np.ones(len(features)) if row_weights is None else row_weights
        there, scaled_up = np.isfinite(features), own_columns(names) & (gaps == "scale")
        known = there * weights[:, None]  # RDKit has no value for some molecules
        total = np.maximum(known.sum(axis=0), np.finfo(np.float64).tiny)
        mean = (known * np.nan_to_num(features, nan=0.0)).sum(axis=0) / total
        mean = np.where(scaled_up, 0.0, mean)
        scale = np.sqrt((known * (np.nan_to_num(features, nan=0.0) - mean) ** 2).sum(axis=0) / total)
        scale = np.where(scale > 1e-12 * np.maximum(1.0, np.abs(mean)), scale, 1.0)
        observed = mean_observed(there[:, scaled_up], weights) if scaled_up.any() else 0.0
        return cls(tuple(names), mean, scale, observed=observed)

    def apply(self, features: np.ndarray | None, names: tuple[str, ...]) -> np.ndarray | None:
        """float32 [n, f] in the order of ``self.names``; a gap becomes 0, the mean.

        Raises:
            MissingColumnError: a column that was learned from is not there.
        """
        if not self.names:
            return None
        missing = [name for name in self.names if name not in names]
        if missing or features is None:
            raise MissingColumnError(
                f"the model was trained with the feature columns {list(self.names)}, the table has no {missing[0]!r}",
                hint="give the same columns as features",
            )
        order = [names.index(name) for name in self.names]
        scaled = (features[:, order] - self.mean) / self.scale
        if self.observed:
            columns = own_columns(self.names)
            scaled[:, columns] = sparsity_normalised(scaled[:, columns], ~np.isnan(scaled[:, columns]), self.observed)
        return np.clip(np.nan_to_num(scaled, nan=0.0), -self.limit, self.limit).astype(np.float32)

    def unit_rows(self) -> DescriptorScale:
        """The scale that gives rows of length 1 on average, whatever the number of columns.

        A head that reads 200 columns of unit variance beside a graph's state learns little from that state.
        """
        root = max(1, len(self.names)) ** 0.5
        return replace(self, scale=self.scale * root, limit=self.limit / root)


def label_weights(y: np.ndarray, row_weights: np.ndarray | None, classes: Mapping[int, np.ndarray]) -> np.ndarray:
    """float32 [n, t]: how much each label counts: 0 where missing, else the row's weight times its class's weight.

    Weights of rows are scaled to mean 1, so that the learning rate keeps its meaning.
    """
    weights = (~np.isnan(y)).astype(np.float64)
    if row_weights is not None:
        weights *= (row_weights / row_weights.mean())[:, None]
    for j, table in classes.items():
        known = ~np.isnan(y[:, j])
        weights[known, j] *= table[y[known, j].astype(np.int64)]
    return weights.astype(np.float32)


def class_tables(targets: tuple[Target, ...], y: np.ndarray, class_weights: ClassWeights) -> dict[int, np.ndarray]:
    """Each class's weight, for the columns of ``y`` that hold classes; empty where classes count alike.

    Args:
        targets: the columns.
        y: float64 [n, t], the labels of the training part, by which the validation part is judged too.
        class_weights: None; ``balanced`` (n / (classes * count), as scikit-learn has it); or a weight for each
            label, or for each target name such a mapping.
    """
    if class_weights not in (None, "balanced") and not isinstance(class_weights, Mapping):
        raise FormatError(f"class_weights is {class_weights!r}, expected None, 'balanced' or a weight for each label")
    tables = {}
    for j, target in enumerate(targets):
        if class_weights is None or target.kind not in ("binary", "multiclass"):
            continue
        labels = ("0", "1") if target.kind == "binary" else target.classes
        if isinstance(class_weights, Mapping):
            tables[j] = _table(class_weights.get(target.name, class_weights), target, labels)
        else:
            codes = y[~np.isnan(y[:, j]), j].astype(np.int64)
            tables[j] = len(codes) / (len(labels) * np.maximum(np.bincount(codes, minlength=len(labels)), 1))
    return tables


def _table(chosen: Mapping[Any, Any], target: Target, labels: Sequence[str]) -> np.ndarray:
    by_text = {str(key): value for key, value in chosen.items()}
    if unknown := sorted(set(by_text) - set(labels)):
        raise DataError(f"class_weights name {unknown[0]!r}, which target {target.name!r} does not have")
    try:
        table = np.array([float(by_text.get(label, 1.0)) for label in labels])
    except (TypeError, ValueError):
        table = np.full(len(labels), np.nan)
    if not (np.isfinite(table) & (table >= 0)).all() or not table.any():
        raise FormatError(f"class_weights of target {target.name!r} are {dict(chosen)}, expected numbers from 0 on")
    return table
