"""Write the rows and sentences that a board's page and leaderboard share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import UsageError
from molgraph.base.printable import count
from molgraph.evaluate.benchmark.board import ERRORS, Board
from molgraph.evaluate.metrics import get_metric
from molgraph.evaluate.report_style import NONE, number

MINUS = "\N{MINUS SIGN}"


def metric_label(name: str) -> str:
    """The metric's usual name.

    Example:
        >>> metric_label("roc_auc"), metric_label("my_own")
        ('ROC AUC', 'my_own')
    """
    try:
        return get_metric(name).label or name
    except UsageError:
        return name


def decimals(board: Board) -> int:
    """Decimals of a board's scores: two digits of the narrowest interval's half width."""
    half = ((board.ranking.table["high"] - board.ranking.table["low"]) / 2).to_numpy()
    half = half[np.isfinite(half) & (half > 0)]
    return int(np.clip(1 - np.floor(np.log10(half.min())), 1, 3)) if len(half) else 3


def scored(value: float, places: int = 3) -> str:
    """A score with so many decimals.

    Example:
        >>> scored(-0.71234), scored(12.3456, 1), scored(float("nan")) == NONE
        ('−0.712', '12.3', True)
    """
    return f"{value:,.{places}f}".replace("-", MINUS) if np.isfinite(value) else NONE


def signed(value: float) -> str:
    """A difference with its sign, three digits."""
    return ("+" if value > 0 else "") + number(value)


def span(low: float, high: float) -> str:
    """An interval; empty where there is none."""
    return f"{number(low)} to {number(high)}" if np.isfinite(low) else ""


def cost_column(minutes: Iterable[float]) -> tuple[str, list[str]]:
    """A column of CPU-minutes in one unit, the largest in which half of them are 1 or more: the unit, and the cells.

    Example:
        >>> cost_column([5.96 / 60, 0.145]), cost_column([0.5, 90, float("nan"), 300])
        (('s', ['5.96', '8.70']), ('h', ['0.00833', '1.50', '—', '5.00']))
    """
    each = np.array(list(minutes), dtype=np.float64)
    known = each[np.isfinite(each)]
    typical = float(np.median(known)) if len(known) else 0.0
    unit, size = next((u, n) for u, n in (("h", 60.0), ("min", 1.0), ("s", 0.0)) if typical >= n)
    return unit, [number(float(value / (size or 1 / 60))) for value in each]


def board_rows(board: Board) -> tuple[str, list[dict[str, Any]]]:
    """The unit of the cost, and a row a method: texts, with the numbers that they sort by."""
    frame, places = board.to_frame(), decimals(board)
    unit, cost = cost_column(frame["cpu_minutes"])
    rows = []
    for (name, row), cpu in zip(frame.iterrows(), cost, strict=True):
        half = (row["high"] - row["low"]) / 2
        rows.append(
            {
                "method": str(name),
                "kind": "unranked" if row["note"] else "ranked",
                "rank": f"{row['rank']:.0f}" if np.isfinite(row["rank"]) else NONE,
                "groups": row["groups"] if board.tested else "",
                "score": scored(row["mean"], places) + (f" ± {scored(half, places)}" if np.isfinite(half) else ""),
                "value": row["mean"],
                "step": signed(row["to_best"]),
                "step_value": row["to_best"],
                "span": span(row["to_best_low"], row["to_best_high"]),
                "beside": _beside(board, row),
                "folds": f"{row['folds']}",
                "cpu": cpu,
                "cpu_value": row["cpu_minutes"],
                "failures": row["failures"],
                "forest": _against_forest(board, str(name), row["mean"]),
                "held": {"worse": "loses", "better": "beats"}.get(row["reference"], ""),
                "note": row["note"],
            }
        )
    return unit, rows


def error_label(board: Board) -> str:
    """The metric with its unit, where that is the measured values' own.

    Example:
        >>> from types import SimpleNamespace
        >>> error_label(SimpleNamespace(metric="mae", unit="log10(mol/L)"))
        'MAE, log10(mol/L)'
    """
    return metric_label(board.metric) + (f", {board.unit}" if board.unit and board.metric in ERRORS else "")


def _beside(board: Board, row: pd.Series) -> list[tuple[str, str, float]]:
    """Label, text and value of the metrics that stand beside an error; of logarithms its fold error too."""
    shown = [(metric_label(name), scored(row[name], 2), row[name]) for name in board.beside if name != "mae"]
    return shown + [("fold error", number(row[name]), row[name]) for name in ("fold_error",) if name in row]


def _censored(board: Board) -> str:
    if not board.censored:
        return ""
    return f"{board.censored:.0%} of the values stand at a limit of the assay, so that errors there are no full errors."


def _against_forest(board: Board, method: str, mean: float) -> str:
    """Whether a method beats the forest, in a word or two."""
    if method == board.reference:
        return "the forest"
    verdict = board.against_reference(method)
    said = {"better": "beats the forest", "worse": "loses to the forest", "equivalent": "equivalent to it"}
    if verdict in said:
        return said[verdict]
    ranking = board.ranking
    if not verdict:
        return "not tested" if not board.tested and board.reference and method in ranking.ranked else ""
    ahead = (mean - ranking.table.loc[board.reference, "mean"]) * (1 if ranking.higher_is_better else -1)
    return "undecided" + (" (worse mean)" if ahead < 0 else "")


def percent_of_forest(row: Any) -> str:
    """A row of a summary over datasets: percent of the forest's error, with its interval where it has one."""
    interval = span(row.percent_low, row.percent_high) if row.percent_low < row.percent_high else ""
    return number(row.percent) + (f" ({interval})" if interval else "")


