"""Draw the properties of samples beside the reference, and write the page of a generation report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from molgraph.chem.draw import draw_molecule
from molgraph.evaluate.generation.definitions import DEFINITIONS
from molgraph.evaluate.generation.sample import Sample
from molgraph.evaluate.report_style import COLOURS, SOFT, drawn, render

SHOWN = {"logp": "logP", "sa": "synthetic accessibility", "qed": "QED", "weight": "weight, g/mol"}
BINS = 40
DRAWN = 12  # molecules of each sample, as pictures


def page(samples: Mapping[str, Sample], reference: Sample | None, **about: Any) -> str:
    """The page as one HTML text that loads nothing from anywhere; ``about`` has the other values of its template."""
    picture = properties(samples, reference, key="properties")
    pictures = {name: molecules(sample) for name, sample in samples.items() if len(sample.readable)}
    return render("generation.html.jinja", picture=picture, pictures=pictures, definitions=DEFINITIONS, **about)


def molecules(sample: Sample) -> list[Markup]:
    """Pictures of the first different molecules that were drawn."""
    first = [*dict.fromkeys(sample.canonical)][:DRAWN]
    return [Markup(draw_molecule(text, width=220, height=150)) for text in first]  # which escapes what it was given


@drawn
def properties(sets: Mapping[str, Sample], reference: Sample | None) -> Figure | None:
    """A panel a property: the reference as a grey ground, each sample as a line over it."""
    samples = {name: sample for name, sample in sets.items() if len(sample.readable)}
    if not samples:
        return None
    figure = Figure(figsize=(11, 2.9), layout="constrained")
    axes = figure.subplots(1, len(SHOWN))
    for axis, (name, label) in zip(axes, SHOWN.items(), strict=True):
        known = None if reference is None else reference.property(name)
        everything = np.concatenate(
            [*([] if known is None else [known]), *(s.property(name) for s in samples.values())]
        )
        low, high = np.quantile(everything, [0.001, 0.999])
        edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
        if known is not None:
            axis.hist(known, edges, density=True, color=SOFT, alpha=0.3, label="reference")
        for colour, (row, sample) in zip(np.resize(COLOURS, len(samples)), samples.items(), strict=True):
            density = np.histogram(sample.property(name), edges, density=True)[0]
            axis.stairs(density, edges, color=colour, linewidth=1.6, label=row)
        axis.set(xlabel=label, yticks=[])
        axis.spines["left"].set_visible(False)
    axes[0].set_ylabel("density")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=6)
    return figure
