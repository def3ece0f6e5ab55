"""Draw the transforms of an oracle's parts over the scores that a search met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from molgraph.evaluate.report_style import COLOURS, SOFT, drawn

ACROSS = 3  # pictures in a row


class Curve(NamedTuple):
    """A transform of a part of an oracle.

    Args:
        label: the part's.
        words: the transform as it was written.
        x, y: float64 [m], values of the part, and what the transform makes of them.
        scores: float64 [n], what molecules scored.
    """

    label: str
    words: str
    x: np.ndarray
    y: np.ndarray
    scores: np.ndarray


@drawn
def transforms(curves: Sequence[Curve]) -> Figure | None:
    """Each transform as a line from 0 to 1, above the share of the molecules that scored so."""
    if not curves:
        return None
    rows = -(-len(curves) // ACROSS)
    figure = Figure(figsize=(7.2, 2.3 * rows), layout="constrained")
    axes = figure.subplots(rows, ACROSS, squeeze=False).ravel()
    for axis, curve in zip(axes, curves, strict=False):
        axis.grid()
        if len(curve.scores):
            within = (curve.scores >= curve.x[0]) & (curve.scores <= curve.x[-1])
            count, edges = np.histogram(curve.scores[within], bins=24, range=(curve.x[0], curve.x[-1]))
            width, share = edges[1] - edges[0], count / max(count.max(), 1)
            axis.bar(edges[:-1], share, width=width, align="edge", color=SOFT, alpha=0.35, linewidth=0)
        axis.plot(curve.x, curve.y, color=COLOURS[0], linewidth=1.8)
        axis.set(xlim=(curve.x[0], curve.x[-1]), ylim=(0, 1.04), yticks=(0, 0.5, 1), xlabel=curve.label)
        axis.set_title(curve.words, fontsize=9)
    for axis in axes[len(curves) :]:
        axis.set_visible(False)
    axes[0].set_ylabel("desirability")
    return figure
