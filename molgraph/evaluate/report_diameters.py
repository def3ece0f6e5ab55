"""Plot a histogram of the diameters of molecules with the number of layers of a graph network."""

from __future__ import annotations

from io import BytesIO

import numpy as np


def diameters(spans: np.ndarray, layers: int | None, form: str) -> bytes:
    """A histogram as ``png`` or ``svg``; ``layers``: where the network's reach ends."""
    from matplotlib.figure import Figure  # which few runs need

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.hist(spans, bins=np.arange(spans.max() + 2) - 0.5, color="#4878a8")
    axes.set(xlabel="diameter (bonds)", ylabel="molecules")
    if layers is not None:
        axes.axvline(layers + 0.5, color="#c44e52", label=f"{layers} layers")
        axes.legend(frameon=False)
    figure.savefig(out := BytesIO(), format=form)
    return out.getvalue()
