"""A board's numbers come in; the short texts that page and leaderboard both print go out."""

from __future__ import annotations

import numpy as np

from molgraph.base.errors import UsageError
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.ranking import TUKEY, UNTESTED
from molgraph.evaluate.metrics import get_metric
from molgraph.evaluate.report_parts import NONE, number

MINUS, PLUS_MINUS = "\N{MINUS SIGN}", "\N{PLUS-MINUS SIGN}"


def metric_label(name: str) -> str:
    """What people call a metric.

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


def plus_minus(value: float, low: float, high: float, places: int = 3) -> str:
    """A score and half its interval's width.

    Example:
        >>> plus_minus(0.7, 0.65, 0.75)
        '0.700 ± 0.050'
    """
    half = (high - low) / 2
    return scored(value, places) + (f" {PLUS_MINUS} {scored(half, places)}" if np.isfinite(half) else "")


def signed(value: float) -> str:
    """A difference with its sign, three digits."""
    return ("+" if value > 0 else "") + number(value)


def minutes(value: float) -> str:
    """CPU-minutes, or seconds where there is less than a tenth of a minute.

    Example:
        >>> minutes(2.5), minutes(0.02)
        ('2.50 min', '1.20 s')
    """
    if not np.isfinite(value):
        return NONE
    return f"{number(value * 60)} s" if value < 0.1 else f"{number(value)} min"


def how_tested(board: Board) -> str:
    """Which test, why, and what it said of all methods at once."""
    ranking = board.ranking
    if ranking.test == UNTESTED:
        return "Not tested: " + ("; ".join(ranking.notes) or "fewer than two methods have all folds") + "."
    failed = [f"{check.name} ({check.words})" for check in ranking.checks if not check.holds]
    why = "assumptions hold" if ranking.test == TUKEY else f"assumptions fail: {'; '.join(failed)}"
    omnibus = ranking.omnibus
    said = (
        ""
        if omnibus is None
        else f" All methods at once: {omnibus.name} = {number(omnibus.statistic)}, p = {omnibus.p:.2g}."
    )
    return f"{ranking.test} over {ranking.n_folds} paired folds, family-wise error {ranking.alpha:g}; {why}.{said}"


def resolution(board: Board) -> str:
    """The resolution floor, in words; empty where nothing was tested."""
    ranking = board.ranking
    if not np.isfinite(ranking.floor):
        return ""
    words = f"This board tells two methods apart from a difference of {number(ranking.floor)} on"
    if ranking.test != TUKEY:
        words += " (the median pair)"
    if np.isfinite(ranking.rank_floor):
        words += f", or {number(ranking.rank_floor)} in mean rank"
    if np.isfinite(ranking.floor_wide):
        words += f"; from {number(ranking.floor_wide)} on where one allows for the training rows that folds share"
        words += " (Nadeau and Bengio)"
    return words + "."


def ceiling(board: Board) -> str:
    """The noise ceiling, in words; empty where it is not known."""
    if not board.ceilings:
        return ""
    best = "highest" if board.ranking.higher_is_better else "lowest"
    parts = [f"{number(c.value)} (noise {number(c.sd)}: {c.source})" for c in board.ceilings]
    return f"Noise ceiling, the {best} {metric_label(board.metric)} that the labels allow: {'; or '.join(parts)}."


def tasks(board: Board) -> str:
    """How many tasks the scores are means of, and which were left out where; empty for one task."""
    names = board.scores.tasks
    if len(names) < 2:
        return ""
    counts = sorted(set(board.scores.counted.values()))
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    text = f"Mean over {span} of {len(names)} tasks."
    if board.metric in ("rmse", "mae"):
        text += " They are averaged in their own units, so that tasks of large numbers weigh most."
    return text + "".join(f" {name}: {why}." for name, why in board.scores.left_out.items())


def against_forest(board: Board, method: str) -> str:
    """Whether a method beats the forest, in a word or two."""
    table = board.ranking.table
    if method == board.reference:
        return "the forest"
    verdict = board.against_reference(method)
    if not verdict:
        return ""
    if verdict != "alike":
        return "beats the forest" if verdict == "better" else "loses to the forest"
    ahead = table.loc[method, "mean"] - table.loc[board.reference, "mean"]
    ahead = ahead if board.ranking.higher_is_better else -ahead
    return "not told from it" + (" (worse mean)" if ahead < 0 else "")
