"""What a training came to, on the terminal: a result in; a table of scores and what they say of each target out."""

from __future__ import annotations

from typing import Any


def show_result(result: Any) -> None:
    """Print the scores of all methods on the test part, and which did best.

    One target: a row a method, a column a metric. Several: a row a target and metric, a column a method, so that
    a table of many targets grows downwards.
    """
    import numpy as np

    from molgraph.cli.show import say, table
    from molgraph.evaluate.metrics import get_metric

    scores = result.scores
    if len(result.test) and len(scores):
        several = scores.columns.nlevels > 1
        signs = [1 if get_metric(c[-1] if several else c).higher_is_better else -1 for c in scores.columns]
        values = scores.to_numpy(np.float64) * signs
        marks = {(int(np.nanargmax(column)), j) for j, column in enumerate(values.T) if not np.isnan(column).all()}
        if several:
            scores, marks = scores.T, {(j, i) for i, j in marks}
            scores.index = [" ".join(map(str, key)) for key in scores.index]
        say("")
        table(scores, marks=marks)
        for note in result.notes:
            say(note, "dim")
        say("")
    for verdict in result.verdicts:
        say(f"{verdict.sentence}.", {"clear": "bold green", "tie": "bold", "warning": "bold yellow"}[verdict.tone])
        say(verdict.detail)
    if not result.verdicts:
        say(result.verdict)
    clear = all(verdict.tone == "clear" for verdict in result.verdicts)
    if result.baseline is not None and clear and set(result.best.values()) == {result.baseline.name}:
        say(f"The forest did better than {result.model.kind} here; --model random_forest keeps it instead.")
