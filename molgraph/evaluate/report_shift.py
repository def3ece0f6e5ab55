"""Draw how likelihood and calibration of several methods change from near to far molecules."""

from __future__ import annotations

from io import BytesIO

import pandas as pd


def draw_shift(frame: pd.DataFrame, form: str) -> bytes:
    """Likelihood and calibration of each method from near to far, as ``png`` or ``svg``."""
    from matplotlib.figure import Figure  # which few runs need

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    gauges = [("nll", "negative log-likelihood (nats)"), ("ece", "calibration error")]
    if "ece" not in frame:
        gauges[1] = ("covered", "share within the interval of 90%")
    for axes, (gauge, label) in zip(figure.subplots(1, 2), gauges, strict=True):
        for method in frame["method"].unique():
            rows = frame[(frame["method"] == method) & (frame["bin"] != "all")]
            axes.plot(rows["bin"], rows[gauge], marker="o", markersize=4, label=method)
        axes.set(ylabel=label, xlabel="similarity to training")
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(out := BytesIO(), format=form)
    return out.getvalue()
