"""Draw the report's figures as SVG, without a display."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn import metrics as sk

from molgraph.evaluate.measures import Undefined
from molgraph.evaluate.metrics import evaluate_metric, get_metric

# Okabe and Ito's colours: told apart by colour-blind readers and in grey print
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
INK, GRID = "#1d2733", "#e3e7ec"
MANY = 1_500  # points from which a scatter becomes a picture inside the SVG
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "molgraph",
    "text.parse_math": False,  # a target may be called "$x"
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": "#8a94a1",
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
}


def _drawn(make: Callable[..., Figure | None]) -> Callable[..., str]:
    """Draw with the house style and return SVG text; empty where there is nothing to draw."""

    @wraps(make)
    def draw(*args: Any, **kwargs: Any) -> str:
        with rc_context(STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's fonts are used, not ours
            warnings.filterwarnings("ignore", message="constrained_layout not applied")  # long names in a small figure
            figure = make(*args, **kwargs)
            if figure is None:
                return ""
            out = io.StringIO()
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, dpi=150)
        text = out.getvalue()
        return text[text.index("<svg") :]

    return draw


def _panels(n: int, height: float = 3.9) -> tuple[Figure, list[Axes]]:
    columns = min(n, 3)
    rows = -(-n // columns)
    figure = Figure(figsize=(3.75 * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for spare in axes[n:]:
        spare.set_axis_off()
    return figure, axes


@_drawn
def parity(y: np.ndarray, predicted: Mapping[str, np.ndarray], name: str) -> Figure | None:
    """Predicted against measured values, a panel a method on the same equal axes; then all methods' errors.

    Args:
        y: measured values, float [n].
        predicted: method's name to values, float [n].
        name: of the target, with its unit where it has one.
    """
    finite = np.isfinite(y) & np.any([np.isfinite(p) for p in predicted.values()], axis=0)
    if not finite.any():
        return None
    everything = np.concatenate([y[finite], *(p[finite] for p in predicted.values())])
    low, high = np.nanmin(everything), np.nanmax(everything)
    margin = 0.04 * (high - low) or 0.5
    ends = (low - margin, high + margin)
    figure, axes = _panels(len(predicted) + 1)
    share = axes[len(predicted)]
    for i, (axis, (method, p)) in enumerate(zip(axes, predicted.items(), strict=False)):
        use = np.isfinite(y) & np.isfinite(p)
        axis.plot(ends, ends, color="#8a94a1", linewidth=1, linestyle=(0, (4, 3)))
        size = float(np.clip(4000 / max(use.sum(), 1), 4, 26))
        colour = COLOURS[i % len(COLOURS)]
        axis.scatter(y[use], p[use], s=size, c=colour, alpha=0.55, linewidths=0, rasterized=bool(use.sum() > MANY))
        said = [
            f"{get_metric(m).label} {evaluate_metric(get_metric(m), y[use], p[use])[0]:.3g}" for m in ("rmse", "r2")
        ]
        axis.set_title(method)
        axis.text(0.03, 0.97, "\n".join(said), transform=axis.transAxes, va="top")
        axis.set(xlim=ends, ylim=ends, aspect="equal", xlabel=f"measured {name}", ylabel=f"predicted {name}")
        error = np.sort(np.abs(p[use] - y[use]))
        share.step(error, np.arange(1, len(error) + 1) / max(len(error), 1), where="post", color=colour, label=method)
    share.set(title="Errors", xlabel=f"absolute error of {name}", ylabel="share of molecules", ylim=(0, 1.02))
    share.set_xlim(left=0)
    share.legend(loc="lower right")
    return figure


@_drawn
def classifier(y: np.ndarray, predicted: Mapping[str, np.ndarray], name: str) -> Figure | None:
    """ROC curve, precision-recall curve and calibration of probabilities of a binary target, all methods in each."""
    measured = np.isfinite(y)
    if len(np.unique(y[measured])) < 2:
        return None
    figure, (roc, prc, cal) = _panels(3)
    roc.plot([0, 1], [0, 1], color="#8a94a1", linewidth=1, linestyle=(0, (4, 3)))
    cal.plot([0, 1], [0, 1], color="#8a94a1", linewidth=1, linestyle=(0, (4, 3)))
    prc.axhline(y[measured].mean(), color="#8a94a1", linewidth=1, linestyle=(0, (4, 3)))
    for i, (method, p) in enumerate(predicted.items()):
        use = measured & np.isfinite(p)
        try:
            areas = [get_metric(m).function(y[use], p[use]) for m in ("roc_auc", "prc_auc")]
        except (Undefined, ValueError):  # no row, or one class alone
            continue
        look = {"color": COLOURS[i % len(COLOURS)], "linewidth": 1.8}
        x, t, _ = sk.roc_curve(y[use], p[use])
        roc.plot(x, t, label=f"{method} {areas[0]:.3f}", **look)
        precision, recall, _ = sk.precision_recall_curve(y[use], p[use])
        prc.step(recall, precision, where="post", label=f"{method} {areas[1]:.3f}", **look)
        cal.plot(*_reliability(y[use], p[use]), marker="o", markersize=4, label=method, **look)
    roc.set(title="ROC", xlabel="false positive rate", ylabel="true positive rate")
    prc.set(title="Precision and recall", xlabel="recall", ylabel="precision")
    cal.set(title="Calibration", xlabel=f"predicted P({name} = 1)", ylabel="observed share of 1")
    for axis in (roc, prc, cal):
        axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axis.legend(loc="lower right" if axis is roc else "lower left" if axis is prc else "upper left", fontsize=9)
    return figure


def _reliability(y: np.ndarray, p: np.ndarray, bins: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Mean probability and share of ones in groups of equal size."""
    groups = [g for g in np.array_split(np.argsort(p, kind="stable"), min(bins, max(len(p) // 5, 1))) if len(g)]
    return np.array([p[g].mean() for g in groups]), np.array([y[g].mean() for g in groups])


@_drawn
def confusion(y: np.ndarray, predicted: Mapping[str, np.ndarray], classes: tuple[str, ...]) -> Figure | None:
    """Measured against most probable class, a panel a method; each row's shares sum to one."""
    if not np.isfinite(y).any():
        return None
    names = [name if len(name) <= 20 else name[:19] + "\N{HORIZONTAL ELLIPSIS}" for name in classes]
    figure, axes = _panels(len(predicted))
    for axis, (method, p) in zip(axes, predicted.items(), strict=False):
        use = np.isfinite(y) & np.isfinite(p).all(axis=1)
        counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
        np.add.at(counts, (y[use].astype(np.int64), p[use].argmax(axis=1)), 1)
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        axis.imshow(share, cmap="Blues", vmin=0, vmax=1)
        axis.grid(False)
        for i, j in np.ndindex(counts.shape) if len(classes) <= 12 else ():
            axis.text(j, i, str(counts[i, j]), ha="center", va="center", color="white" if share[i, j] > 0.55 else INK)
        ticks = range(len(classes))
        axis.set(title=method, xlabel="predicted", ylabel="measured", xticks=ticks, yticks=ticks)
        axis.set_xticklabels(names, rotation=30, ha="right")
        axis.set_yticklabels(names)
    return figure


@_drawn
def learning(curves: pd.DataFrame) -> Figure | None:
    """Losses over the epochs; the lowest validation loss is marked, for its weights were kept.

    Args:
        curves: a row an epoch: ``epoch``, and columns whose names end in ``loss``; ``member`` where there are several.
    """
    losses = [c for c in curves.columns if str(c).endswith("loss") and curves[c].notna().any()]
    if not losses or "epoch" not in curves.columns:
        return None
    figure, (axis,) = _panels(1)
    figure.set_size_inches(7.5, 3.2)
    members = [part for _, part in curves.groupby("member")] if "member" in curves.columns else [curves]
    for i, column in enumerate(losses):
        label = {"train_loss": "training", "valid_loss": "validation"}.get(str(column), str(column))
        for k, part in enumerate(members):
            axis.plot(
                part["epoch"],
                part[column],
                color=COLOURS[i % len(COLOURS)],
                linewidth=1.8 if len(members) == 1 else 1.1,
                alpha=1.0 if len(members) == 1 else 0.7,
                label=label if k == 0 else None,
            )
            if column == "valid_loss" and part[column].notna().any():
                best = part.loc[part[column].idxmin()]
                axis.plot(best["epoch"], best[column], marker="o", markersize=6, color=COLOURS[i % len(COLOURS)])
                if len(members) == 1:
                    words = f"epoch {int(best['epoch'])} kept"
                    side = "right" if 2 * best["epoch"] > part["epoch"].max() else "left"  # away from the legend
                    at = (best["epoch"], best[column])
                    axis.annotate(words, at, xytext=(0, 8), textcoords="offset points", ha=side)
    axis.set(xlabel="epoch", ylabel="loss")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure
