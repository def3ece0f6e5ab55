"""Write a board's rows and sentences as the page, the leaderboard and the site show them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from molgraph.base.errors import UsageError
from molgraph.base.printable import count
from molgraph.evaluate.benchmark.board import ERRORS, TRIVIAL, Board
from molgraph.evaluate.benchmark.ranking import ALPHA
from molgraph.evaluate.metrics import get_metric
from molgraph.evaluate.report_style import NONE, number

MINUS = "\N{MINUS SIGN}"
SUSPICIOUS = 0.5  # of the smallest error that was computed here
VERDICTS = {"better": "beats {}", "worse": "loses to {}", "equivalent": "equivalent to it", "undecided": "undecided"}


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


def board_rows(board: Board) -> pd.DataFrame:
    """The board's frame, a row a method, with texts.

    They are ``place`` (the rank, where the board decides anything), ``score``, ``step`` and ``span`` (the difference
    to the first and its interval), ``cpu`` (seconds of a cell) and ``against`` (the verdict against the reference).
    """
    frame, digits = board.to_frame(), decimals(board)
    half = (frame["high"] - frame["low"]) / 2
    rooms = [f" ± {scored(width, digits)}" if np.isfinite(width) else "" for width in half]
    frame["place"] = [f"{rank:.0f}" if np.isfinite(rank) and board.leaders else NONE for rank in frame["rank"]]
    frame["score"] = [scored(mean, digits) + room for mean, room in zip(frame["mean"], rooms, strict=True)]
    frame["step"] = frame["to_best"].map(signed)
    frame["span"] = [span(*ends) for ends in frame[["to_best_low", "to_best_high"]].to_numpy()]
    frame["cpu"] = (60 * frame["cpu_minutes"]).map(number)
    untested = {"": "not tested" if board.reference and not board.tested else ""}
    verdicts = {word: text.format(board.against) for word, text in VERDICTS.items()} | untested
    frame["against"] = frame["reference"].map(verdicts).where(frame.index != board.reference, board.against)
    frame["groups"] = frame["groups"] if board.tested else ""
    return frame


def badge(board: Board, method: str) -> str:
    """``reproduced`` or ``self-reported`` of a row that was submitted, and whether it is too good; else empty."""
    label, mean = board.entered.get(method, "").partition(";")[0].partition(":")[0], board.ranking.table["mean"]
    error = 1 - mean if board.ranking.higher_is_better else mean
    doubt = label and error[method] < SUSPICIOUS * error.drop([*board.entered, TRIVIAL], errors="ignore").min()
    return label + ", suspicious: less than half the error of any method that was run here" * bool(doubt)


def beside_texts(board: Board) -> pd.DataFrame:
    """The metrics that stand beside a leading error, as text under their labels; of logarithms its fold error too."""
    frame = board.to_frame()
    columns = {metric_label(name): frame[name].map(lambda v: scored(v, 2)) for name in board.beside if name != "mae"}
    if "fold_error" in frame:
        columns["fold error"] = frame["fold_error"].map(number)
    return pd.DataFrame(columns, index=frame.index)


def error_label(board: Board) -> str:
    """The metric with its unit, where that is the measured values' own.

    Example:
        >>> from types import SimpleNamespace
        >>> error_label(SimpleNamespace(metric="mae", unit="log10(mol/L)"))
        'MAE, log10(mol/L)'
    """
    return metric_label(board.metric) + (f", {board.unit}" if board.unit and board.metric in ERRORS else "")


def sentences(board: Board) -> list[str]:
    """What a reader of a board's table should know: resolution, margin, noise, tasks, the test, notes."""
    lines, tasks, margin = [resolution(board)], board.scores.tasks, board.ranking.margin
    if margin is not None and board.tested:
        known = board.card.margin if board.card is not None else None
        reason = known.reason if known is not None else "so the recipe says"
        lines.append(f"Differences below {number(margin)} do not matter in practice: {reason}.")
        if board.ranking.half_width > 2 * margin:
            lines.append("The intervals are wider than twice that: methods that differ so much may stay undecided.")
    if board.ceilings:
        best = "highest" if board.ranking.higher_is_better else "lowest"
        parts = "; or ".join(f"{number(c.value)} (noise {number(c.sd)}: {c.source})" for c in board.ceilings)
        lines.append(f"Noise ceiling, the {best} {metric_label(board.metric)} that the labels allow: {parts}.")
    if board.censored:
        share = f"{board.censored:.0%} of the values stand at a limit of the assay"
        lines.append(f"{share}, so that errors there are no full errors.")
    if len(tasks) > 1:
        counts = sorted({*board.scores.counted.values()})
        some = f"{counts[0]}{f' to {counts[-1]}' if len(counts) > 1 else ''}"
        text = f"Mean over {some} of {len(tasks)} tasks."
        if board.metric in ERRORS:
            text += " They are averaged in their own units, so that tasks of large numbers weigh most."
        lines.append(text + "".join(f" {name}: {cause}." for name, cause in board.scores.left_out.items()))
    entered = [f"{name} was entered by its predictions: {words}" for name, words in board.entered.items()]
    atoms = [f"Positions of atoms that {name} reads: {words}." for name, words in board.positions.items()]
    texts = (*board.side_sentences, *lines, how_tested(board), *board.notes, *atoms, *entered)
    return [text for text in texts if text]


