"""Plot what studies of networks measure: similarity of layers, curves over a setting, and surfaces of the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from molgraph.evaluate.report_style import COLOURS, DASHED, save


def similarity_map(values: np.ndarray, rows: Sequence[str], columns: Sequence[str], label: str, form: str) -> bytes:
    """Numbers of 0 to 1, float [rows, columns], as squares with their figures."""
    figure = Figure(figsize=(2 + 0.6 * len(columns), 1.2 + 0.5 * len(rows)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(values, vmin=0, vmax=1, cmap="cividis")
    for (i, j), value in np.ndenumerate(values):
        colour = "black" if value > 0.6 else "white"
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=7)
    axes.set(yticks=np.arange(len(rows)), yticklabels=rows, xticks=np.arange(len(columns)))
    axes.set_xticklabels(columns, rotation=45, ha="right")
    figure.colorbar(image, label=label)
    return save(figure, form)


def setting_lines(
    at: Sequence[float],
    curves: Mapping[str, np.ndarray],
    labels: tuple[str, str],
    form: str,
    *,
    log: tuple[bool, bool] = (True, False),
    line: float | None = None,
) -> bytes:
    """A line for each curve over a setting, float [settings], or its mean and range, float [repeats, settings].

    Args:
        at: the settings.
        curves: by name.
        labels: of both axes.
        form: ``png`` or ``svg``.
        log: whether each axis is logarithmic.
        line: a setting that is marked by a dashed line.
    """
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for colour, (words, values) in zip(COLOURS, curves.items(), strict=False):
        every = np.atleast_2d(np.where(np.isfinite(values), values, np.nan))
        axes.plot(at, every.mean(axis=0), color=colour, marker="o", markersize=4, label=words)
        if len(every) > 1:
            axes.fill_between(at, every.min(axis=0), every.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    if line is not None:
        axes.axvline(line, **DASHED)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.set(xscale="log" if log[0] else "linear", yscale="log" if log[1] else "linear")
    figure.legend(loc="outside upper center", ncols=4)
    return save(figure, form)


def surface(at: np.ndarray, loss: np.ndarray, form: str) -> bytes:
    """Contours of the loss, float [n, n], over steps along two directions, float [n], with the model in the middle."""
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.subplots()
    shown = np.log10(np.maximum(loss, 1e-12))
    filled = axes.contourf(at, at, shown, 24, cmap="cividis")
    axes.contour(at, at, shown, 12, colors="white", linewidths=0.4)
    axes.plot(0, 0, "o", color=COLOURS[1], markersize=5)
    axes.set(xlabel="first direction", ylabel="second direction", aspect="equal")
    figure.colorbar(filled, label="log10 of the loss")
    return save(figure, form)
