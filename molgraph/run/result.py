"""The result of a training run: the model and its baselines, their scores, and a report."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from molgraph.base.contracts import Method, Prediction
from molgraph.base.errors import EmptyError
from molgraph.base.run_config import RunConfig
from molgraph.data.splits import Split
from molgraph.data.splits.split import PARTS
from molgraph.data.table import Table
from molgraph.evaluate.class_counts import class_counts, count_lines, few_lines
from molgraph.evaluate.coverage import calibration_words, coverage_frame, coverage_words
from molgraph.evaluate.metrics import Score, get_metric
from molgraph.evaluate.payoff import Payoff
from molgraph.evaluate.sides import Gap
from molgraph.evaluate.tasks import TaskMean, mean_over_tasks
from molgraph.evaluate.verdict import Verdict, verdict
from molgraph.run.baselines import TRIVIAL
from molgraph.run.choice import Choice, choose
from molgraph.run.cross_validation import CrossValidation
from molgraph.run.split import labelled_sizes
from molgraph.train.model import Model

MAX_TARGETS = 5  # whose coverage is told


@dataclass(frozen=True)
class MethodRun:
    """A fitted method, its predictions of the test part, and the seconds that it took to fit."""

    name: str
    method: Method
    prediction: Prediction
    seconds: float


@dataclass(frozen=True)
class TrainingResult:
    """A trained model with its baselines and scores; ``predict``, ``evaluate`` and ``save`` are the model's own.

    Args:
        model: what was asked for.
        baseline: a random forest on fingerprints, trained on the same rows, with ``save`` of its own; None where it
            was refused.
        floor: the trivial baseline, which predicts the mean; a model that does not beat it has learned nothing.
        runs: the same methods, and those of one side of pairs alone, with their predictions of the test part.
        score_rows: a row for each method, target and metric.
        gaps: of a model of pairs or complexes, its scores less those of one side alone, such as the ligand's; and
            whether a start from a file paid.
        split: which rows were learnt from and tested.
        test: the test part, molecules as they were given.
        recipe: the whole run as plain values.
        table: the whole input.
        seconds: wall time.
        cv: the estimate by repeated cross-validation; None where none was asked for.
        chosen: the choice between the model and its baseline, where it was made before both learned all rows.
    """

    model: Model
    baseline: Model | None
    floor: Model
    runs: tuple[MethodRun, ...]
    score_rows: pd.DataFrame
    gaps: tuple[Gap | Payoff, ...]
    split: Split
    test: Table
    recipe: RunConfig
    table: Table
    seconds: float
    cv: CrossValidation | None = None
    chosen: Choice | None = None

    @property
    def scores(self) -> pd.DataFrame:
        """Scores on the test part: a row for each method, a column for each metric (target and metric, if several)."""
        rows = self._rows
        keys = ["target", "metric"] if rows["target"].nunique() > 1 else "metric"
        wide = rows.pivot(index="method", columns=keys, values="value")
        return wide.loc[rows["method"].unique(), rows.set_index(keys).index.unique()]  # in the order of the rows

    @property
    def means(self) -> dict[str, list[TaskMean]]:
        """Each method's mean over targets of every metric that several share; of none in a target's own unit."""
        means = {}
        for method, part in self._rows.groupby("method", sort=False):
            scores = [Score(str(r.target), str(r.metric), r.value, r.n, r.note) for r in part.itertuples()]
            means[str(method)] = [m for m in mean_over_tasks(scores) if m.of > 1 and not _has_a_unit(m.metric)]
        return means

    @property
    def notes(self) -> tuple[str, ...]:
        """Why scores have no value, one sentence for each reason and target (of the floor where it stands alone)."""
        rows = self._rows[self._rows["value"].isna()]
        if len(self.runs) > 1:
            rows = rows[rows["method"] != TRIVIAL]  # a constant has no rank correlation, whatever the rows
        notes = []
        for (target, note), part in rows.groupby(["target", "note"], sort=False):
            scores = f"{', '.join(part['metric'].unique())} of {', '.join(part['method'].unique())}"
            notes.append(f"{target}: no {scores} ({note})")
        for method, means in self.means.items():
            notes += [f"{method}: {mean.text()}" for mean in means if 0 < mean.n_tasks < mean.of and method != TRIVIAL]
        return tuple(notes)

    @property
    def classes(self) -> pd.DataFrame:
        """Rows of each class in each part: a row for each target that has classes, and class."""
        return class_counts(self.table, {part: getattr(self.split, part) for part in PARTS})

    @property
    def _rows(self) -> pd.DataFrame:
        """The score rows under the names that people read."""
        return self.score_rows.replace({"method": self._names})

    @property
    def _names(self) -> dict[str, str]:
        """Each method's name for people: the model's own may be ``ensemble of 5 dmpnn``."""
        return {c.name: self.model.kind if c.name == self.model.name else c.name for c in self.runs}

    @property
    def best(self) -> dict[str, str]:
        """For each target the method with the best score on the test part, by the target's main metric."""
        ranked = {
            v.target: [n for n, score in v.values.items() if n != TRIVIAL and score == score] for v in self.verdicts
        }
        return {target: names[0] for target, names in ranked.items() if names}

    @cached_property
    def choice(self) -> Choice:
        """The model or its baseline, whichever the validation part prefers, and how that was found."""
        return self.chosen or choose([self.model, *filter(None, [self.baseline])], self.table.take(self.split.valid))

    @property
    def best_model(self) -> Model:
        """The model or its baseline, whichever the validation part prefers; ``choice.sentence`` says why.

        Example:
            >>> import molgraph
            >>> result = molgraph.train("builtin:chembl2321810", model="knn")
            >>> result.best_model is result.model, result.choice.sentence
            (True, 'knn is kept: no baseline was trained beside it.')
        """
        return self.choice.model

    @cached_property
    def coverage(self) -> pd.DataFrame:
        """Shares of the test values inside the model's intervals, and its errors, by distance and by grade."""
        return coverage_frame(self.test, self.runs[0].prediction)

    @property
    def reliability(self) -> list[str]:
        """Sentences on the coverage of the model's intervals, of up to five targets."""
        if self.model.coverage is None or len(self.test.row_targets) > MAX_TARGETS:
            return []
        sentences = coverage_words(self.coverage, self.model.coverage)
        return sentences + calibration_words(self.test, self.runs[0].prediction)

    @property
    def curves(self) -> pd.DataFrame | None:
        """Losses by epoch; None for a method that has none, such as a forest."""
        return self.model.method.curves

    @property
    def predictions(self) -> dict[str, Prediction]:
        """Each method's predictions of the test part."""
        return {self._names[c.name]: c.prediction for c in self.runs}

    def predict(self, data: Any, **columns: Any) -> Prediction:
        """Predict molecules with the model (see ``Model.predict``)."""
        return self.model.predict(data, **columns)

    def evaluate(self, data: Any, *, report: str | Path | None = None, **columns: Any) -> pd.DataFrame:
        """Score the model on other molecules (see ``Model.evaluate``)."""
        return self.model.evaluate(data, report=report, **columns)

    def save(self, path: str | Path) -> Path:
        """Write the model as one file (see ``Model.save``)."""
        return self.model.save(path)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the test part says about each target: which method did best, and whether these rows can tell."""
        if not len(self.test):
            return ()
        return tuple(verdict(self.test, self.predictions, target, floor=TRIVIAL) for target in self.test.targets)

    @property
    def verdict(self) -> str:
        """The verdicts in words, a paragraph a target, and whether a model of pairs used both sides."""
        folds = [] if self.cv is None else self.cv.sentences(self.model.name)
        if not self.verdicts and self.cv is None:
            return "There is no test part, so nothing can be said about how good the model is."
        lines = [f"{v.sentence}. {v.detail}" for v in self.verdicts]
        sentences = [*self.reliability, *folds, *(gap.sentence for gap in self.gaps)] if self.verdicts else folds
        return "\n".join([*lines, *(f"{sentence}." for sentence in sentences)])

    def report(self, path: str | Path, *, new: Prediction | None = None) -> Path:
        """Write a self-contained HTML page: scores, parity plot, worst errors drawn, learning curves, manifest.

        Args:
            path: the page.
            new: predictions of molecules without measured values, shown in a table of their own.
        """
        from molgraph.evaluate.report import write_report  # with jinja2 and matplotlib, which few runs need

        return write_report(path, **self.page(new))

    def page(self, new: Prediction | None = None) -> dict[str, Any]:
        """The content of the report, as ``write_report`` takes it."""
        if not self.verdicts:
            raise EmptyError("there is no test part to report on", hint="give the split a test share above 0")
        from molgraph.explain.for_report import explained_rows  # with RDKit's drawing

        trials = getattr(self.runs[0].method, "trials", None)
        return {
            "explained": explained_rows(self.model, self.test, self.runs[0].prediction),
            "tables": {} if trials is None else {"Methods that were tried": trials},
            "title": f"{self.model.kind} on {', '.join(t.name for t in self.test.targets)}",
            "predictions": self.predictions,
            "table": self.test,
            "scores": self._rows,
            "counts": count_lines(self.classes),
            "curves": self.curves,
            "manifest": self.manifest,
            "new_predictions": new,
            "cv": None if self.cv is None else self.cv.section | {"sentences": self.cv.sentences(self.model.name)},
            "notes": [
                *filter(None, [self.split.leak_sentence, self.model.card.estimate]),
                *(gap.sentence for gap in self.gaps),
            ],
        }

    @property
    def manifest(self) -> dict[str, Any]:
        """What a repeat of this run needs, nested plain values."""
        card = self.model.card
        return {
            "made": card.created,
            "versions": dict(card.versions),
            "machine": {"system": platform.platform(), "cores": os.cpu_count()},
            "seconds": {"all": round(self.seconds, 1)} | {self._names[c.name]: round(c.seconds, 1) for c in self.runs},
            "split": {"splitter": self.split.splitter, "hash": self.split.hash, **self.split.sizes},
            "recipe": json.loads(self.recipe.to_json()),
            "notes": list(card.notes),
        }

    @property
    def shown(self) -> pd.DataFrame:
        """The scores as they are printed: with several targets a row a target and metric, then the means over them."""
        if self.scores.columns.nlevels == 1:
            return self.scores
        wide = self.scores.T
        wide.index = [f"{target} {metric}" for target, metric in wide.index]
        for means in zip(*self.means.values(), strict=True):
            wide.loc[f"mean of {means[0].of} targets {means[0].metric}"] = [mean.value for mean in means]
        return wide

    def __repr__(self) -> str:
        scores = self.shown.to_string(float_format="{:.3f}".format, na_rep="-")
        lines = [*few_lines(self.classes), *self.notes, self.verdict, *self.table.notes]
        return "\n".join([f"TrainingResult({self.model!r})", scores, *lines])

    def _repr_html_(self) -> str:
        shown = self.shown
        table = shown.to_html(float_format="{:.3f}".format, na_rep="-", border=0) if shown.size else ""
        notes = (*self.table.notes, *few_lines(self.classes), *self.notes)
        paragraphs = "".join(f"<p>{escape(note)}</p>" for note in notes)
        rows = ", ".join(f"{n:,} {part}" for part, n in labelled_sizes(self.split, self.table).items())
        about = f"{self.model.kind}, {self.recipe.split.splitter} split ({rows}), {self.seconds:.0f} s"
        return f"<p>{escape(about)}</p>{table}{paragraphs}<p>{escape(self.verdict)}</p>"


def _has_a_unit(name: str) -> bool:
    """Whether a metric is an error in its target's own unit, which no other target may share."""
    metric = get_metric(name)
    return "regression" in metric.kinds and not metric.higher_is_better