def how_tested(board: Board) -> str:
    """Which test, and where Wilcoxon's disagrees."""
    ranking = board.ranking
    if not ranking.tested:
        one = "one fold cannot tell methods apart, so none has a rank"
        return f"Not tested: {one if len(ranking.ranked) > 1 else 'fewer than two methods have all folds'}."
    pairs, n = ranking.pairs, ranking.n_folds
    if ranking.bootstrap:
        return (
            "One split: its test rows were drawn anew (molecules by scaffold, pairs by molecule and by protein) for "
            "the errors of scores and differences, by which t-tests judge; Holm's correction over "
            f"{count(len(pairs), 'pair')}, family-wise error {ALPHA:g}. That tells of other test rows, not of other "
            "training sets or seeds."
        )
    text = f"t-tests over {n} paired folds with Nadeau and Bengio's variance (test over training rows "
    text += f"{ranking.test_over_train:.3g}), Holm's correction over {count(len(pairs), 'pair')}, "
    text += f"family-wise error {ALPHA:g}."
    if pairs["disagrees"].any():
        more, fewer = (int((pairs["disagrees"] & (pairs["different"] == told)).sum()) for told in (False, True))
        numbers = " and ".join(f"{n} {words}" for n, words in ((more, "more"), (fewer, "fewer")) if n)
        noun = "pair" if more + fewer == 1 else "pairs"
        text += f" Wilcoxon's test, which takes folds for independent, tells {numbers} {noun} apart."
    naive, told = int(pairs["tukey"].sum()), int(pairs["different"].sum())
    if naive != told:
        text += " Ash et al.'s protocol (2025: repeated-measures ANOVA, Tukey), which takes folds for independent, "
        text += f"tells {naive} of {len(pairs)} apart."
    return text


def resolution(board: Board) -> str:
    """How many pairs are told apart, and how wide their intervals are; empty where nothing was tested."""
    ranking = board.ranking
    if not ranking.tested:
        return ""
    tally, pairs = ranking.pairs["verdict"].value_counts(), len(ranking.pairs)
    if pairs == 1:
        phrases = {"better": "One method is better", "equivalent": "The two methods are equivalent"}
        text, wide = phrases.get(tally.index[0], "The two methods are not told apart"), "the interval is"
    else:
        counts = [f"{tally[word]} {word}" for word in ("equivalent", "undecided") if word in tally]
        text = f"Of {pairs} pairs of methods one is better in {tally.get('better', 0)}"
        text += f" ({', '.join(counts)})" * bool(counts)
        wide = "half of the intervals are narrower than"
    return f"{text}; {wide} ± {number(ranking.half_width)}."
