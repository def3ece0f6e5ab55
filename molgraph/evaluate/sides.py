"""Compare a model of pairs with models of the ligand or the protein alone, with intervals of the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from molgraph.base.contracts import Metric, Prediction, Target
from molgraph.data.sides import Side
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric, has_value
from molgraph.evaluate.statistics import Interval, paired_difference
from molgraph.evaluate.verdict import too_few, worded

N = 1000  # resamples of the test rows
MOST_TARGETS = 20  # of which the gaps are told


class Gap(NamedTuple):
    """The score of a model of pairs less that of one side alone, on the same rows.

    Args:
        side: what the control reads.
        metric: of the scores.
        whole, alone: the scores, means over the fits.
        difference: ``whole - alone`` with its interval; NaN where the rows give none.
        why_none: why they give none; empty where they do.
        target: the name of the target, where there are several.
        mean: the score of the mean label on these rows; NaN where it is not compared.
        over_mean: ``whole - mean`` with its interval; None where it is not compared.
    """

    side: Side
    metric: Metric
    whole: float
    alone: float
    difference: Interval
    why_none: str = ""
    target: str = ""
    mean: float = float("nan")
    over_mean: Interval | None = None

    @property
    def learned(self) -> bool:
        """Whether the model is better than the mean label by more than chance; true where that is not compared."""
        return self.over_mean is None or self._better(self.over_mean)

    @property
    def used(self) -> bool:
        """Whether the model is better than the mean label and than the side, each by more than chance.

        A model that is merely less wrong than the side alone has learned nothing, and so has used nothing.
        """
        return self.learned and self._better(self.difference)

    def _better(self, difference: Interval) -> bool:
        return bool(difference.low > 0) if self.metric.higher_is_better else bool(difference.high < 0)

    @property
    def holds_zero(self) -> bool:
        """Whether the interval of the difference holds 0."""
        return bool(self.difference.low <= 0 <= self.difference.high)

    @property
    def sentence(self) -> str:
        """Whether the other side was used, in words, without a full stop."""
        of = f" for {self.target}" if self.target else ""
        if self.why_none:
            return f"Whether the {self.side.other} was used{of} cannot be told: {self.why_none}"
        label = self.metric.label or self.metric.name
        if not self.learned and self.over_mean is not None:
            reason = f"{label} {self.whole:#.3g}, {self.mean:#.3g} for the mean; difference {worded(self.over_mean)}"
            return f"Nothing was learned{of}, so nothing shows that the {self.side.other} was used: {reason}"
        scores = f"{label} {self.whole:#.3g} with it, {self.alone:#.3g} for"
        scores += f" the {self.side.title}; difference {worded(self.difference)}"
        if self.used:
            return f"The {self.side.other} was used{of}: {scores}"
        return f"Nothing shows that the {self.side.other} was used{of}: {scores}"


def gap(
    table: Table,
    target: Target,
    side: Side,
    whole: Sequence[Prediction],
    alone: Sequence[Prediction],
    *,
    mean: Prediction | None = None,
    seed: int = 0,
    n: int = N,
) -> Gap:
    """Compare fits of a model of pairs with fits of one side alone, on the rows that all of them predict.

    The difference is that of the mean scores of the fits. Its interval is the percentile bootstrap's over the test
    rows, which are drawn once for all fits, and as for a verdict on the same rows; it speaks of these fits and of other
    rows like these. Rows of one ligand or protein are drawn one by one, so it is narrow where few entities stand in
    many rows.

    Args:
        table: test rows with measured values.
        target: a target of its rows.
        side: what the second model reads.
        whole, alone: predictions of ``table``, one of each fit.
        mean: the prediction of the mean label, which the model has to beat too; None leaves it out.
        seed: of the bootstrap.
        n: resamples of the rows.

    Example:
        >>> from molgraph.base.table import OK
        >>> from molgraph.data.read import read_table
        >>> from molgraph.data.sides import sides_of
        >>> rows = {"drug": ["CCO", "CC", "C"] * 20, "protein": ["MKT"] * 60, "y": np.arange(60.0)}
        >>> table = read_table(rows, smiles="drug", sequence="protein", targets=["y"])
        >>> right = Prediction(table.ids, table.targets, table.y, table.status, table.reason)
        >>> wrong = Prediction(table.ids, table.targets, table.y[::-1], table.status, table.reason)
        >>> gap(table, table.targets[0], sides_of(table)[0], [right], [wrong]).used
        True
    """
    metric, none = default_metric(target.kind), Interval(*[float("nan")] * 3)
    y = np.full(len(table), np.nan) if table.y is None else table.with_targets([target.name]).y[:, 0]  # type: ignore[index]
    pairs = [(columns_of(a, target), columns_of(b, target)) for a, b in zip(whole, alone, strict=True)]
    floor = None if mean is None else columns_of(mean, target)
    keep = np.isfinite(y) & np.all([has_value(values) for pair in pairs for values in pair], axis=0)
    y, pairs, floor = y[keep], [(a[keep], b[keep]) for a, b in pairs], None if floor is None else floor[keep]
    scores = np.array([[evaluate_metric(metric, y, values)[0] for values in pair] for pair in pairs])
    first, second = (float(value) for value in scores.mean(axis=0))
    several = target.name if len(table.row_targets) > 1 else ""
    if reason := too_few(y, target) or ("" if np.isfinite(scores).all() else "they give no score"):
        return Gap(side, metric, first, second, none, reason, several)
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    difference = paired_difference(y, ours, theirs, metric, n, seed)
    if floor is None:
        return Gap(side, metric, first, second, difference, "", several)
    over, score = paired_difference(y, ours, floor, metric, n, seed), evaluate_metric(metric, y, floor)[0]
    return Gap(side, metric, first, second, difference, "", several, score, over)


def gaps(
    table: Table,
    sides: Sequence[Side],
    whole: Prediction,
    alone: Mapping[str, Prediction],
    *,
    mean: Prediction | None = None,
    seed: int = 0,
) -> tuple[Gap, ...]:
    """The gap to each side and for each target of a test part.

    Args:
        table: test rows with measured values.
        sides: of its rows.
        whole: prediction of the model.
        alone: those of the sides by their titles; others are left out.
        mean: the prediction of the mean label.
        seed: of the bootstrap.
    """
    return tuple(
        gap(table, target, side, [whole], [alone[side.title]], mean=mean, seed=seed)
        for target in table.row_targets[:MOST_TARGETS]
        for side in sides
        if side.title in alone
    )
