"""Write the short texts that page and leaderboard share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from molgraph.base.errors import UsageError
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.ranking import CONOVER, PAIRED, TUKEY, UNTESTED, WILCOXON
from molgraph.evaluate.benchmark.ranking_checks import NORMAL
from molgraph.evaluate.benchmark.ranking_ranks import least_p
from molgraph.evaluate.metrics import get_metric
from molgraph.evaluate.report_parts import NONE, number

SPAN = dict.fromkeys(("roc_auc", "prc_auc", "accuracy", "balanced_accuracy", "f1", "brier", "ece", "bedroc", "ci"), 1.0)
SPAN |= dict.fromkeys(("spearman", "kendall", "pearson", "mcc"), 2.0)  # the largest difference that there can be
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


def order(board: Board) -> str:
    """By what the methods stand under one another."""
    if not board.tested:
        return "Methods stand by mean."
    by_ranks = board.ranking.test in (CONOVER, WILCOXON)
    return f"Methods stand by rank, then by mean{' rank over folds' if by_ranks else ''}."


def best_mean(board: Board) -> str:
    """That the first has not the best mean, which a test by ranks allows; empty where it has."""
    ranked = board.ranking.ranked
    if not ranked:
        return ""
    means = board.ranking.table.loc[ranked, "mean"]
    best = str(means.idxmax() if board.ranking.higher_is_better else means.idxmin())
    if best == ranked[0]:
        return ""
    return f"{best} has the best mean; {ranked[0]} stands first by its mean rank over folds, which is what is tested."


def how_tested(board: Board) -> str:
    """Which test, why, and what it said of all methods at once."""
    ranking = board.ranking
    if ranking.test == UNTESTED:
        return "Not tested: " + ("; ".join(ranking.notes) or "fewer than two methods have all folds") + "."
    failed = [check for check in ranking.checks if not check.holds]
    why = f"assumptions fail: {'; '.join(f'{check.name} ({check.words})' for check in failed)}" if failed else ""
    said = []
    if ranking.test == PAIRED:
        n, k = ranking.n_folds, len(ranking.ranked)
        said.append(
            f"{n} folds are too few for tests by ranks: even the same order of {k} methods in every fold would give "
            f"neighbours p = {least_p(n, k):.3g}."
        )
        if any(check.name == NORMAL for check in failed):
            said.append(f"t-tests too suppose normal residuals, and with {n} folds they need them: read with care.")
    omnibus = ranking.omnibus
    if omnibus is not None:
        said.append(f"All methods at once: {omnibus.name} = {number(omnibus.statistic)}, p = {omnibus.p:.2g}.")
    said += [f"{note[:1].upper()}{note[1:]}." for note in ranking.notes]
    head = f"{ranking.test} over {ranking.n_folds} paired folds, family-wise error {ranking.alpha:g}; "
    return " ".join([head + (why or "assumptions hold") + ".", *said])


def resolution(board: Board) -> str:
    """From which difference on methods are told apart, in words; empty where nothing was tested."""
    ranking = board.ranking
    if not np.isfinite(ranking.floor):
        return ""
    words = _apart(board, ranking.floor, ranking.pairs["different"])
    if np.isfinite(ranking.floor_wide):
        wide = _apart(board, ranking.floor_wide, ranking.pairs["survives"])
        words += f". Allowing for the training rows that folds share (Nadeau and Bengio): {wide[0].lower()}{wide[1:]}"
    return words + "."


def _apart(board: Board, floor: float, told: pd.Series) -> str:
    """What a floor means: nothing above a metric's span, and with margins that differ only what this board shows."""
    ranking, folds = board.ranking, f"{board.ranking.n_folds} folds"
    if floor >= SPAN.get(board.metric, np.inf):
        return f"{folds} can tell no two methods apart"
    if ranking.test == TUKEY:
        return f"This board tells two methods apart from a difference of {number(floor)} on"
    if not told.any():
        return f"{folds} can tell no two of these methods apart"
    if told.all():
        return f"All methods here are told apart, down to a difference of {number(floor)}"
    size = ranking.pairs["difference"].abs()
    if size.max() <= floor:
        return f"The two methods furthest apart are not told apart here; {told.sum()} of {len(told)} pairs are"
    return f"Any two methods further apart than {number(_up(floor))} are told apart here"


def _up(value: float) -> float:
    """Rounded up to three digits: rounded down, the sentence would not be true of the pair that it comes from.

    Example:
        >>> _up(0.09541), _up(0.0955), _up(1234.2)
        (0.0955, 0.0955, 1235.0)
    """
    digits = max(2 - int(np.floor(np.log10(value))), 0) if value > 0 else 0
    near = round(value, digits)
    return near if near >= value else round(near + 10.0**-digits, digits)


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
