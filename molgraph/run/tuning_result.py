"""Define ``TuningResult``: the Optuna trials, the best hyper-parameters, and the model trained with them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from molgraph.base.contracts import Prediction
from molgraph.base.run_config import RunConfig
from molgraph.base.search_space import Space
from molgraph.evaluate.latency import Latency, undominated
from molgraph.evaluate.metrics import get_metric
from molgraph.evaluate.trials import Trial, best_trial
from molgraph.run.command import command_words
from molgraph.run.result import TrainingResult
from molgraph.train.model import Model


@dataclass(frozen=True)
class TuningResult:
    """Trials of hyper-parameters, and the model that was trained with the best; ``predict`` and ``save`` are its own.

    Args:
        training: the training with the best parameters, as ``train`` returns it.
        measured: the trials, in the order in which they were made; the first has the method's own values.
        space: the parameters that were searched, with their ranges.
        splitter, folds: how the training part was divided for the trials.
        metrics: the metric of each target, by name.
        recipe: what trains with the best parameters.
        latency: what compares trials by score and speed together, if anything.
    """

    training: TrainingResult
    measured: tuple[Trial, ...]
    space: Space
    splitter: str
    folds: int
    metrics: Mapping[str, str]
    recipe: RunConfig
    latency: Latency | None = None

    @property
    def best(self) -> Trial:
        """The trial with the best score."""
        best = best_trial(self.measured)
        assert best is not None  # or there would be no result
        return best

    @property
    def chosen(self) -> dict[str, Any]:
        """The best parameters by name."""
        return dict(self.best.params)

    @property
    def model(self) -> Model:
        """The model that was trained with them."""
        return self.training.model

    @property
    def trials(self) -> pd.DataFrame:
        """A row a trial, the best first: its number, score, parameters, seconds, and why it has no score.

        With a latency also the molecules/s of ``predict``, the reward, and whether no trial is better in score and
        speed (``undominated``).
        """
        rows = [
            {"trial": i, self.metric: None if t.value is None else self.sign * t.value}
            | ({} if self.latency is None else {"molecules/s": t.rate, "reward": t.reward})
            | {**t.params, "seconds": t.seconds, "reason": t.reason}
            for i, t in enumerate(self.measured, 1)
        ]
        frame = pd.DataFrame(rows).astype({self.metric: float})
        if self.latency is None:
            return frame.sort_values(self.metric, ascending=self.sign > 0, kind="stable", ignore_index=True)
        frame = frame.astype({"molecules/s": float, "reward": float})
        front = undominated(self.sign * frame[self.metric].to_numpy(), frame["molecules/s"].to_numpy())
        frame.insert(4, "undominated", front)
        return frame.sort_values("reward", ascending=False, kind="stable", ignore_index=True)

    @property
    def sign(self) -> float:
        """-1 where more of the metric is better, which trials hold the negative of; 1 of several metrics."""
        signs = {-1.0 if get_metric(name).higher_is_better else 1.0 for name in self.metrics.values()}
        return signs.pop() if len(signs) == 1 else 1.0

    @property
    def metric(self) -> str:
        """What trials are scored by, in words."""
        names = list(dict.fromkeys(self.metrics.values()))
        if len(names) > 1:
            return "mean loss"
        scaled = len(self.metrics) > 1 and self.sign > 0
        return f"mean {names[0]}{' / sd' * scaled}" if len(self.metrics) > 1 else names[0]

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        first, best = self.measured[0], self.best
        words = (
            f"The best of {len(self.measured)} trials has {self.metric} {self.sign * (best.value or 0.0):.4g} out of"
        )
        if self.latency is not None and best.rate and first.rate:
            speeds = f"{best.rate:,.0f} molecules/s, of {self.latency.target:,.0f} asked for"
            words = f"{speeds} (the defaults: {first.rate:,.0f}). {words}"
        words += f" fold ({self.folds} folds of the training part, {self.splitter})"
        if best is first:
            words += "; it is the first, of the defaults: nothing better was found"
        elif first.value is not None:
            wins = sum(a < b for a, b in zip(best.folds, first.folds, strict=True))
            words += f", the defaults {self.sign * first.value:.4g}; it is better on {wins} of {self.folds} folds"
        failures = sum(trial.value is None for trial in self.measured)
        if failures > 1:
            return f"{words}; {failures} trials have no score."
        return f"{words}; 1 trial has no score." if failures else f"{words}."

    @property
    def note(self) -> str:
        """What the model's card says of the search."""
        values = ", ".join(f"{name}={value}" for name, value in self.chosen.items())
        return f"hyper-parameters chosen out of fold inside the training part, by {len(self.measured)} trials: {values}"

    @property
    def command(self) -> str:
        """The command that trains with the best parameters, without a search."""
        return shlex.join(command_words(self.recipe))

    def predict(self, data: Any, **columns: Any) -> Prediction:
        """Predict molecules with the model (see ``Model.predict``)."""
        return self.training.predict(data, **columns)

    def save(self, path: str | Path) -> Path:
        """Write the model as one file (see ``Model.save``)."""
        return self.training.save(path)

    def report(self, path: str | Path) -> Path:
        """Write the training's report with a section on the search: its history, the parameters that matter, a table.

        Args:
            path: the page.
        """
        from molgraph.evaluate.report import write_report  # with jinja2 and matplotlib, which few runs need
        from molgraph.evaluate.report_trials import trials_section

        section = trials_section(
            self.space, self.measured, metric=self.metric, sign=self.sign,
            sentences=[self.sentence, OPTIMISTIC], command=self.command,
        )  # fmt: skip
        return write_report(path, **self.training.page(), tuning=section)

    def __repr__(self) -> str:
        lines = [f"TuningResult({self.chosen!r})", self.sentence, self.command, repr(self.training)]
        return "\n".join(lines)


OPTIMISTIC = (
    "The best of many trials looks better than it is: believe the scores of the test rows, which no trial has seen."
)
