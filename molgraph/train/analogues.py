"""Correct predicted values by the model's residuals on the nearest measured molecules (Tanimoto similarity)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import BadValueError, EmptyError
from molgraph.chem.tanimoto import BitTable
from molgraph.data.table import Table
from molgraph.train.confidence.intervals import NUMBERS
from molgraph.train.confidence.references import fingerprints

SIMILAR, MOST, FEWEST = 0.4, 5, 10  # Tanimoto similarity of analogues; parents of one; pairs that estimate variances
ROWS = 1024  # molecules that are compared with all parents at once


def shared_effect(
    residuals: np.ndarray, counts: np.ndarray, shared: float, single: float
) -> tuple[np.ndarray, np.ndarray]:
    """What an analogue's value is expected to be above its prediction, and the variance of its error then.

    A value is ``y = f(x) + u + e``: the effect ``u ~ N(0, t2)`` is the same for a molecule and its analogues, the error
    ``e ~ N(0, s2)`` is each one's. From n measured analogues of mean residual r the effect is inferred (abduction), and
    added to the prediction of the changed molecule (action, prediction): its mean is ``n t2 / (n t2 + s2) r``, and the
    error has the variance ``s2 + t2 s2 / (n t2 + s2)``. With n = 1 the weight is ``t2 / (t2 + s2)``; with ``t2 = 0`` or
    n = 0 the prediction stays. Buesing et al. 2019, "Woulda, Coulda, Shoulda", ICLR, for a linear model of
    normal effects.

    Args:
        residuals: float64 [rows], the mean of measured less predicted values of each row's analogues; not read at n=0.
        counts: [rows], n.
        shared: t2, in the squared unit of the value.
        single: s2.

    Returns:
        float64 [rows] each.

    Example:
        >>> shift, variance = shared_effect(np.array([2.0, 0.0]), np.array([1, 0]), shared=1.0, single=0.25)
        >>> shift.round(2).tolist(), variance.round(2).tolist()
        ([1.6, 0.0], [0.45, 1.25])
    """
    total = counts * shared + single
    shift = np.where(counts > 0, counts * shared * residuals / np.where(total > 0, total, 1.0), 0.0)
    return shift, single + shared * single / np.where(total > 0, total, 1.0)


@dataclass(frozen=True)
class Analogues:
    """Measured molecules with what a model predicts too high or too low for them.

    Args:
        targets: of whole rows, as the model predicts them.
        ids: object [n].
        bits: uint8 [n, 2048], their fingerprints.
        residuals: float64 [n, targets], measured less predicted; NaN where not measured, and of classes.
        shared, single: float64 [targets], the variances t2 and s2; NaN of classes.
    """

    targets: tuple[Target, ...]
    ids: np.ndarray
    bits: np.ndarray
    residuals: np.ndarray
    shared: np.ndarray
    single: np.ndarray

    @classmethod
    def of(cls, table: Table, prediction: Prediction, share: float | None = None) -> Analogues:
        """Learn from measured rows.

        ``t2 + s2`` is the mean square of the residuals, and ``t2`` the mean product of those of two analogues, of all
        pairs of a row with its nearest ones; or ``share`` of the sum.

        Args:
            table: standardised, with the values of the model's targets.
            prediction: of the model, which did not learn from these rows.
            share: the weight ``t2 / (t2 + s2)`` of a single analogue; None to estimate it.

        Raises:
            BadValueError: a share outside 0 to 1. EmptyError: no measured row, or too few pairs to estimate a share.
        """
        if share is not None and not 0 <= share <= 1:
            raise BadValueError(f"the share of an analogue is {share:g}", hint="from 0, the plain prediction, to 1")
        bits, rows = fingerprints(table)
        targets = tuple(target for target in prediction.targets if target.level == "row")
        residuals = np.full((len(rows), len(targets)), np.nan)
        for j, target in enumerate(targets):
            if target.kind in NUMBERS and table.y is not None:
                column = prediction.columns.index(target.columns[0])
                residuals[:, j] = table.y[rows, j] - prediction.value[rows, column]
        numbers = [j for j, target in enumerate(targets) if target.kind in NUMBERS]
        if not np.isfinite(residuals).any():
            raise EmptyError("no analogue has a measured number of the model", hint="add a column of its target's name")
        shared, single = (np.full(len(targets), np.nan) for _ in range(2))
        analogues = cls(targets, table.ids[rows], bits, residuals, shared, single)
        for j in numbers:
            shared[j], single[j] = analogues._variances(j, share)
        return analogues

    def _variances(self, j: int, share: float | None) -> tuple[float, float]:
        residuals = self.residuals[:, j]
        known = np.isfinite(residuals)
        total = float((residuals[known] ** 2).mean()) if known.any() else float("nan")
        if share is None:
            mean, counts, _, _ = self._nearest(self.bits, j, itself=False)
            pairs = known & (counts > 0)
            if pairs.sum() < FEWEST and known.any():
                words = f"{int(pairs.sum())} of the measured molecules have an analogue among them"
                hint = f"give {FEWEST} or more of them, or the weight of one yourself: --parent-share 0.5"
                raise EmptyError(f"{words}, too few to weigh one of {self.targets[j].name}", hint=hint)
            product = float((residuals * mean)[pairs].mean()) if pairs.any() else 0.0
            share = min(max(product / total, 0.0), 1.0) if total > 0 else 0.0
        return share * total, (1 - share) * total

    def _nearest(
        self, bits: np.ndarray, j: int, *, itself: bool = True
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of each fingerprint: the mean residual and number of its analogues, the nearest one, and its similarity."""
        known = np.flatnonzero(np.isfinite(self.residuals[:, j]))
        n, k = len(bits), min(MOST, max(len(known) - (not itself), 0))
        mean, counts, row, best = np.zeros(n), np.zeros(n, np.int64), np.full(n, -1), np.full(n, np.nan)
        if not k:
            return mean, counts, row, best
        parents = BitTable(self.bits[known])
        for start in range(0, n, ROWS):
            part = np.arange(start, min(start + ROWS, n))
            alike = BitTable(bits[part], like=parents).similarity(parents).astype(np.float64)
            if not itself:
                alike[part[:, None] == known[None, :]] = -1.0
            nearest = np.argsort(-alike, axis=1, kind="stable")[:, :k]
            similarity = np.take_along_axis(alike, nearest, axis=1)
            use = similarity >= SIMILAR
            counts[part] = use.sum(axis=1)
            sums = np.where(use, self.residuals[known[nearest], j], 0.0).sum(axis=1)
            mean[part] = sums / np.maximum(counts[part], 1)
            row[part], best[part] = known[nearest[:, 0]], similarity[:, 0]
        return mean, counts, row, best

    def correct(self, prediction: Prediction, table: Table) -> Prediction:
        """The prediction with corrected numbers, whose intervals are narrower as the error's variance says.

        Beside each number stand ``NAME_plain``, what the model alone says, ``NAME_sd``, the standard deviation of the
        error, ``NAME_parents``, how many analogues there are, and ``NAME_parent`` and ``NAME_similarity``, the nearest.

        Args:
            prediction: of the model.
            table: the same rows, standardised.
        """
        bits, rows = fingerprints(table)
        value, extra = prediction.value.copy(), dict[str, np.ndarray]()
        low, high = (None, None) if prediction.interval is None else (end.copy() for end in prediction.interval)
        for j, target in enumerate(self.targets):
            if target.kind not in NUMBERS or not np.isfinite(self.residuals[:, j]).any():
                continue
            column, name = prediction.columns.index(target.columns[0]), target.name
            mean, counts, row, best = self._nearest(bits, j)
            shift, variance = shared_effect(mean, counts, self.shared[j], self.single[j])
            plain, total = value[rows, column].copy(), self.shared[j] + self.single[j]
            value[rows, column] += shift
            parts = {"plain": plain, "sd": np.sqrt(variance), "parents": counts, "similarity": best}
            for word, part in parts.items():
                extra[f"{name}_{word}"] = np.full(len(table), np.nan)
                extra[f"{name}_{word}"][rows] = np.where(np.isfinite(plain), part, np.nan)
            extra[f"{name}_parent"] = np.full(len(table), "", dtype=object)
            extra[f"{name}_parent"][rows] = np.where(row >= 0, self.ids[row], "")
            narrower = np.sqrt(variance / total) if total > 0 else np.ones(len(rows))
            for end in (low, high):
                if end is None:
                    continue
                end[rows, column] = value[rows, column] + (end[rows, column] - plain) * narrower
        interval = None if low is None or high is None else (low, high)
        return replace(prediction, value=value, interval=interval, extra={**prediction.extra, **extra})
