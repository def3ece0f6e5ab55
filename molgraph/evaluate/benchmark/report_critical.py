"""Draw a critical-difference diagram of mean ranks as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from molgraph.evaluate.benchmark.report_style import CARD, COLOURS, INK, SOFT, WIDTH, drawn, short

LANE, NAME = 0.14, 0.2  # heights of a group's line and of a name, in the axis' unit
LETTERS = 22  # of a name with its groups
GAP = 0.026  # what a line leaves free on each side of a method that it passes by, of the axis' reach


@drawn
def critical(
    position: pd.Series, groups: Mapping[str, Sequence[str]], label: str, width: float = float("nan")
) -> Figure | None:
    """A critical-difference diagram (Demsar 2006): methods on a line, and below it a line a group.

    Groups are not always neighbours on the axis. So a group is a line with a dot at each of its methods, and with a
    gap where it passes by another; where dots would lie on each other, the letters at the names say it.

    Args:
        position: by method, best first: its mean rank, or mean place.
        groups: letter -> methods that are not told apart, as ``group_members`` gives them.
        label: what the axis shows.
        width: length of the ruler that shows the critical difference; NaN for none.
    """
    k = len(position)
    if k < 2:
        return None
    lines = {letter: members for letter, members in groups.items() if len(members) > 1}
    lanes = -(-k // 2)
    figure = Figure(figsize=(WIDTH, 0.8 + NAME * lanes + LANE * len(lines)), layout="constrained")
    axis = figure.subplots()
    low, high = float(position.min()), float(position.max())
    reach = (high - low) or 1.0
    axis.set_xlim(low - 0.45 * reach, high + 0.45 * reach)
    base = -0.14 - LANE * len(lines)
    _names(axis, position, groups, base)
    for i, (letter, members) in enumerate(lines.items()):
        _group(axis, position, letter, members, -0.06 - LANE * (i + 0.5), GAP * reach)
    left, right = axis.get_xlim()
    if np.isfinite(width) and width < 1.8 * reach:
        start = left + 0.02 * (right - left)
        stop = start + width
        axis.plot([start, stop], [0.26, 0.26], color=COLOURS[1], linewidth=2, marker="|", markersize=6)
        axis.annotate(
            f"critical difference {width:.3g}", (start, 0.26), xytext=(0, 4), textcoords="offset points", fontsize=8
        )
    axis.set_ylim(base - NAME * (lanes + 0.2), 0.5)
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.spines["top"].set_visible(True)
    axis.spines["top"].set_position(("data", 0))
    axis.xaxis.set_ticks_position("top")
    axis.tick_params(axis="x", labelsize=8, pad=1)
    axis.set_yticks([])
    ticks = [t for t in axis.get_xticks() if max(low - 0.12 * reach, 1) <= t <= high + 0.12 * reach]
    axis.set_xticks(ticks)
    axis.set_title(label, fontsize=9, loc="left", color=SOFT)
    return figure


def _names(axis: Axes, position: pd.Series, groups: Mapping[str, Sequence[str]], base: float) -> None:
    """Each method's stem, down past all groups, and at its end its name with the letters of its groups."""
    k, (left, right) = len(position), axis.get_xlim()
    half = (k + 1) // 2
    for i, (name, x) in enumerate(position.items()):
        first = i < half
        y = base - NAME * ((i if first else k - 1 - i) + 0.5)
        edge = left + (0.02 if first else 0.98) * (right - left)
        axis.plot([x, x, edge], [0, y, y], color=SOFT, linewidth=0.6)
        axis.plot([x], [0], marker="o", markersize=3.5, color=INK)
        letters = "".join(letter for letter, members in groups.items() if name in members)
        more = f" ({letters})" if letters else ""
        axis.annotate(
            short(str(name), max(LETTERS - len(more), 8)) + more,
            (edge, y),
            xytext=(0, 1.5),
            textcoords="offset points",
            ha="left" if first else "right",
            va="bottom",
            fontsize=8.5,
        )


def _group(axis: Axes, position: pd.Series, letter: str, members: Sequence[str], y: float, gap: float) -> None:
    """A group's line and dots, with its letter before it."""
    inside = position[list(members)].to_numpy()
    for start, stop in _parts(inside, position.drop(list(members)).to_numpy(), gap):
        axis.plot([start, stop], [y, y], color=INK, linewidth=1.1, solid_capstyle="butt", label=f"line {letter}")
    axis.plot(inside, [y] * len(inside), linestyle="", marker="o", markersize=4.4, color=INK, label=f"dots {letter}")
    axis.annotate(
        letter,
        (inside.min(), y),
        xytext=(-5, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=7.5,
        color=SOFT,
        bbox={"facecolor": CARD, "edgecolor": "none", "pad": 0.6},
    )


def _parts(inside: np.ndarray, outside: np.ndarray, gap: float) -> Iterator[tuple[float, float]]:
    """The line from the first member to the last, less a gap at each other method on its way.

    Example:
        >>> list(_parts(np.array([1.0, 4.0]), np.array([2.0, 5.0]), 0.25))
        [(1.0, 1.75), (2.25, 4.0)]
    """
    start, end = float(inside.min()), float(inside.max())
    for x in sorted(float(x) for x in outside if start < x < end):
        if x - gap > start:
            yield start, x - gap
        start = max(start, x + gap)
    if end > start:
        yield start, end
