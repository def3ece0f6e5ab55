"""What a training run gave: a model beside its baseline and floor, in numbers, in words and as a report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from molgraph.base.contracts import Method, Prediction, Target
from molgraph.base.recipe import Recipe
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.evaluate import metrics
from molgraph.train.model import Model


@dataclass(frozen=True)
class Contestant:
    """One method of a comparison: fitted, its predictions of the test part, and the seconds it took to learn."""

    name: str
    method: Method
    prediction: Prediction
    seconds: float


@dataclass(frozen=True)
class TrainingResult:
    """A trained model and how good it is; ``predict``, ``evaluate`` and ``save`` are the model's own.

    Args:
        model: what was asked for.
        baseline: a random forest on fingerprints, trained on the same rows; None where it was refused.
        floor: predicts the mean; what does not beat it has learnt nothing.
        contestants: the same three with their predictions of the test part.
        score_rows: a row for each method, target and metric.
        split: which rows were learnt from and tested.
        test: the test part, molecules as they were given.
        recipe: the whole run as plain values.
        table: the whole input.
        seconds: wall time.
    """

    model: Model
    baseline: Model | None
    floor: Model
    contestants: tuple[Contestant, ...]
    score_rows: pd.DataFrame
    split: Split
    test: Table
    recipe: Recipe
    table: Table
    seconds: float

    @property
    def scores(self) -> pd.DataFrame:
        """Scores on the test part: a row for each method, a column for each metric (target and metric, if several)."""
        several = self.score_rows["target"].nunique() > 1
        wide = self.score_rows.pivot_table(
            index="method", columns=["target", "metric"] if several else "metric", values="value", sort=False,
            dropna=False,
        )  # fmt: skip
        return wide.rename_axis(columns=["target", "metric"] if several else "metric")

    @property
    def curves(self) -> pd.DataFrame | None:
        """Losses by epoch; None for a method that has none, such as a forest."""
        return getattr(self.model.method, "curves", None)

    @property
    def predictions(self) -> dict[str, Prediction]:
        """Each method's predictions of the test part."""
        return {c.name: c.prediction for c in self.contestants}

    def predict(self, data: Any, **columns: Any) -> Prediction:
        """Predict molecules with the model (see ``Model.predict``)."""
        return self.model.predict(data, **columns)

    def evaluate(self, data: Any, **columns: Any) -> pd.DataFrame:
        """Score the model on other molecules (see ``Model.evaluate``)."""
        return self.model.evaluate(data, **columns)

    def save(self, path: str | Path) -> Path:
        """Write the model as one file (see ``Model.save``)."""
        return self.model.save(path)

    @cached_property
    def verdict(self) -> str:
        """Which method did best on the test part, in words, with the interval of the difference; a line a target."""
        if not len(self.score_rows) or not len(self.test):
            return "There is no test part, so nothing can be said about how good the model is."
        return "\n".join(self._verdict(j, target) for j, target in enumerate(self.test.row_targets))

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page: scores, parity plot, worst errors drawn, learning curves, manifest."""
        from molgraph.results_report import write_training_report

        return write_training_report(self, Path(path))

    def _verdict(self, j: int, target: Target) -> str:
        from molgraph.evaluate.statistics import paired_difference

        metric = metrics.default_metric(target.kind)
        rows = self.score_rows[
            (self.score_rows["target"] == target.name) & (self.score_rows["metric"] == metric.name)
        ].set_index("method")
        known = rows["value"].dropna().sort_values(ascending=not metric.higher_is_better, kind="stable")
        head = f"{target.name}: " if len(self.test.row_targets) > 1 else ""
        if len(known) == 0:
            return f"{head}no {metric.label or metric.name} on the test part: {rows['note'].iloc[0]}."
        values = ", ".join(f"{name} {value:.3f}" for name, value in known.items())
        if len(known) == 1:
            return f"{head}{metric.label} on the test part: {values}."
        best, second = known.index[:2]
        assert self.test.y is not None
        first, other = (metrics.columns_of(self.predictions[name], target) for name in (best, second))
        gap = paired_difference(self.test.y[:, j], first, other, metric)
        return f"{head}{best} did best on the test part ({metric.label or metric.name}: {values}). {gap}"

    def __repr__(self) -> str:
        return f"TrainingResult({self.model!r})\n{self.scores.to_string(float_format='{:.3f}'.format)}\n{self.verdict}"

    def _repr_html_(self) -> str:
        table = self.scores.to_html(float_format="{:.3f}".format, border=0)
        rows = ", ".join(f"{n:,} {part}" for part, n in self.split.sizes.items())
        about = f"{self.model.name}, {self.recipe.split.recipe} split ({rows}), {self.seconds:.0f} s"
        return f"<p>{escape(about)}</p>{table}<p>{escape(self.verdict)}</p>"
