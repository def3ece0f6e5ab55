"""Write one self-contained HTML page on how well some methods predict the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Prediction
from molgraph.base.errors import EmptyError, ShapeError
from molgraph.base.paths import write_whole
from molgraph.data.levels import labelled, pooled, pooled_prediction
from molgraph.data.table import Table
from molgraph.evaluate.class_counts import class_counts, count_lines
from molgraph.evaluate.metrics import score, scores_frame
from molgraph.evaluate.report_parts import (
    FLOOR,
    MAX_TARGETS,
    flatten,
    new_rows,
    plain_table,
    score_tables,
    target_detail,
    unread_rows,
)
from molgraph.evaluate.report_plots import learning
from molgraph.evaluate.report_reliability import reliability_tables
from molgraph.evaluate.report_style import render
from molgraph.evaluate.verdict import verdict


def write_report(path: str | Path, **page: Any) -> Path:
    """Write the page of ``report_html``, which takes ``page``, to a file, under a temporary name first."""
    return write_whole(path, report_html(**page))


def report_html(
    *,
    title: str,
    predictions: Mapping[str, Prediction],
    table: Table,
    scores: pd.DataFrame | None = None,
    counts: Mapping[str, str] | None = None,
    curves: pd.DataFrame | None = None,
    manifest: Mapping[str, Any] | None = None,
    new_predictions: Prediction | None = None,
    notes: Sequence[str] = (),
    tables: Mapping[str, pd.DataFrame] | None = None,
    tuning: Mapping[str, Any] | None = None,
    cv: Mapping[str, Any] | None = None,
    explained: Mapping[str, Any] | None = None,
) -> str:
    """The report as one HTML text that loads nothing from anywhere.

    Args:
        title: the page's heading.
        predictions: method's name to its prediction of ``table``; ``mean`` is shown as the floor.
        table: test rows with measured values.
        scores: frame of ``scores_frame`` with a ``method`` column; computed where None.
        counts: target's name to a line on the rows of its classes; those of ``table`` where None.
        curves: a row an epoch (``epoch``, ``train_loss``, ``valid_loss``), or None.
        manifest: versions, hashes, seeds, seconds, machine: whatever a repeat needs, nested as you like.
        new_predictions: predictions of molecules without measured values, or None.
        notes: sentences to beware of, shown first.
        tables: further tables by their headings, such as the methods that were tried.
        tuning: the content of ``report_trials.trials_section``, where the hyper-parameters were searched.
        cv: ``title``, ``sentences`` and ``rows`` of a repeated cross-validation, where there was one.
        explained: ``by``, ``target``, ``notes`` and ``molecules`` whose predictions are explained, or None.

    Raises:
        DataError: no predictions, or predictions of other rows than the table's.
    """
    if not predictions:
        raise EmptyError("a report needs at least one method's predictions")
    for name, p in predictions.items():
        if len(p) != len(table):
            raise ShapeError(f"{name} predicts {len(p)} rows, the table has {len(table)}")
    unread, summary = unread_rows(table, predictions), _summary(table, predictions)
    if scores is None:
        scores = scores_frame({name: score(table, p) for name, p in predictions.items()})
    if counts is None:
        counts = count_lines(class_counts(table, {"test": np.arange(len(table))}))
    verdicts = [verdict(table, predictions, target, floor=FLOOR) for target in table.targets[:MAX_TARGETS]]
    reliability = reliability_tables(table, predictions)
    if table.packed:  # from here on a row is an atom
        predictions, table = {name: pooled_prediction(p, table) for name, p in predictions.items()}, pooled(table)
    shown = table.row_targets[:MAX_TARGETS]
    best = {v.target: next((name for name in v.values if name != FLOOR), next(iter(v.values))) for v in verdicts}
    targets = [t for t in shown if not all(t.name in p.unlearned for p in predictions.values())]
    return render(
        "report.html.jinja",
        title=title,
        summary=summary,
        notes=notes,
        verdicts=verdicts,
        score_tables=score_tables(scores, table, predictions, counts),
        tuning=tuning,
        cv=cv,
        details=[target_detail(table, predictions, target, best[target.name]) for target in targets],
        reliability=reliability,
        explained=explained,
        learning="" if curves is None or curves.empty else learning(curves, key="learning"),
        tables={heading: plain_table(frame) for heading, frame in (tables or {}).items() if len(frame)},
        new=None if new_predictions is None else new_rows(new_predictions),
        unread=unread,
        manifest=flatten(manifest or {}),
    )


def _summary(table: Table, predictions: Mapping[str, Prediction]) -> str:
    n_labels, n_limits = int(labelled(table).sum()), int(table.limited.any(axis=1).sum())
    limits = f", {n_limits:,} of these with a limit such as >8" * bool(n_limits)
    words = [f"{len(table):,} test rows, {n_labels:,} of them measured{limits}", f"methods: {', '.join(predictions)}"]
    targets = [t.name for t in table.targets]
    if len(targets) > MAX_TARGETS:
        words.append(f"{len(targets)} targets; the first {MAX_TARGETS} are shown in full")
    return "; ".join(words) + "."
