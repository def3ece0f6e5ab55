"""Print a training's scores and verdicts on the terminal."""

from __future__ import annotations

from typing import Any


def show_result(result: Any, keep: str = "all") -> None:
    """Print the scores of all methods on the test part, and which did best.

    One target: a row a method, a column a metric. Several: a row a target and metric, a column a method, so that
    a table of many targets grows downwards.
    """
    import numpy as np

    from molgraph.cli.show import say, table
    from molgraph.evaluate.class_counts import few_lines
    from molgraph.evaluate.metrics import get_metric

    scores = result.scores
    if len(result.test) and len(scores):
        several = scores.columns.nlevels > 1
        shown = result.shown if several else scores.T
        metrics = [str(name).rsplit(" ", 1)[-1] for name in shown.index]
        signs = [1 if get_metric(metric).higher_is_better else -1 for metric in metrics]
        values = shown.to_numpy(np.float64) * np.array(signs)[:, None]
        marks = {(i, int(np.nanargmax(row))) for i, row in enumerate(values) if not np.isnan(row).all()}
        scores, marks = (shown, marks) if several else (scores, {(j, i) for i, j in marks})
        say("")
        table(scores, marks=marks)
        for note in (*few_lines(result.classes), *result.notes):
            say(note, "dim")
        say("")
    for verdict in result.verdicts:
        say(f"{verdict.sentence}.", {"clear": "bold green", "tie": "bold", "warning": "bold yellow"}[verdict.tone])
        say(verdict.detail)
    if not result.verdicts:
        say(result.verdict)
    clear = all(verdict.tone == "clear" for verdict in result.verdicts)
    if (
        keep in ("all", "model")
        and result.baseline is not None
        and clear
        and set(result.best.values()) == {result.baseline.name}
    ):
        say(f"The forest did better than {result.model.kind} here; --keep best chooses by the validation part.")
