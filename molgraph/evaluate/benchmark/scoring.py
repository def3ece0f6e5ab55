"""Score stored predictions: one row for each cell, target and metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.csv_text import write_csv
from molgraph.evaluate.benchmark.run_folder import SCORES, Record, Records
from molgraph.evaluate.metrics import Score, get_metric, score_target

COLUMNS = (
    "dataset", "edition", "data_hash", "split", "split_hash", "repeat", "fold", "seed", "method", "target", "metric",
    "value", "n", "measured", "note", "status", "reason", "seconds", "cpu_seconds", "peak_mb", "higher_is_better",
)  # fmt: skip
_WORDS = (*COLUMNS[:5], *COLUMNS[8:11], *COLUMNS[14:17])  # the columns of texts


def score_records(records: Records, done: Sequence[Record] | None = None) -> pd.DataFrame:
    """Score every cell from its stored predictions alone.

    Returns:
        The scores frame, its columns ``COLUMNS``; the metric that leads a target comes first. A cell that failed has
        a row for each target and metric too, NaN and with its status and reason; a dataset that was refused has one
        for each split and method, without target and metric, and so has a split that cannot divide its dataset.
    """
    done = records.done if done is None else done
    if records.recipe.generates:
        from molgraph.evaluate.generation.board_scores import score_generators  # judges samples

        rows = [*score_generators(records, done)]
    else:
        rows = [row for record in progress.track(done, label="scoring") for row in score_cell(record, records)]
    return pd.DataFrame([*rows, *_refused(records)], columns=list(COLUMNS))


def write_scores(records: Records) -> None:
    """Score every cell and write the frame into the benchmark's folder as csv, numbers with all their digits."""
    write_csv(records.out / SCORES, score_records(records))


def stored_scores(out: Path) -> pd.DataFrame | None:
    """The scores that lie in a benchmark's folder, or None."""
    path = out / SCORES
    return read_scores(path) if path.is_file() else None


def read_scores(path: Path) -> pd.DataFrame:
    """A frame of scores from its csv or csv.gz, numbers to the last digit and texts as they were."""
    exact = {"value": lambda text: float(text or "nan")}  # whatever pandas' own reader does
    words = dict.fromkeys(_WORDS, str)
    frame = pd.read_csv(path, dtype=words, keep_default_na=False, na_values=[""], converters=exact)
    return frame.assign(**{name: frame[name].fillna("") for name in _WORDS})


def score_cell(record: Record, records: Records) -> Iterator[tuple]:
    """Rows of the scores frame for one cell."""
    cell, manifest = record
    problem = records.problems[cell.dataset]
    head = (
        cell.dataset, problem.edition, manifest["data_hash"], cell.split, manifest["split_hash"], cell.repeat,
        cell.fold, cell.seed, cell.method,
    )  # fmt: skip
    status, reason = manifest["status"], manifest["reason"]
    cost = (manifest["seconds"]["total"], manifest["cpu_seconds"], manifest["peak_mb"])
    predicted = records.predictions(cell, manifest) if status == "ok" else None
    for target in problem.targets:
        metrics, measured = [get_metric(name) for name in problem.metrics[target.name]], 0
        scores = [Score(target.name, metric.name, math.nan, 0) for metric in metrics]
        if predicted is not None:
            y = predicted.y[target.name]
            unlearned = manifest.get("unlearned", {}).get(target.name, "")
            scores = score_target(target, y, predicted.of(target), metrics, unlearned)
            measured = int(np.isfinite(y).sum())
        for metric, s in zip(metrics, scores, strict=True):
            counts = (s.value, s.n, measured, s.note, status, reason)
            yield (*head, target.name, metric.name, *counts, *cost, metric.higher_is_better)


def _refused(records: Records) -> Iterator[tuple]:
    """Rows for the datasets and splits that could not be used, so that none is missing without a word."""
    for name, problem in records.problems.items():
        known = (name, problem.edition, problem.data_hash) if not problem.refused else (name, "", "")
        for split in records.recipe.split_of(name):
            reason = problem.refused or problem.refused_splits.get(split.name, "")
            for method in records.recipe.method if reason else ():
                if not method.skips(name, split.name):
                    head = (*known, split.name, "", 0, 0, 0, method.row, "", "")
                    yield (*head, math.nan, 0, 0, "", "refused", reason, math.nan, math.nan, math.nan, False)
