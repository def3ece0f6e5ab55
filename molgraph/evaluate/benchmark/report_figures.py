"""Boards and slices come in; the figures of a benchmark's page go out, as SVG that takes the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6fd1", "#a6761d", "#66a61e", "#c51b7d")
INK, SOFT, LINE, CARD = "#1d2733", "#5a6572", "#dde2e8", "#fefefe"
_VARIABLES = {INK: "var(--ink)", SOFT: "var(--soft)", LINE: "var(--line)", CARD: "var(--card)"}
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "molgraph",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.7,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
_WIDTH = 5.6


def _drawn(make: Callable[..., Figure | None]) -> Callable[..., str]:
    """Draw and return an ``<svg>`` that stands inside a page: ids of its own, no ground, the page's ink."""

    @wraps(make)
    def draw(*args: Any, **kwargs: Any) -> str:
        with rc_context(_STYLE):
            figure = make(*args, **kwargs)
            if figure is None:
                return ""
            out = io.StringIO()
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        text = out.getvalue()
        text = text[text.index("<svg") :]
        return _own(text, f"f{blake2b(text.encode(), digest_size=4).hexdigest()}-")

    return draw


def _own(svg: str, prefix: str) -> str:
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    svg = svg.replace("url(#", f"url(#{prefix}")
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return re.sub(r"\n\s*", "\n", svg)


