"""Draw the figures of a benchmark's page as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from molgraph.evaluate.benchmark.report_style import CARD, INK, LINE, SOFT, WIDTH, drawn, short


@drawn
def boxes(folds: pd.DataFrame, colour: Mapping[str, str], label: str, lines: Mapping[str, float]) -> Figure | None:
    """The folds' scores of each method: a box, and a point a fold; lines for what else is known.

    Args:
        folds: a row a fold, a column a method, best first.
        colour: by method.
        label: the metric.
        lines: words -> a score to draw a line at, grey.
    """
    k = folds.shape[1]
    if not k:
        return None
    figure = Figure(figsize=(WIDTH, 0.8 + 0.3 * k + 0.15 * len(lines)), layout="constrained")
    axis = figure.subplots()
    rng = np.random.default_rng(0)
    axis.grid(axis="x")
    for i, name in enumerate(folds.columns):
        values = folds[name].dropna().to_numpy()
        if not len(values):
            continue
        look = {"color": colour[str(name)], "linewidth": 1.2, "alpha": 0.6}
        axis.boxplot(
            values, positions=[i], orientation="horizontal", widths=0.6, showfliers=False, boxprops=look,
            whiskerprops=look, capprops=look, medianprops=look | {"linewidth": 2},
            zorder=2,
        )  # fmt: skip
        jitter = i + rng.uniform(-0.22, 0.22, len(values))
        axis.plot(
            values,
            jitter,
            linestyle="",
            marker="o",
            markersize=3.6,
            color=colour[str(name)],
            markeredgecolor=CARD,
            markeredgewidth=0.5,
            zorder=4,
        )
        axis.plot([values.mean()], [i], marker="D", markersize=4, color=INK, markeredgecolor=CARD, zorder=5)
    for i, (words, x) in enumerate(lines.items()):
        axis.axvline(x, color=SOFT, linewidth=1.2, linestyle=(0, (4, 3)))
        at = (x, -0.85 - 0.5 * i)
        axis.annotate(words, at, xytext=(4, 0), textcoords="offset points", fontsize=8, color=SOFT, va="center")
    axis.set_yticks(range(k), [short(str(name)) for name in folds.columns])
    axis.set_ylim(k - 0.4, -0.6 - 0.5 * len(lines))
    axis.set_xlabel(label)
    return figure


@drawn
def cost(frame: pd.DataFrame, colour: Mapping[str, str], label: str, higher: bool) -> Figure | None:
    """Mean score against CPU-minutes of a cell on a log axis; the line joins what nothing beats at its price.

    Args:
        frame: by method: ``mean``, ``low``, ``high``, ``cpu_minutes``.
        colour: by method.
        label: the metric.
        higher: is better.
    """
    frame = frame[np.isfinite(frame["mean"]) & (frame["cpu_minutes"] > 0)]
    if frame.empty:
        return None
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.grid()
    axis.set_xscale("log")
    front = frame.sort_values("cpu_minutes")
    best = front["mean"].cummax() if higher else front["mean"].cummin()
    front = front[front["mean"] == best]
    axis.plot(front["cpu_minutes"], front["mean"], color=LINE, linewidth=4, zorder=1)
    for row in frame.itertuples():
        axis.plot([row.cpu_minutes] * 2, [row.low, row.high], color=colour[str(row.Index)], linewidth=1, alpha=0.6)
        axis.plot(
            [row.cpu_minutes], [row.mean], marker="o", markersize=6, color=colour[str(row.Index)], markeredgecolor=CARD
        )
    axis.set(xlabel="CPU-minutes of a cell (fit and predict)", ylabel=label)
    axis.margins(x=0.2, y=0.12)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    wide = frame["cpu_minutes"].max() > 50 * frame["cpu_minutes"].min()
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.xaxis.set_minor_locator(NullLocator())
    figure.draw_without_rendering()
    for name, at, ha, va in _places(frame, axis):
        row = frame.loc[name]
        point = (row["cpu_minutes"], row["mean"])
        axis.annotate(
            short(name, 18), point, xytext=at, textcoords="offset points", ha=ha, va=va, fontsize=8,
        )  # fmt: skip
    return figure


def _places(frame: pd.DataFrame, axis: Axes) -> list[tuple[str, tuple[float, float], str, str]]:
    """Where each point's name goes: the first of eight places that covers no name, no point, and stays inside."""
    assert axis.figure is not None
    scale = 72 / axis.figure.dpi
    points = axis.transData.transform(frame[["cpu_minutes", "mean"]].to_numpy()) * scale
    box = np.array([corner * scale for corner in axis.get_window_extent().get_points()]).ravel()
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    out = []
    for name, (x, y) in zip(map(str, frame.index), points, strict=True):
        width, best = 4.6 * len(short(name, 18)), (np.inf, (0.0, 0.0), "left", "bottom")
        for dx, dy in ((6, 0), (-6, 0), (6, 8), (-6, 8), (6, -8), (-6, -8), (6, 17), (-6, -17)):
            left = x + dx if dx > 0 else x + dx - width
            mine = (left, y + dy - 4.5, left + width, y + dy + 4.5)
            lost = sum(_overlap(mine, other) for other in taken)
            lost += 9 * (max(box[0] - mine[0], 0) + max(mine[2] - box[2], 0) + max(mine[3] - box[3], 0))
            if lost < best[0]:
                best = (lost, (dx, dy), "left" if dx > 0 else "right", "center")
                chosen = mine
        taken.append(chosen)
        out.append((name, *best[1:]))
    return out


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Area that two boxes (left, bottom, right, top) share."""
    return max(min(a[2], b[2]) - max(a[0], b[0]), 0.0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0.0)


@drawn
def distance(
    counts: np.ndarray, errors: Mapping[str, np.ndarray], edges: Sequence[float], colour: Mapping[str, str], label: str
) -> Figure | None:
    """Error in bins of distance to the nearest training molecule, a line a method, with the labels in each bin."""
    shown = [b for b in range(len(counts)) if any(np.isfinite(e[b]) for e in errors.values())]
    if len(shown) < 2:
        return None
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axis = figure.subplots()
    axis.grid(axis="y")
    middle = [(a + b) / 2 for a, b in pairwise(edges)]
    for name, error in errors.items():
        axis.plot(middle, error, marker="o", markersize=4, linewidth=1.6, color=colour[name], label=short(name))
    axis.set_xticks(edges, [f"{edge:g}" for edge in edges])
    axis.set_xticks(middle, [_count(int(n)) for n in counts], minor=True)
    axis.tick_params(axis="x", which="minor", length=0, pad=16, labelsize=8, labelcolor=SOFT)
    axis.set_xlim(edges[min(shown)], edges[max(shown) + 1])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("Tanimoto distance to training; below, labels in each bin", loc="left")
    axis.set_ylabel(label)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _count(n: int) -> str:
    """A number that fits under a bin.

    Example:
        >>> _count(1234), _count(77_946), _count(1_234_567)
        ('1,234', '78k', '1,235k')
    """
    return f"{n:,}" if n < 10_000 else f"{n / 1000:,.0f}k"


@drawn
def calibration(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], colour: Mapping[str, str]) -> Figure | None:
    """Observed share of ones against predicted probability, a line a method."""
    if not curves:
        return None
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.grid()
    axis.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
    for name, (p, share) in curves.items():
        axis.plot(p, share, marker="o", markersize=3.5, linewidth=1.5, color=colour[name], label=short(name))
    axis.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        aspect="equal",
        xlabel="predicted probability",
        ylabel="observed share of 1",
    )
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure
