"""Draw the splits of a table side by side, as a picture and as a self-contained page."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from molgraph.base.version import __version__
from molgraph.data.splits.split import PARTS
from molgraph.evaluate.report_plots import COLOURS, INK, STYLE
from molgraph.evaluate.shift import Shift
from molgraph.evaluate.split_summary import FAR, NEAR, SHIFTED, SplitXray

SOFT, PALE, TEST, WARN = "#55606e", "#c3cad3", COLOURS[0], COLOURS[1]
_ROW, _HEAD = 1.12, 1.0  # inches of a split's row, and of what stands above and below
_BINS = np.linspace(0, 1, 41)
_SHOWN = 30  # leaks on a page


def draw_xray(parts: Sequence[SplitXray], targets: Sequence[str], title: str, form: str = "png") -> bytes:
    """The picture: a row a split; its sizes, how far its test lies from training, and how its labels shift.

    Args:
        parts: the splits.
        targets: names of the table's targets.
        title: what stands above.
        form: ``png`` or ``svg``.
    """
    parts = [part for part in parts if part.split is not None and part.distance is not None]
    distances = [part.distance for part in parts if part.distance is not None and len(part.distance)]
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(11, _HEAD + _ROW * len(parts)))
        width = (2.5, 4.4, 3.1) if targets else (2.5, 7.5)
        grid = figure.add_gridspec(
            len(parts), len(width), width_ratios=width, hspace=0.32, wspace=0.08, left=0.015, right=0.985,
            top=1 - 0.62 / figure.get_figheight(), bottom=0.48 / figure.get_figheight(),
        )  # fmt: skip
        height = max((np.histogram(d, _BINS)[0].max() / len(d) for d in distances), default=1)
        ends = _ends(parts)
        for i, part in enumerate(parts):
            last = i == len(parts) - 1
            _tell(figure.add_subplot(grid[i, 0]), part)
            _distances(figure.add_subplot(grid[i, 1]), part, height, last)
            if targets:
                _labels(figure.add_subplot(grid[i, 2]), part, ends, last)
        figure.text(0.015, 1 - 0.47 / figure.get_figheight(), "Rows: train / valid / test", fontsize=8.5, color=SOFT)
        top = figure.axes[1].get_position()
        figure.text(0.015, 1 - 0.27 / figure.get_figheight(), _short(title, 26),
                    fontsize=12, fontweight="bold")  # fmt: skip
        figure.text(top.x0, 1 - 0.27 / figure.get_figheight(), "Distance of tested molecules to training")
        if targets:
            one = f"Labels of {_short(targets[0], 24)}" if len(targets) == 1 else f"Shift of {len(targets)} targets"
            figure.text(figure.axes[2].get_position().x0, 1 - 0.27 / figure.get_figheight(), one)
        out = io.BytesIO()
        meta: dict[str, Any] = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        figure.savefig(out, format=form, dpi=150, metadata=meta)
    content = out.getvalue()
    return content[content.index(b"<svg") :] if form == "svg" else content


def xray_html(
    parts: Sequence[SplitXray],
    rows: Sequence[Mapping[str, Any]],
    shifts: Sequence[Mapping[str, Any]],
    picture: bytes,
    **about: Any,
) -> str:
    """The page: the picture, what each split asks, a table of figures, shifts of labels and the leaking pairs.

    Args:
        parts: the splits.
        rows: the figures of each.
        shifts: those of each split and target.
        picture: the splits drawn, as ``svg``.
        about: ``title``, ``counts`` of rows in words, ``targets`` and ``sampled``, as the template has them.
    """
    text = files("molgraph.evaluate").joinpath("xray.html.jinja").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(text)
    leaks = [
        {"name": p.name, "n": len(p.split.leaks), "pairs": p.split.leaks[:_SHOWN]}
        for p in parts
        if p.split is not None and p.split.leaks
    ]
    page = template.render(
        rows=rows, shifts=[s for s in shifts if abs(s["shift"]) >= SHIFTED or len(about["targets"]) == 1], leaks=leaks,
        picture=base64.b64encode(picture).decode(), near=NEAR, far=FAR, parts=PARTS, shifted=SHIFTED,
        version=__version__, number=_number, **about,
    )  # fmt: skip
    return page.encode("utf-8", "replace").decode()


def _tell(axis: Axes, part: SplitXray) -> None:
    """The split's name, sizes and faults."""
    axis.set_axis_off()
    assert part.split is not None
    sizes = " / ".join(f"{part.split.sizes[name]:,}" for name in PARTS)
    groups = "" if part.split.groups is None else f" \N{MIDDLE DOT} {part.split.groups:,} groups"
    axis.text(0, 0.92, _short(part.name, 30), fontweight="bold", va="top", transform=axis.transAxes)
    axis.text(0, 0.62, sizes + groups, fontsize=8.5, color=SOFT, va="top", transform=axis.transAxes)
    faults = [f"{part.leaking:,} tested row{'s leak' if part.leaking > 1 else ' leaks'}"] if part.leaking else []
    lost = (part.one_class or {}).get("test", [])
    faults += [f"one class in {len(lost)} target{'s' if len(lost) > 1 else ''}"] if lost else []
    axis.text(0, 0.34, "\n".join(faults), fontsize=8.5, color=WARN, va="top", transform=axis.transAxes)


def _distances(axis: Axes, part: SplitXray, height: float, last: bool) -> None:
    assert part.distance is not None
    n = max(len(part.distance), 1)
    axis.axvspan(0, NEAR, color="#eef4f8", linewidth=0, zorder=0)
    axis.axvspan(FAR, 1, color="#faf1ea", linewidth=0, zorder=0)
    axis.hist(part.distance, _BINS, weights=np.full(len(part.distance), 1 / n), color=TEST)
    if len(part.distance):
        middle = float(np.median(part.distance))
        axis.axvline(middle, color=INK, linewidth=1.2)
        side, gap = ("left", 5) if middle < 0.7 else ("right", -5)
        axis.annotate(f"median {middle:.2f}", (middle, 1), (gap, -3), xycoords=("data", "axes fraction"),
                      textcoords="offset points", va="top", ha=side, fontsize=8.5)  # fmt: skip
        near, far = (part.distance <= NEAR).mean(), (part.distance >= FAR).mean()
        look: dict[str, Any] = {"transform": axis.transAxes, "va": "top", "fontsize": 8.5, "color": SOFT}
        axis.text(0.01, 0.97, f"{near:.0%} close", ha="left", **look)
        axis.text(0.99, 0.97, f"{far:.0%} unlike", ha="right", **look)
    _frame(axis, last, "1 - Tanimoto to the nearest training molecule")
    axis.set(xlim=(0, 1), ylim=(0, height * 1.38))
    axis.set_xticks([0, NEAR, FAR, 1])


def _labels(axis: Axes, part: SplitXray, ends: tuple[float, float], last: bool) -> None:
    shifts = part.shifts
    if len(shifts) > 1:
        _many(axis, shifts, ends, last)
    elif shifts and shifts[0].kind in ("binary", "multiclass"):
        _rates(axis, shifts[0], ends, last)
    elif shifts:
        _boxes(axis, shifts[0], ends, last)


def _many(axis: Axes, shifts: tuple[Shift, ...], ends: tuple[float, float], last: bool) -> None:
    """A dot a target: test less training mean, in standard deviations."""
    sizes = np.array([s.size for s in shifts])
    known = np.isfinite(sizes)
    heights = (np.arange(len(sizes)) * 0.618034) % 1  # spread without chance
    size = float(np.clip(900 / len(sizes), 4, 24))
    colours = np.where(np.abs(sizes) >= SHIFTED, WARN, TEST)
    axis.axvline(0, color=SOFT, linewidth=1)
    axis.scatter(sizes[known], heights[known], s=size, c=colours[known], alpha=0.7, linewidths=0)
    if (~known).any():
        axis.text(0.99, 0.03, f"{(~known).sum()} without", transform=axis.transAxes, ha="right", fontsize=8, color=SOFT)
    _frame(axis, last, "test - training mean, in standard deviations")
    axis.set(xlim=ends, ylim=(-0.15, 1.15))


def _rates(axis: Axes, shift: Shift, ends: tuple[float, float], last: bool) -> None:
    for k, name in enumerate(PARTS):
        value = shift.level[name]
        if not np.isfinite(value):
            continue
        axis.barh(-k, value, height=0.62, color=TEST if name == "test" else PALE)
        axis.text(value + 0.012 * ends[1], -k, f"{value:.0%}", va="center", fontsize=8.5)
        axis.text(-0.012 * ends[1], -k, name, va="center", ha="right", fontsize=8.5, color=SOFT)
    what = "share of ones" if shift.kind == "binary" else "share of the commonest class"
    _frame(axis, last, what)
    axis.set(xlim=(-0.14 * ends[1], ends[1]), ylim=(-2.6, 0.6))
    axis.set_xticks([t for t in axis.get_xticks() if 0 <= t <= min(ends[1], 1)])


def _boxes(axis: Axes, shift: Shift, ends: tuple[float, float], last: bool) -> None:
    """From the 5th to the 95th percentile thin, the middle half thick, the median a line."""
    room = 0.14 * (ends[1] - ends[0])
    for k, name in enumerate(PARTS):
        if name not in shift.quantiles:
            continue
        low, lower, middle, upper, high = shift.quantiles[name]
        colour = TEST if name == "test" else PALE
        axis.plot([low, high], [-k, -k], color=colour, linewidth=2, solid_capstyle="butt")
        axis.barh(-k, upper - lower, left=lower, height=0.5, color=colour)
        axis.plot([middle, middle], [-k - 0.25, -k + 0.25], color=INK, linewidth=1.5)
        axis.text(ends[0] - 0.1 * room, -k, name, va="center", ha="right", fontsize=8.5, color=SOFT)
    _frame(axis, last, "5%, 25%, median, 75% and 95% of the labels")
    axis.set(xlim=(ends[0] - room, ends[1]), ylim=(-2.6, 0.6))


def _ends(parts: list[SplitXray]) -> tuple[float, float]:
    """The ends of the label panels, alike for all splits."""
    shifts = [s for part in parts for s in part.shifts]
    if parts and len(parts[0].shifts) > 1:
        sizes = [abs(s.size) for s in shifts if np.isfinite(s.size)]
        edge = 1.1 * max([*sizes, SHIFTED])
        return -edge, edge
    if shifts and shifts[0].kind in ("binary", "multiclass"):
        return 0.0, 1.15 * max([v for s in shifts for v in s.level.values() if np.isfinite(v)], default=1.0) + 1e-9
    ends = [v for s in shifts for q in s.quantiles.values() for v in (q[0], q[-1])]
    margin = 0.04 * (max(ends, default=1) - min(ends, default=0)) or 0.5
    return min(ends, default=0.0) - margin, max(ends, default=1.0) + margin


def _frame(axis: Axes, last: bool, label: str) -> None:
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.grid(False)
    axis.tick_params(labelsize=8.5, labelbottom=last, length=3)
    if last:
        axis.set_xlabel(label, fontsize=8.5)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _number(value: Any, digits: int = 2) -> str:
    """A figure of the page's tables; a dash for none."""
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return "\N{EN DASH}"
    return f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}"