def colours(methods: Sequence[str]) -> dict[str, str]:
    """A colour a method, the same all over a page."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(methods)}


def _short(name: str, n: int = 22) -> str:
    return name if len(name) <= n else name[: n - 1] + "\N{HORIZONTAL ELLIPSIS}"


@_drawn
def critical(
    position: pd.Series, groups: Sequence[Sequence[str]], label: str, width: float, reverse: bool
) -> Figure | None:
    """A critical-difference diagram: methods on a line, bars below it join those that are not told apart.

    Args:
        position: by method, best first: its mean score or mean rank.
        groups: methods of each bar.
        label: what the axis shows.
        width: length of the ruler that shows the critical difference; NaN for none.
        reverse: the best stand right, not left.
    """
    k = len(position)
    if k < 2:
        return None
    bars = [g for g in groups if len(g) > 1]
    lanes = -(-k // 2)
    height = 0.75 + 0.2 * lanes + 0.11 * len(bars)
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axis = figure.subplots()
    low, high = float(position.min()), float(position.max())
    reach = (high - low) or 1.0
    axis.set_xlim(low - 0.45 * reach, high + 0.45 * reach)
    if reverse:
        axis.invert_xaxis()
    left, right = axis.get_xlim()
    step = 0.11
    for i, group in enumerate(bars):
        ends = position[list(group)]
        y = -0.12 - step * i
        axis.plot(
            [ends.min() - 0.008 * reach, ends.max() + 0.008 * reach],
            [y, y],
            color=SOFT,
            linewidth=3.2,
            solid_capstyle="round",
        )
    base = -0.12 - step * len(bars)
    half = (k + 1) // 2
    for i, (name, x) in enumerate(position.items()):
        first = i < half
        y = base - 0.2 * ((i if first else k - 1 - i) + 0.5)
        edge = left + (0.02 if first else 0.98) * (right - left)
        axis.plot([x, x, edge], [0, y, y], color=INK, linewidth=0.8)
        axis.plot([x], [0], marker="o", markersize=3.5, color=INK)
        axis.annotate(
            _short(str(name)),
            (edge, y),
            xytext=(0, 1.5),
            textcoords="offset points",
            ha="left" if first else "right",
            va="bottom",
            fontsize=8.5,
        )
    if np.isfinite(width) and width < 1.8 * reach:
        start = left + 0.02 * (right - left)
        stop = start + width * (1 if right > left else -1)
        axis.plot([start, stop], [0.26, 0.26], color=COLOURS[1], linewidth=2, marker="|", markersize=6)
        axis.annotate(
            f"critical difference {width:.3g}", (start, 0.26), xytext=(0, 4), textcoords="offset points", fontsize=8
        )
    axis.set_ylim(base - 0.2 * (half + 0.2), 0.5)
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.spines["top"].set_visible(True)
    axis.spines["top"].set_position(("data", 0))
    axis.xaxis.set_ticks_position("top")
    axis.tick_params(axis="x", labelsize=8, pad=1)
    axis.set_yticks([])
    ticks = [t for t in axis.get_xticks() if low - 0.12 * reach <= t <= high + 0.12 * reach]
    axis.set_xticks(ticks)
    axis.set_title(label, fontsize=9, loc="left", color=SOFT)
    return figure


@_drawn
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
    figure = Figure(figsize=(_WIDTH, 0.8 + 0.3 * k), layout="constrained")
    axis = figure.subplots()
    rng = np.random.default_rng(0)
    axis.grid(axis="x")
    for i, name in enumerate(folds.columns):
        values = folds[name].dropna().to_numpy()
        if not len(values):
            continue
        look = {"color": colour[str(name)], "linewidth": 1.2}
        axis.boxplot(
            values, positions=[i], orientation="horizontal", widths=0.6, showfliers=False, boxprops=look,
            whiskerprops=look, capprops=look, medianprops=look | {"linewidth": 2},
        )  # fmt: skip
        jitter = i + rng.uniform(-0.16, 0.16, len(values))
        axis.plot(
            values,
            jitter,
            linestyle="",
            marker="o",
            markersize=2.4,
            alpha=0.55,
            color=colour[str(name)],
            markeredgewidth=0,
        )
        axis.plot([values.mean()], [i], marker="D", markersize=4, color=INK, markeredgewidth=0)
    for words, x in lines.items():
        axis.axvline(x, color=SOFT, linewidth=1.2, linestyle=(0, (4, 3)))
        axis.annotate(words, (x, -0.75), xytext=(3, 0), textcoords="offset points", fontsize=8, color=SOFT, va="center")
    axis.set_yticks(range(k), [_short(str(name)) for name in folds.columns])
    axis.set_ylim(k - 0.4, -1.05 if lines else -0.6)
    axis.set_xlabel(label)
    return figure


@_drawn
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
    figure = Figure(figsize=(_WIDTH, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.grid()
    axis.set_xscale("log")
    front = frame.sort_values("cpu_minutes")
    best = front["mean"].cummax() if higher else front["mean"].cummin()
    front = front[front["mean"] == best]
    axis.plot(front["cpu_minutes"], front["mean"], color=LINE, linewidth=4, zorder=1)
    middle = np.sqrt(frame["cpu_minutes"].min() * frame["cpu_minutes"].max())
    for row in frame.itertuples():
        axis.plot([row.cpu_minutes] * 2, [row.low, row.high], color=colour[str(row.Index)], linewidth=1, alpha=0.6)
        axis.plot(
            [row.cpu_minutes], [row.mean], marker="o", markersize=6, color=colour[str(row.Index)], markeredgecolor=CARD
        )
    for name, x, y, above in _labels(frame, axis):
        right = x > middle and len(frame) > 1
        axis.annotate(
            _short(name, 18),
            (x, y),
            xytext=(-7 if right else 7, 5 if above else -5),
            textcoords="offset points",
            ha="right" if right else "left",
            va="bottom" if above else "top",
            fontsize=8,
        )
    axis.set(xlabel="CPU-minutes of a cell (fit and predict)", ylabel=label)
    axis.margins(x=0.18)
    return figure


def _labels(frame: pd.DataFrame, axis: Axes) -> list[tuple[str, float, float, bool]]:
    """Names at their points, in turn above and below where points lie close."""
    order = frame.sort_values("mean")
    return [(str(r.Index), r.cpu_minutes, r.mean, i % 2 == 0) for i, r in enumerate(order.itertuples())]


@_drawn
def distance(
    counts: np.ndarray, errors: Mapping[str, np.ndarray], edges: Sequence[float], colour: Mapping[str, str], label: str
) -> Figure | None:
    """Error in bins of distance to the nearest training molecule, a line a method, with the labels in each bin."""
    shown = [b for b in range(len(counts)) if any(np.isfinite(e[b]) for e in errors.values())]
    if len(shown) < 2:
        return None
    figure = Figure(figsize=(_WIDTH, 3.2), layout="constrained")
    axis = figure.subplots()
    axis.grid(axis="y")
    for name, error in errors.items():
        axis.plot(
            range(len(counts)), error, marker="o", markersize=4, linewidth=1.6, color=colour[name], label=_short(name)
        )
    words = [f"{a:.1f} to {b:.1f}\n{n:,}" for a, b, n in zip(edges, edges[1:], counts, strict=False)]
    axis.set_xticks(range(len(counts)), words)
    axis.set_xlim(min(shown) - 0.3, max(shown) + 0.3)
    axis.set_ylim(bottom=0)
    axis.set(xlabel="Tanimoto distance to the nearest training molecule; labels in the bin", ylabel=label)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


@_drawn
def calibration(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], colour: Mapping[str, str]) -> Figure | None:
    """Observed share of ones against predicted probability, a line a method."""
    if not curves:
        return None
    figure = Figure(figsize=(_WIDTH, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.grid()
    axis.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
    for name, (p, share) in curves.items():
        axis.plot(p, share, marker="o", markersize=3.5, linewidth=1.5, color=colour[name], label=_short(name))
    axis.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        aspect="equal",
        xlabel="predicted probability",
        ylabel="observed share of 1",
    )
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure
