"""Choose the figures of a benchmark's page and write their captions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup

from molgraph.evaluate.benchmark import report_figures as figures
from molgraph.evaluate.benchmark import report_words as words
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.ranking_groups import group_members
from molgraph.evaluate.benchmark.report_critical import critical
from molgraph.evaluate.benchmark.report_slices import EDGES, Slices
from molgraph.evaluate.benchmark.report_style import placed
from molgraph.evaluate.report_parts import number

LINES = 6  # methods in a figure of lines
_BINS = 10
CRITICAL = "Critical-difference diagram: a line joins the methods with a dot on it, which are not told apart; at a gap"
CRITICAL += " it passes by a method that is none of them. The letters are the table's groups."
FOLDS = "A point a fold; box, quartiles and whiskers; the diamond is the mean. A fold is easy or hard for all methods"
FOLDS += " alike, so compare them within folds, as the test does."
COST = (
    "Score against cost, with the interval of the mean. The broad line joins methods that nothing beats at their price."
)
DISTANCE = (
    "Error against distance to the nearest training molecule (1 less the Tanimoto similarity of ECFP4); test rows of"
)
DISTANCE += " the first repeat."
CALIBRATION = "Calibration, all tasks, first repeat: on the dashed line a probability means what it says."


def gallery(board: Board, slices: Slices | None, colour: Mapping[str, str], key: str) -> list[tuple[Markup, str]]:
    """A board's figures, each with what to see in it; those that there is nothing to draw for are left out."""
    ranking, label = board.ranking, words.metric_label(board.metric)
    ranked = ranking.ranked
    out: list[tuple[str, str]] = []
    if len(ranked) > 1:
        groups = group_members({m: str(ranking.table.loc[m, "groups"]) for m in ranked})
        position = ranking.table.loc[ranked, "mean_rank"].sort_values(kind="stable")
        svg = critical(position, groups, "mean rank over folds (left is best)", ranking.rank_floor)
        out.append((svg, CRITICAL))
    lines = {f"noise ceiling {number(c.value)}": c.value for c in board.ceilings[:1]}
    lines |= {f"{q.method}, quoted": q.value for q in board.quoted[:2]}
    folds = board.scores.folds[[m for m in board.methods if board.scores.folds[m].notna().any()]]
    svg = figures.boxes(folds, colour, label, lines)
    out.append((svg, FOLDS))
    svg = figures.cost(board.to_frame(), colour, label, ranking.higher_is_better)
    out.append((svg, COST))
    if slices is not None and slices.tested:
        shown = _shown(board, slices)
        if len(slices.distance):
            counts, errors = slices.by_distance(shown)
            what = "Brier score" if slices.binary else "mean absolute error"
            if any(target.kind == "multiclass" for target in slices.targets):
                what = "1 less the probability of the class"
            elif not slices.binary and len(slices.targets) > 1:
                what += ", in standard deviations"
            svg = figures.distance(counts, errors, EDGES, colour, what)
            out.append((svg, DISTANCE))
        if slices.binary:
            svg = figures.calibration({m: _reliability(slices, m) for m in shown}, colour)
            out.append((svg, CALIBRATION))
    return [(Markup(placed(svg, f"{key}-{i}")), caption) for i, (svg, caption) in enumerate(out) if svg]


def _shown(board: Board, slices: Slices) -> list[str]:
    """Methods in a figure of lines: the best, with the forest and the floor among them."""
    names = [m for m in board.methods if m in slices.tested]
    must = [m for m in (board.reference, "mean") if m in names]
    best = [m for m in names if m not in must][: LINES - len(must)]
    return [m for m in names if m in best or m in must]


def _reliability(slices: Slices, method: str) -> tuple[np.ndarray, np.ndarray]:
    tested = slices.tested[method]
    use = np.isfinite(tested.y) & np.isfinite(tested.p)
    y, p = tested.y[use], tested.p[use]
    groups = [g for g in np.array_split(np.argsort(p, kind="stable"), min(_BINS, max(len(p) // 10, 1))) if len(g)]
    return np.array([p[g].mean() for g in groups]), np.array([y[g].mean() for g in groups])
