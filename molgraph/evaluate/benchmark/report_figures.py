"""Draw the figures of a benchmark's page, each with its caption."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from molgraph.evaluate.benchmark.board import TRIVIAL, Board
from molgraph.evaluate.benchmark.report_rows import metric_label
from molgraph.evaluate.benchmark.report_slices import EDGES, Slices
from molgraph.evaluate.report_style import CARD, COLOURS, DASHED, INK, LINE, SOFT, drawn, number, reliability, short

WIDTH = 5.6  # inches
MARKERS = "oDs^v"
LINES = 6  # methods in a figure of lines, beside the forest and the mean
CAPTIONS = {
    "folds": "A point a fold; box, quartiles and whiskers; the diamond is the mean. A fold is easy or hard for all "
    "methods alike, so compare them within folds, as the test does.",
    "cost": "Score against cost, with the interval of the mean. The broad line joins methods that none beats at their "
    "price.",
    "distance": "Error against distance to the nearest training molecule (1 less the Tanimoto similarity of ECFP4); "
    "test rows of the first repeat.",
    "calibration": "Calibration, all tasks, first repeat: on the dashed line a probability is the share of ones.",
}


def gallery(board: Board, slices: Slices | None, colour: Mapping[str, str], key: str) -> list[tuple[Markup, str]]:
    """A board's figures and their captions; those that there is nothing to draw for are left out."""
    ranking, label = board.ranking, metric_label(board.metric)
    lines = {f"noise ceiling {number(c.value)}": c.value for c in board.ceilings[:1]}
    lines |= {f"{q.method}, quoted": q.value for q in board.quoted}
    one = {"folds": "The score of each method on the one split."} if ranking.n_folds == 1 else {}
    figures: dict[str, tuple[Any, ...]] = {
        "folds": (boxes, board.scores.folds[board.methods].dropna(axis=1, how="all"), colour, label, lines),
        "cost": (cost, board.to_frame(), colour, label, ranking.higher_is_better),
    }
    if slices is not None:
        there = [m for m in board.methods if m in slices.p]
        names = [m for i, m in enumerate(there) if i < LINES or m in (board.reference, TRIVIAL)]
        if slices.distance is not None:
            figures["distance"] = (distance, *slices.by_distance(names), colour, slices.error_label)
        if slices.binary:
            curves = {m: reliability(slices.y, slices.p[m]) for m in names}
            figures["calibration"] = (calibration, curves, colour)
    plots = ((make(*values, key=f"{key}-{name}"), (CAPTIONS | one)[name]) for name, (make, *values) in figures.items())
    return [(svg, caption) for svg, caption in plots if svg]


