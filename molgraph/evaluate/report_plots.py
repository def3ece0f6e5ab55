"""Draw the figures of a training's report as SVG, without a display."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn import metrics as sk

from molgraph.evaluate.measures import Undefined
from molgraph.evaluate.metrics import evaluate_metric, get_metric
from molgraph.evaluate.report_style import COLOURS, DASHED, drawn, reliability, short

MANY = 1_500  # points from which a scatter becomes a picture inside the SVG


def _panels(n: int) -> tuple[Figure, list[Axes]]:
    columns = min(n, 3)
    rows = -(-n // columns)
    figure = Figure(figsize=(3.75 * columns, 3.9 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis in axes[:n]:
        axis.grid()
    for spare in axes[n:]:
        spare.set_axis_off()
    return figure, axes


@drawn
def parity(y: np.ndarray, predicted: Mapping[str, np.ndarray], name: str) -> Figure | None:
    """Predicted against measured values, a panel a method on the same equal axes; then all methods' errors."""
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
        axis.plot(ends, ends, **DASHED)
        size = float(np.clip(4000 / max(use.sum(), 1), 4, 26))
        colour = COLOURS[i % len(COLOURS)]
        axis.scatter(y[use], p[use], s=size, c=colour, alpha=0.55, linewidths=0, rasterized=bool(use.sum() > MANY))
        judges = [get_metric(m) for m in ("rmse", "r2")]
        lines = [f"{m.label} {evaluate_metric(m, y[use], p[use])[0]:.3g}" for m in judges]
        axis.text(0.03, 0.97, "\n".join(lines), transform=axis.transAxes, va="top")
        axis.set(xlim=ends, ylim=ends, aspect="equal", xlabel=f"measured {name}", ylabel=f"predicted {name}")
        axis.set_title(method)
        error = np.sort(np.abs(p[use] - y[use]))
        share.step(error, np.arange(1, len(error) + 1) / max(len(error), 1), where="post", color=colour, label=method)
    share.set(title="Errors", xlabel=f"absolute error of {name}", ylabel="share of molecules", ylim=(0, 1.02))
    share.set_xlim(left=0)
    share.legend(loc="lower right")
    return figure


@drawn
def classifier(y: np.ndarray, predicted: Mapping[str, np.ndarray], name: str) -> Figure | None:
    """ROC curve, precision-recall curve and calibration of probabilities of a binary target, all methods in each."""
    measured = np.isfinite(y)
    if len(np.unique(y[measured])) < 2:
        return None
    figure, (roc, prc, cal) = _panels(3)
    roc.plot([0, 1], [0, 1], **DASHED)
    cal.plot([0, 1], [0, 1], **DASHED)
    prc.axhline(y[measured].mean(), **DASHED)
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
        cal.plot(*reliability(y, p), marker="o", markersize=4, label=method, **look)
    roc.set(title="ROC", xlabel="false positive rate", ylabel="true positive rate")
    prc.set(title="Precision and recall", xlabel="recall", ylabel="precision")
    cal.set(title="Calibration", xlabel=f"predicted P({name} = 1)", ylabel="observed share of 1")
    for axis, corner in ((roc, "lower right"), (prc, "lower left"), (cal, "upper left")):
        axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axis.legend(loc=corner)
    return figure


@drawn
def confusion(y: np.ndarray, predicted: Mapping[str, np.ndarray], classes: tuple[str, ...]) -> Figure | None:
    """Measured against most probable class, a panel a method; each row's shares sum to one."""
    if not np.isfinite(y).any():
        return None
    names, ticks = [short(name, 20) for name in classes], range(len(classes))
    figure, axes = _panels(len(predicted))
    for axis, (method, p) in zip(axes, predicted.items(), strict=False):
        use = np.isfinite(y) & np.isfinite(p).all(axis=1)
        counts = sk.confusion_matrix(y[use].astype(int), p[use].argmax(axis=1), labels=ticks) if use.any() else None
        counts = np.zeros((len(classes), len(classes)), dtype=int) if counts is None else counts
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        axis.imshow(share, cmap="Blues", vmin=0, vmax=1)
        axis.grid(False)
        for i, j in np.ndindex(counts.shape) if len(classes) <= 12 else ():
            colour = "white" if share[i, j] > 0.55 else "black"  # on the map's own ground
            axis.text(j, i, str(counts[i, j]), ha="center", va="center", color=colour)
        axis.set(title=method, xlabel="predicted", ylabel="measured")
        axis.set_xticks(ticks, names, rotation=30, ha="right")
        axis.set_yticks(ticks, names)
    return figure


@drawn
def learning(curves: pd.DataFrame) -> Figure | None:
    """Losses over the epochs (of each ``member``); the lowest of validation is marked, for its weights were kept."""
    losses = [c for c in curves.columns if str(c).endswith("loss") and curves[c].notna().any()]
    if not losses or "epoch" not in curves.columns:
        return None
    figure, (axis,) = _panels(1)
    figure.set_size_inches(7.5, 3.2)
    members = [part for _, part in curves.groupby("member")] if "member" in curves.columns else [curves]
    alone = len(members) == 1
    for colour, column in zip(np.resize(COLOURS, len(losses)), losses, strict=True):
        label = {"train_loss": "training", "valid_loss": "validation"}.get(str(column), str(column))
        look = {"color": colour, "linewidth": 1.8 if alone else 1.1, "alpha": 1.0 if alone else 0.7}
        for k, part in enumerate(members):
            axis.plot(part["epoch"], part[column], label=label if k == 0 else None, **look)
            if column != "valid_loss" or not part[column].notna().any():
                continue
            best = part.loc[part[column].idxmin()]
            mark = f"epoch {int(best['epoch'])} kept" if alone else None  # in the legend, where no curve is
            axis.plot(best["epoch"], best[column], "o", markersize=6, color=colour, label=mark, zorder=3)
    axis.set(xlabel="epoch", ylabel="loss")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure
