"""Define ``Confidence``: the intervals of a model's predictions, its domain, and its nearest training molecules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import BadValueError
from molgraph.base.finite import NO_VALUE
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.table import OK, Table
from molgraph.evaluate.coverage import GRADES
from molgraph.train.confidence.calibration import Calibration
from molgraph.train.confidence.intervals import NUMBERS, Intervals, quantile
from molgraph.train.confidence.references import References, fingerprints

COVERAGE = 0.9
WORSE, FEWEST, FIRST, LAST = 1.5, 10, 50, 99  # error beyond the edge by that within; rows; percentiles of distance
PREFIX = "confidence."


class HeldOut(NamedTuple):
    """Predictions of rows by models that did not learn from them.

    Args:
        table: the rows, with their labels.
        prediction: of these rows.
        fold: int64 [n], the rows of a number were predicted by a model that learnt from those of other numbers; -1 for
            rows that none predicted.
    """

    table: Table
    prediction: Prediction
    fold: np.ndarray


@dataclass(frozen=True)
class Confidence:
    """What is said beside each prediction.

    Args:
        targets: of rows.
        intervals: of numbers, and sets of classes.
        references: training molecules; None where none are kept, and then there is no domain.
        limits: float64 [2], distances beyond which a molecule is at the edge of the domain, and outside.
        coverage: share of the measured values that intervals should hold.
        calibration: of the probabilities of classes; None of files from before it.
    """

    targets: tuple[Target, ...]
    intervals: Intervals
    references: References | None
    limits: np.ndarray
    coverage: float = COVERAGE
    calibration: Calibration | None = None

    @classmethod
    def of(cls, held: HeldOut, learnt: Table, *, private: bool = False) -> Self | None:
        """Learn from rows that were held out; None where no row of them has a label and a prediction.

        Args:
            held: their predictions.
            learnt: the rows that the model learnt from, whose molecules are kept.
            private: whether none are kept.
        """
        table, prediction = held.table, held.prediction
        if table.y is None or not (held.fold >= 0).any():
            return None
        targets = tuple(target for target in prediction.targets if target.level == "row")
        names = [target.name for target in targets]
        table, learnt = table.with_targets(names), learnt.with_targets(names)  # without those that helped to learn
        assert table.y is not None
        distance: np.ndarray | None = None
        references = None
        if not private:
            bits, rows = fingerprints(learnt)
            references = References.of(learnt.take(rows), bits) if len(rows) else None
            distance = None if references is None else _distances(held, bits)
        use = (held.fold >= 0) & prediction.ok
        if distance is not None:
            use &= np.isfinite(distance)
        values = prediction.value[use]
        spread = None if prediction.spread is None else prediction.spread[use]
        near = None if distance is None else distance[use]
        intervals = Intervals.of(targets, table.y[use], values, near, spread)
        if not any(len(scores) for scores in intervals.scores):
            return None
        limits = np.ones(2) if near is None else _limits(near, _errors(targets, table.y[use], values))
        return cls(targets, intervals, references, limits, calibration=Calibration.of(targets, table.y[use], values))

    def at(self, coverage: float) -> Self:
        """The same with another coverage; raises ``BadValueError`` where it is no share between 0 and 1."""
        if not 0 < coverage < 1:
            raise BadValueError(f"a coverage of {coverage:g} cannot be", hint="a share, such as 0.9")
        return replace(self, coverage=coverage)

    def with_molecules(self, table: Table) -> Self:
        """The same for a model that learnt from other rows too, whose molecules are kept in the place of those here."""
        if self.references is None:
            return self
        bits, rows = fingerprints(table)
        return replace(self, references=References.of(table.take(rows), bits))

    def extend(self, prediction: Prediction, table: Table, *, refuse: bool = True) -> Prediction:
        """The prediction with intervals, sets, grade and nearest molecule, each where it has none of its own.

        Args:
            prediction: of the model.
            table: the same rows, standardised.
            refuse: whether molecules of a sort that no training molecule is of have no value.
        """
        extra: dict[str, np.ndarray] = {}
        distance = None
        if self.references is not None:
            distance, extra = self._domain(table)
            if "domain" in prediction.extra:
                extra = {name: values for name, values in extra.items() if name not in ("domain", "distance")}
            prediction = self._refused(prediction, table) if refuse else prediction
        if prediction.interval is None and any(t.kind in NUMBERS for t in self.targets):
            numbers = np.concatenate([[t.kind in NUMBERS] * len(t.columns) for t in self.targets])
            half = self.intervals.half_widths(self.coverage, distance, prediction.spread, len(prediction))
            half = np.where(numbers & prediction.ok[:, None], half, np.nan)
            if np.isfinite([quantile(scores, self.coverage) for scores in self.intervals.scores])[numbers].any():
                prediction = replace(prediction, interval=(prediction.value - half, prediction.value + half))
        sets, column = dict[str, np.ndarray](), 0
        for target in self.targets:
            columns = slice(column, column + len(target.columns))
            if target.kind not in NUMBERS and target.name not in prediction.unlearned:
                texts = self.intervals.sets(target, column, prediction.value[:, columns], self.coverage)
                sets[f"{target.name}_set"] = np.where(prediction.ok, texts, "").astype(object)
            column = columns.stop
        if self.calibration is not None:
            sets |= self.calibration.probabilities(self.targets, prediction.value)
        return replace(prediction, extra={**prediction.extra, **sets, **extra})

    def _domain(self, table: Table) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The distances to the nearest training molecules, and the columns that name these."""
        assert self.references is not None
        bits, rows = fingerprints(table)
        near = self.references.nearest(bits)
        n, distance = len(table), np.full(len(table), np.nan)
        distance[rows] = 1 - near.similarity
        grade, nearest = np.full(n, "", dtype=object), np.full(n, "", dtype=object)
        place = np.searchsorted(self.limits, distance[rows], side="left")
        place[(place == 0) & self.references.other_sizes(table.smiles[rows], near)] = 1
        place[self.references.hydrocarbons(table.smiles[rows])] = len(GRADES) - 1
        grade[rows] = np.array(GRADES, dtype=object)[place]
        nearest[rows] = self.references.smiles[near.row]
        extra = {"domain": grade, "distance": distance, "nearest": nearest}
        if any(self.references.ids):
            extra["nearest_id"] = np.full(n, "", dtype=object)
            extra["nearest_id"][rows] = self.references.ids[near.row]
        for j, target in enumerate(self.targets[: self.references.y.shape[1]]):
            value = np.full(n, np.nan)
            value[rows] = self.references.y[near.row, j]
            extra[f"nearest_{target.name}"] = value
            if self.references.signs[:, j].any():  # limits such as >8
                sign = np.full(n, "", dtype=object)
                sign[rows] = np.array(["", ">", "<"], dtype=object)[self.references.signs[near.row, j]]
                extra[f"nearest_{target.name}_qualifier"] = sign
        return distance, extra

    def _refused(self, prediction: Prediction, table: Table) -> Prediction:
        """The prediction without values for molecules of a sort that no training molecule is of."""
        assert self.references is not None
        remarks, rows = np.full(len(table), "", dtype=object), np.flatnonzero(prediction.status == OK)
        remarks[rows] = self.references.strange([str(table.smiles[row]) for row in rows])
        bad = remarks != ""
        if not bad.any():
            return prediction
        status, reason = prediction.status.copy(), prediction.reason.copy()
        status[bad], reason[bad] = NO_VALUE, "outside the domain: it " + remarks[bad]
        value = np.where(bad[:, None], np.nan, prediction.value)
        spread = None if prediction.spread is None else np.where(bad[:, None], np.nan, prediction.spread)
        return replace(prediction, value=value, spread=spread, status=status, reason=reason)

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays for a model file, under names with a prefix."""
        parts = {f"interval.{name}": array for name, array in self.intervals.arrays().items()}
        if self.references is not None:
            parts |= {f"molecule.{name}": array for name, array in self.references.arrays().items()}
        if self.calibration is not None:
            parts |= {f"calibration.{name}": array for name, array in self.calibration.arrays().items()}
        parts |= {"limits": self.limits, "coverage": np.array([self.coverage])}
        return {f"{PREFIX}{name}": array for name, array in parts.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], targets: tuple[Target, ...]) -> Self | None:
        """Rebuild from those of a model file that have the prefix; None where there are none.

        Raises:
            ValueError, LookupError: they do not fit together, or not to the targets.
        """
        fields = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
        if not fields:
            return None
        parts: dict[str, dict[str, np.ndarray]] = {"interval": {}, "molecule": {}, "calibration": {}}
        for name, array in fields.items():
            kind, dot, rest = name.partition(".")
            if dot:
                parts[kind][rest] = array
        intervals = Intervals.from_arrays(parts["interval"])
        references = References.from_arrays(parts["molecule"]) if parts["molecule"] else None
        calibration = Calibration.from_arrays(parts["calibration"]) if parts["calibration"] else None
        rows = tuple(t for t in targets if t.level == "row")
        coverage = float(fields["coverage"].reshape(-1)[0])
        if len(intervals.scores) != sum(len(t.columns) for t in rows) or not 0 < coverage < 1:
            raise ValueError("the intervals are not those of the targets")
        if calibration is not None and len(calibration.slopes) != len(intervals.scores):
            raise ValueError("the calibration is not that of the targets")
        if fields["limits"].shape != (2,) or (references is not None and references.y.shape[1] not in (0, len(rows))):
            raise ValueError("the domain is not that of the targets")
        return cls(rows, intervals, references, np.asarray(fields["limits"], np.float64), coverage, calibration)


def _distances(held: HeldOut, learnt: np.ndarray) -> np.ndarray:
    """float64 [n]: the distance of each held-out row to the rows that its model learnt from, of these fingerprints.

    Of several folds those are the rows of the others.
    """
    out = np.full(len(held.table), np.nan)
    bits, rows = fingerprints(held.table)
    fold = held.fold[rows]
    numbers = np.unique(fold[fold >= 0])
    for number in numbers:
        mask = fold == number
        out[rows[mask]] = 1 - find_nearest(bits[mask], bits[~mask] if len(numbers) > 1 else learnt).similarity
    return out


def _errors(targets: tuple[Target, ...], y: np.ndarray, value: np.ndarray) -> np.ndarray:
    """float64 [n]: each row's error, in units of its target's mean error; of classes the probability of the others."""
    errors, column = np.full(y.shape, np.nan), 0
    for j, target in enumerate(targets):
        width = len(target.columns)
        if target.kind in NUMBERS or target.kind == "binary":
            errors[:, j] = np.abs(y[:, j] - value[:, column])
        else:
            labels = np.nan_to_num(y[:, j]).astype(int)
            errors[:, j] = np.where(np.isfinite(y[:, j]), 1 - value[np.arange(len(y)), column + labels], np.nan)
        column += width
    counts = np.isfinite(errors)
    means = np.where(counts, errors, 0.0).sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    scaled = errors / np.where(means > 0, means, 1.0)
    total = np.where(np.isfinite(scaled), scaled, 0.0).sum(axis=1)
    mean: np.ndarray = np.divide(total, counts.sum(axis=1), out=np.full(len(y), np.nan), where=counts.any(axis=1))
    return mean


def _limits(distance: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """float64 [2]: the distances at which the edge of the domain and its outside begin.

    The edge begins at the smallest percentile of the held-out distances, from 50 on, beyond which the mean error is at
    least 1.5 times that within; at 90 where it is nowhere. Outside begins at percentile 99.
    """
    known = np.isfinite(errors)
    edge = float(np.percentile(distance, 90))
    for percentile in range(FIRST, 96, 5):
        limit = float(np.percentile(distance, percentile))
        beyond = known & (distance > limit)
        within = known & ~beyond
        if beyond.sum() >= FEWEST and within.any() and errors[beyond].mean() >= WORSE * errors[within].mean():
            edge = limit
            break
    return np.array([edge, max(edge, float(np.percentile(distance, LAST)))])