@drawn
def boxes(folds: pd.DataFrame, colour: Mapping[str, str], label: str, lines: Mapping[str, float]) -> Figure | None:
    """The folds' scores (a column a method): a box, and a point a fold; grey lines at other known scores."""
    k = folds.shape[1]
    if not k:
        return None
    figure, axis = _blank(0.8 + 0.3 * k + 0.15 * len(lines), grid="x")
    values = [folds[name].dropna().to_numpy() for name in folds.columns]
    look, point = {"color": SOFT, "linewidth": 1}, {"markeredgecolor": CARD, "markersize": 4, "zorder": 4}
    axis.boxplot(
        values, positions=range(k), orientation="horizontal", widths=0.6, showfliers=False, boxprops=look,
        whiskerprops=look, capprops=look, medianprops=look | {"linewidth": 2}, showmeans=True,
        meanprops=point | {"marker": "D", "markerfacecolor": INK, "zorder": 5},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for i, (name, scores) in enumerate(zip(folds.columns, values, strict=True)):
        axis.plot(scores, i + rng.uniform(-0.22, 0.22, len(scores)), "o", color=colour[str(name)], **point)
    for x in lines.values():
        axis.axvline(x, **DASHED)
    ends, box = axis.get_xlim(), {"facecolor": CARD, "edgecolor": "none", "pad": 1}
    for i, (words, x) in enumerate(lines.items()):
        side = "right" if 2 * x > sum(ends) else "left"
        axis.text(x, -0.85 - 0.5 * i, f" {words} ", fontsize=8, color=SOFT, va="center", ha=side, bbox=box)
    axis.set_yticks(range(k), [short(str(name)) for name in folds.columns])
    axis.set_ylim(k - 0.4, -0.6 - 0.5 * len(lines))
    axis.set_xlabel(label)
    return figure


@drawn
def cost(frame: pd.DataFrame, colour: Mapping[str, str], label: str, higher: bool) -> Figure | None:
    """Mean score against CPU seconds of a cell on a log axis; the line joins methods that none beats at their price."""
    frame = frame.assign(cpu=60 * frame["cpu_minutes"])
    frame = frame[np.isfinite(frame["mean"]) & (frame["cpu"] > 0)]
    if frame.empty:
        return None
    figure, axis = _blank(3.4, grid="both")
    axis.set_xscale("log")
    front = frame.sort_values("cpu")
    best = front["mean"].cummax() if higher else front["mean"].cummin()
    front = front[front["mean"] == best]
    axis.plot(front["cpu"], front["mean"], color=LINE, linewidth=4, zorder=1)
    for row in frame.itertuples():
        name, room = str(row.Index), [[row.mean - row.low], [row.high - row.mean]]
        look = {"elinewidth": 1, "markeredgecolor": CARD, "label": short(name)}
        axis.errorbar(row.cpu, row.mean, room, linestyle="", **look_of(colour, name), **look)
    axis.set(xlabel="CPU seconds of a cell (fit and predict)", ylabel=label)
    low, high = frame["cpu"].min() / 2, frame["cpu"].max() * 2
    axis.set_xlim(low, high)
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


@drawn
def distance(
    counts: np.ndarray, errors: Mapping[str, np.ndarray], colour: Mapping[str, str], label: str
) -> Figure | None:
    """Error in bins of distance to the nearest training molecule, a line a method, with the labels in each bin."""
    shown = np.flatnonzero(np.isfinite([*errors.values()]).any(axis=0))
    if len(shown) < 2:
        return None
    figure, axis = _blank(3.2, grid="y")
    middle = [(a + b) / 2 for a, b in pairwise(EDGES)]
    _lines(axis, {name: (middle, error) for name, error in errors.items()}, colour)
    axis.set_xticks(EDGES, [f"{edge:g}" for edge in EDGES])
    axis.set_xticks(middle, [f"{n:,}" if n < 10_000 else f"{n / 1000:,.0f}k" for n in counts], minor=True)
    axis.tick_params(axis="x", which="minor", length=0, pad=16, labelsize=8, labelcolor=SOFT)
    axis.set_xlim(EDGES[shown[0]], EDGES[shown[-1] + 1])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("Tanimoto distance to training; below, labels in each bin", loc="left")
    axis.set_ylabel(label)
    return figure


@drawn
def calibration(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], colour: Mapping[str, str]) -> Figure | None:
    """Observed share of ones against predicted probability, a line a method."""
    figure, axis = _blank(3.4, grid="both")
    axis.plot([0, 1], [0, 1], **DASHED)
    _lines(axis, curves, colour)
    ends = (-0.02, 1.02)
    axis.set(xlim=ends, ylim=ends, aspect="equal", xlabel="predicted probability", ylabel="observed share of 1")
    return figure


def look_of(colour: Mapping[str, str], name: str) -> dict[str, str]:
    """A method's colour, and a marker that tells it from others of that colour."""
    return {"color": colour[name], "marker": MARKERS[[*colour].index(name) // len(COLOURS) % len(MARKERS)]}


def _blank(height: float, grid: Literal["x", "y", "both"]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axis = figure.subplots()
    axis.grid(axis=grid)
    return figure, axis


def _lines(axis: Axes, curves: Mapping[str, tuple[Any, np.ndarray]], colour: Mapping[str, str]) -> None:
    for name, (x, y) in curves.items():
        axis.plot(x, y, markersize=4, linewidth=1.6, label=short(name), **look_of(colour, name))
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