def sentences(board: Board) -> list[str]:
    """What a reader of a board's table should know: resolution, noise, tasks, the test, notes."""
    said = (resolution, _margin, _ceiling, _censored, _tasks, how_tested)
    return [text for text in (*(each(board) for each in said), *board.notes) if text]


def how_tested(board: Board) -> str:
    """Which test, and where Wilcoxon's disagrees."""
    ranking = board.ranking
    if not ranking.tested:
        return "Not tested: " + ("; ".join(ranking.notes) or "fewer than two methods have all folds") + "."
    pairs, n = ranking.pairs, ranking.n_folds
    if ranking.bootstrap:
        return (
            "One split: its test molecules were drawn anew, scaffold by scaffold, for the errors of scores and "
            f"differences; Holm's correction over {count(len(pairs), 'pair')}, family-wise error {ranking.alpha:g}. "
            "That tells of other test molecules, not of other training sets or seeds."
        )
    text = f"t-tests over {n} paired folds with Nadeau and Bengio's variance (test over training rows "
    text += f"{ranking.test_over_train:.3g}), Holm's correction over {len(pairs)} pair{'s' * (len(pairs) > 1)}, "
    text += f"family-wise error {ranking.alpha:g}."
    if pairs["disagrees"].any():
        more, fewer = (int((pairs["disagrees"] & (pairs["different"] == told)).sum()) for told in (False, True))
        said = [f"{k} {words}" for k, words in ((more, "more"), (fewer, "fewer")) if k]
        text += " Wilcoxon's test, which takes folds for independent, tells " + " and ".join(said)
        text += f" pair{'s' * (more + fewer > 1)} apart."
    naive, told = int(pairs["tukey"].sum()), int(pairs["different"].sum())
    if naive != told:
        text += " Ash et al.'s protocol (2025: repeated-measures ANOVA, Tukey), which does so too, tells "
        text += f"{naive} of {len(pairs)} apart."
    return text


def resolution(board: Board) -> str:
    """How many pairs are told apart, and how wide their intervals are; empty where nothing was tested."""
    ranking = board.ranking
    if not ranking.tested:
        return ""
    found, pairs = ranking.pairs["verdict"].value_counts(), len(ranking.pairs)
    if pairs == 1:
        said = {"better": "One method is better", "equivalent": "The two methods are equivalent"}
        text, wide = said.get(found.index[0], "The two methods are not told apart"), "the interval is"
    else:
        counts = [f"{found[word]} {word}" for word in ("equivalent", "undecided") if word in found]
        text = f"Of {pairs} pairs of methods one is better in {found.get('better', 0)}"
        text += f" ({', '.join(counts)})" * bool(counts)
        wide = "half of the intervals are narrower than"
    return f"{text}; {wide} ± {number(ranking.half_width)}."


def _margin(board: Board) -> str:
    if board.margin is None or not board.ranking.tested:
        return ""
    return f"Differences below {number(board.margin.value or 0.0)} do not matter in practice: {board.margin.reason}."


def _ceiling(board: Board) -> str:
    if not board.ceilings:
        return ""
    best = "highest" if board.ranking.higher_is_better else "lowest"
    parts = [f"{number(c.value)} (noise {number(c.sd)}: {c.source})" for c in board.ceilings]
    return f"Noise ceiling, the {best} {metric_label(board.metric)} that the labels allow: {'; or '.join(parts)}."


def _tasks(board: Board) -> str:
    """How many tasks the scores are means of, and which were left out where; empty for one task."""
    names = board.scores.tasks
    if len(names) < 2:
        return ""
    counts = sorted(set(board.scores.counted.values()))
    text = f"Mean over {counts[0]}{f' to {counts[-1]}' if len(counts) > 1 else ''} of {len(names)} tasks."
    if board.metric in ("rmse", "mae"):
        text += " They are averaged in their own units, so that tasks of large numbers weigh most."
    return text + "".join(f" {name}: {why}." for name, why in board.scores.left_out.items())
