"""Draw the properties of samples beside the reference, and write the page of a generation report."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from molgraph.evaluate.generation.embeddings import EMBEDDINGS
from molgraph.evaluate.generation.generation_report import GenerationReport, cell_text, direction
from molgraph.evaluate.report_style import COLOURS, SOFT, drawn, render

SHOWN = {"logp": "logP", "sa": "synthetic accessibility", "qed": "QED", "weight": "weight, g/mol"}
BINS = 40


def page(report: GenerationReport) -> str:
    """The report as one HTML text that loads nothing from anywhere."""
    told = [(row.name, report.matched(row)) for row in report.rows if row.kind == "sample"]
    rows = [
        (report.label(each), direction(each), [(row.kind, cell_text(row.values.get(each.name))) for row in report.rows])
        for each in report.measures
    ]
    return render(
        "generation.html.jinja",
        title=", ".join(report.samples),
        sentences=report.sentence.splitlines(),
        matched=[(name, list(found.items())) for name, found in told if found],
        names=[(row.name, row.kind, row.n) for row in report.rows],
        rows=rows,
        about=report.about,
        embedding=EMBEDDINGS[report.embedding].summary,
        picture=properties(report, key="properties"),
    )


@drawn
def properties(report: GenerationReport) -> Figure | None:
    """A panel a property: the reference as a grey ground, each sample as a line over it."""
    samples = {name: sample for name, sample in report.samples.items() if len(sample.readable)}
    if not samples:
        return None
    figure = Figure(figsize=(11, 2.9), layout="constrained")
    axes = figure.subplots(1, len(SHOWN))
    for axis, (name, label) in zip(axes, SHOWN.items(), strict=True):
        known = None if report.reference is None else report.reference.property(name)
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
