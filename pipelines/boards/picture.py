"""Draw one picture of where every method stands on the boards of molecules, for the README."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from molgraph.base.paths import atomic_write
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_rows import decimals, metric_label, scored
from molgraph.evaluate.report_style import INK, SOFT, short

FIRST, STEPS, BARE = "#2a7fb8", ("#a9cfe6", "#dbe9f2", "#f3f4f6"), "#ffffff"
WIDTH, ROW, DPI = 10.0, 0.36, 160  # inches, inches, dots an inch


def write_picture(reports: Sequence[BenchReport], path: str | Path) -> Path:
    """Draw the primary boards of each report: a row a method, a column a dataset, ranks and mean scores.

    Args:
        reports: one panel each, of its boards of molecules under the split that it begins with; those without are left
            out, so that a page begins with a picture and not with a scroll.
        path: the PNG to write; the same reports give the same picture.

    Returns:
        The path.
    """
    found = [(report, headline(report)) for report in reports]
    panels = [(report, boards) for report, boards in found if boards]
    rows = [len(in_order(report, boards)) for report, boards in panels]
    heights = [ROW * n + 1.15 for n in rows]
    with rc_context({"font.family": "sans-serif", "text.parse_math": False}):
        figure = Figure(figsize=(WIDTH, sum(heights)), facecolor=BARE)
        at = 1.0
        for (report, boards), n, height in zip(panels, rows, heights, strict=True):
            share = height / sum(heights)
            axis = figure.add_axes((0.125, at - share, 0.87, share * (ROW * n + 0.02) / height))
            _panel(axis, report, boards)
            at -= share
        with atomic_write(path) as file:
            figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return Path(path)


def headline(report: BenchReport) -> list[Board]:
    """The primary boards of molecules under the first of their splits."""
    boards = [b for b in report.boards if b.primary and (b.card is None or b.card.entity == "molecule")]
    return [b for b in boards if b.split == boards[0].split]


def _panel(axis: Axes, report: BenchReport, boards: Sequence[Board]) -> None:
    """One report: its title, the names of its boards, and a cell a method and board."""
    methods = in_order(report, boards)
    axis.set_xlim(0, max(len(boards), 6))
    axis.set_ylim(len(methods), 0)
    wide = 72 * 0.87 * WIDTH / max(len(boards), 6)  # points of a column
    axis.axis("off")
    axis.annotate(
        report.title, (0, 0), xytext=(-88, 46), textcoords="offset points", fontsize=12, fontweight="bold", color=INK
    )
    for j, board in enumerate(boards):
        arrow = "\N{UPWARDS ARROW}" if board.ranking.higher_is_better else "\N{DOWNWARDS ARROW}"
        lines = (
            (short(board.name, 14), 30, 9.5, INK), (f"{metric_label(board.metric)} {arrow}", 18, 7.5, SOFT),
            (short(board.split, 18), 7, min(7.0, wide / (0.62 * len(short(board.split, 18)))), SOFT),
        )  # fmt: skip
        for words, above, size, colour in lines:
            axis.annotate(
                words, (j + 0.5, 0), xytext=(0, above), textcoords="offset points", fontsize=size, color=colour,
                ha="center", va="center",
            )  # fmt: skip
    for i, method in enumerate(methods):
        axis.annotate(
            short(method, 15), (0, i + 0.5), xytext=(-6, 0), textcoords="offset points", fontsize=9, color=INK,
            ha="right", va="center",
        )  # fmt: skip
        for j, board in enumerate(boards):
            rank, score, tone = cell(board, method)
            ink = "#ffffff" if tone == FIRST else INK
            axis.add_patch(_tile(j, i, tone))
            for words, aside, size, weight in ((rank, -15, 10, "bold"), (score, 8, 8, "normal")):
                axis.annotate(
                    words, (j + 0.5, i + 0.5), xytext=(aside, 0), textcoords="offset points", fontsize=size,
                    fontweight=weight, color=ink, ha="center", va="center",
                )  # fmt: skip


def _tile(column: int, row: int, tone: str) -> Rectangle:
    return Rectangle((column + 0.02, row + 0.04), 0.96, 0.92, facecolor=tone, linewidth=0)


def in_order(report: BenchReport, boards: Sequence[Board]) -> list[str]:
    """The boards' methods by their mean rank over those that rank them; those without a rank last."""
    there = [m for m in report.methods if any(m in b.ranking.table.index for b in boards)]
    ranks = {m: [b.ranking.table["rank"].get(m, np.nan) for b in boards] for m in there}
    means = {m: float(np.mean(good)) if (good := [r for r in each if np.isfinite(r)]) else np.inf
             for m, each in ranks.items()}  # fmt: skip
    return sorted(there, key=lambda m: means[m])


def cell(board: Board, method: str) -> tuple[str, str, str]:
    """Rank, mean score and colour of a method on a board."""
    table = board.ranking.table
    if method not in board.ranking.ranked:
        return "", "failed" if method in set(board.failures["method"]) else "\N{EN DASH}", BARE
    score = scored(float(table.loc[method, "mean"]), decimals(board))
    if not board.leaders:
        return "", score, STEPS[-1]
    rank, k = float(table.loc[method, "rank"]), len(board.ranking.ranked)
    step = min(int(len(STEPS) * (rank - 1) / k), len(STEPS) - 1)
    return f"{rank:.0f}", score, FIRST if method in board.leaders else STEPS[step]
