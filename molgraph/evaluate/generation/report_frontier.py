"""Draw the quality of generators against their diversity, a curve a generator and a point a temperature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from molgraph.evaluate.report_style import COLOURS, STYLE, save

#: name, temperatures, diversity and quality [temperatures, 1 + halves], temperatures of the Pareto front
Curve = tuple[str, Sequence[float], np.ndarray, np.ndarray, Sequence[float]]


def draw_frontier(curves: Sequence[Curve], diversity: str, quality: str, form: str = "png") -> bytes:
    """The picture as ``png`` or ``svg``: filled points are on the Pareto front, bars are two standard deviations."""
    with rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.4), layout="constrained")
        axis = figure.subplots()
        axis.grid()
        for colour, (name, temperatures, x, y, front) in zip(np.resize(COLOURS, len(curves)), curves, strict=True):
            on = np.isin(temperatures, front)
            bars = [2 * np.nan_to_num(v[:, 1:].std(axis=1)) if v.shape[1] > 2 else None for v in (x, y)]
            axis.errorbar(x[:, 0], y[:, 0], bars[1], bars[0], color=colour, linewidth=1.6, elinewidth=0.7, label=name)
            axis.scatter(x[on, 0], y[on, 0], color=colour, s=26, zorder=3)
            axis.scatter(x[~on, 0], y[~on, 0], facecolor="white", edgecolor=colour, s=26, zorder=3)
        axis.set(xlabel=diversity, ylabel=quality)
        axis.margins(0.08)
        if len(curves) > 1:
            axis.legend(loc="best")
        else:
            axis.set_title(curves[0][0])
        for colour, (_, temperatures, x, y, _) in zip(np.resize(COLOURS, len(curves)), curves, strict=True):
            named = [0, len(temperatures) - 1, int(np.argmin(np.abs(np.array(temperatures) - 1)))]
            for i in dict.fromkeys(named):
                if np.isfinite([x[i, 0], y[i, 0]]).all():
                    place = (x[i, 0], y[i, 0])
                    axis.annotate(f"T {temperatures[i]:g}", place, (6, 5), textcoords="offset points", color=colour)
        return save(figure, form)
