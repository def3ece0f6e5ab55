"""Draw the splits of a table side by side, as a picture and as a self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from molgraph.base.printable import count
from molgraph.data.splits.split import PARTS
from molgraph.evaluate.report_style import COLOURS, INK, SOFT, STYLE, drawn, render, save, short
from molgraph.evaluate.split_summary import FAR, NEAR, SHIFTED, Shift, SplitXray

PALE, TEST, WARN = "#c3cad3", COLOURS[0], COLOURS[1]
_ROW, _HEAD = 1.12, 1.0  # inches of a split's row, and of the lines above and below
_BINS = np.linspace(0, 1, 41)
_SHOWN = 30  # leaks on a page
_SMALL: dict[str, Any] = {"fontsize": 8.5, "color": SOFT}


def draw_xray(parts: Sequence[SplitXray], targets: Sequence[str], title: str, form: str = "png") -> bytes:
    """The picture as ``png`` or ``svg``; see ``xray_figure``."""
    with rc_context(STYLE):
        return save(xray_figure(parts, targets, title), form)


def xray_html(parts: Sequence[SplitXray], shifts: Sequence[Mapping[str, Any]], picture: str, **about: Any) -> str:
    """The page: the picture under its heading, the question of each split, a table of figures, shifts and leaks.

    ``about`` has ``title``, ``rows`` of figures, ``counts`` of rows in words, ``targets`` and ``sampled``.
    """
    pairs = [(part.name, part.split.leaks) for part in parts if part.split is not None and part.split.leaks]
    return render(
        "xray.html.jinja",
        shifts=[s for s in shifts if abs(s["shift"]) >= SHIFTED or len(about["targets"]) == 1],
        leaks=[{"name": name, "n": len(leaks), "pairs": leaks[:_SHOWN]} for name, leaks in pairs],
        picture=drawn(xray_figure)(parts, about["targets"], picture),
        near=NEAR,
        far=FAR,
        parts=PARTS,
        shifted=SHIFTED,
        number=_number,
        **about,
    )


def xray_figure(parts: Sequence[SplitXray], targets: Sequence[str], title: str) -> Figure:
    """A row a split: its sizes, how far its test lies from training, and how its labels shift."""
    shown = [(part, part.distance) for part in parts if part.split is not None and part.distance is not None]
    figure = Figure(figsize=(11, _HEAD + _ROW * len(shown)))
    inch = 1 / figure.get_figheight()
    width = (2.5, 4.4, 3.1) if targets else (2.5, 7.5)
    grid = figure.add_gridspec(
        len(shown), len(width), width_ratios=width, hspace=0.32, wspace=0.08, left=0.015, right=0.985,
        top=1 - 0.62 * inch, bottom=0.48 * inch,
    )  # fmt: skip
    axes = grid.subplots(squeeze=False)
    height = max((np.histogram(d, _BINS)[0].max() / len(d) for _, d in shown if len(d)), default=1)
    ends = _ends([part for part, _ in shown])
    for i, (row, (part, distance)) in enumerate(zip(axes, shown, strict=True)):
        last = i == len(shown) - 1
        _tell(row[0], part)
        _distances(row[1], distance, height)
        if targets and part.shifts:
            labels = part.shifts[0].kind in ("binary", "multiclass")
            draw = _many if len(part.shifts) > 1 else _rates if labels else _boxes
            draw(row[2], part.shifts, ends)
        for axis in row[1:]:
            axis.set_yticks([])
            axis.spines["left"].set_visible(False)
            axis.tick_params(labelsize=8.5, labelbottom=last, length=3)
            axis.xaxis.label.set(fontsize=8.5, visible=last)
    top = 1 - 0.27 * inch
    figure.text(0.015, 1 - 0.47 * inch, "Rows: train / valid / test", **_SMALL)
    figure.text(0.015, top, short(title, 26), fontsize=12, fontweight="bold")
    figure.text(axes[0, 1].get_position().x0, top, "Distance of tested molecules to training")
    if targets:
        one = f"Labels of {short(targets[0], 24)}" if len(targets) == 1 else f"Shift of {len(targets)} targets"
        figure.text(axes[0, 2].get_position().x0, top, one)
    return figure


def _tell(axis: Axes, part: SplitXray) -> None:
    """The split's name, sizes and faults."""
    assert part.split is not None
    axis.set_axis_off()
    sizes = " / ".join(f"{part.split.sizes[name]:,}" for name in PARTS)
    groups = "" if part.split.groups is None else f" \N{MIDDLE DOT} {part.split.groups:,} groups"
    faults = [f"{count(part.leaking, 'tested row')} in training"] if part.leaking else []
    lost = len(part.one_class.get("test", []))
    faults += [f"one class in {count(lost, 'target')}"] if lost else []
    look: dict[str, Any] = {"va": "top", "transform": axis.transAxes}
    axis.text(0, 0.92, short(part.name, 30), fontweight="bold", **look)
    axis.text(0, 0.62, sizes + groups, **_SMALL, **look)
    axis.text(0, 0.34, "\n".join(faults), **_SMALL | {"color": WARN}, **look)


def _distances(axis: Axes, distance: np.ndarray, height: float) -> None:
    axis.axvspan(0, NEAR, color=TEST, alpha=0.07, linewidth=0, zorder=0)
    axis.axvspan(FAR, 1, color=WARN, alpha=0.08, linewidth=0, zorder=0)
    if len(distance):
        axis.hist(distance, _BINS, weights=np.full(len(distance), 1 / len(distance)), color=TEST)
        middle = float(np.median(distance))
        axis.axvline(middle, color=INK, linewidth=1.2)
        side, gap = ("left", 5) if middle < 0.7 else ("right", -5)
        axis.annotate(f"median {middle:.2f}", (middle, 1), (gap, -3), xycoords=("data", "axes fraction"),
                      textcoords="offset points", va="top", ha=side, fontsize=8.5)  # fmt: skip
        look: dict[str, Any] = {"transform": axis.transAxes, "va": "top", **_SMALL}
        axis.text(0.01, 0.97, f"{(distance <= NEAR).mean():.0%} close", ha="left", **look)
        axis.text(0.99, 0.97, f"{(distance >= FAR).mean():.0%} unlike", ha="right", **look)
    axis.set(xlim=(0, 1), ylim=(0, height * 1.38), xlabel="1 - Tanimoto to the nearest training molecule")
    axis.set_xticks([0, NEAR, FAR, 1])


def _many(axis: Axes, shifts: Sequence[Shift], ends: tuple[float, float]) -> None:
    """A dot a target: test less training mean, in standard deviations."""
    sizes = np.array([s.size for s in shifts])
    known = np.isfinite(sizes)
    heights = (np.arange(len(sizes)) * 0.618034) % 1  # spread without chance
    size = float(np.clip(900 / len(sizes), 4, 24))
    colours = np.where(np.abs(sizes) >= SHIFTED, WARN, TEST)
    axis.axvline(0, color=SOFT, linewidth=1)
    axis.scatter(sizes[known], heights[known], s=size, c=colours[known], alpha=0.7, linewidths=0)
    if (~known).any():
        axis.text(0.99, 0.03, f"{(~known).sum()} without", transform=axis.transAxes, ha="right", **_SMALL)
    axis.set(xlim=ends, ylim=(-0.15, 1.15), xlabel="test - training mean, in standard deviations")


def _rates(axis: Axes, shifts: Sequence[Shift], ends: tuple[float, float]) -> None:
    shift = shifts[0]
    for k, name in enumerate(PARTS):
        value = shift.level[name]
        if np.isfinite(value):
            axis.barh(-k, value, height=0.62, color=TEST if name == "test" else PALE)
            axis.text(value + 0.012 * ends[1], -k, f"{value:.0%}", va="center", fontsize=8.5)
            axis.text(-0.012 * ends[1], -k, name, va="center", ha="right", **_SMALL)
    what = "share of ones" if shift.kind == "binary" else "share of the commonest class"
    axis.set(xlim=(-0.14 * ends[1], ends[1]), ylim=(-2.6, 0.6), xlabel=what)
    axis.set_xticks([t for t in axis.get_xticks() if 0 <= t <= min(ends[1], 1)])


def _boxes(axis: Axes, shifts: Sequence[Shift], ends: tuple[float, float]) -> None:
    """From the 5th to the 95th percentile thin, the middle half thick, the median a line."""
    room = 0.14 * (ends[1] - ends[0])
    for k, name in enumerate(PARTS):
        if name in shifts[0].quantiles:
            low, lower, middle, upper, high = shifts[0].quantiles[name]
            colour = TEST if name == "test" else PALE
            axis.plot([low, high], [-k, -k], color=colour, linewidth=2, solid_capstyle="butt")
            axis.barh(-k, upper - lower, left=lower, height=0.5, color=colour)
            axis.plot([middle, middle], [-k - 0.25, -k + 0.25], color=INK, linewidth=1.5)
            axis.text(ends[0] - 0.1 * room, -k, name, va="center", ha="right", **_SMALL)
    what = "5%, 25%, median, 75% and 95% of the labels"
    axis.set(xlim=(ends[0] - room, ends[1]), ylim=(-2.6, 0.6), xlabel=what)


def _ends(parts: list[SplitXray]) -> tuple[float, float]:
    """The ends of the label panels, alike for all splits."""
    shifts = [s for part in parts for s in part.shifts]
    if parts and len(parts[0].shifts) > 1:
        edge = 1.1 * max([*(abs(s.size) for s in shifts if np.isfinite(s.size)), SHIFTED])
        return -edge, edge
    if shifts and shifts[0].kind in ("binary", "multiclass"):
        return 0.0, 1.15 * max([v for s in shifts for v in s.level.values() if np.isfinite(v)], default=1.0) + 1e-9
    ends = [v for s in shifts for q in s.quantiles.values() for v in (q[0], q[-1])]
    margin = 0.04 * (max(ends, default=1) - min(ends, default=0)) or 0.5
    return min(ends, default=0.0) - margin, max(ends, default=1.0) + margin


def _number(value: Any, digits: int = 2) -> str:
    """A figure of the page's tables; a dash for none."""
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return "\N{EN DASH}"
    return f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}"
