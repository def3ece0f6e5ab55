"""Rank the generators of a benchmark by how near their molecules are to the test set; write the tables and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import EmptyError
from molgraph.base.paths import write_whole
from molgraph.evaluate.benchmark.run_folder import Records, read_records
from molgraph.evaluate.generation.board_scores import judge_cells
from molgraph.evaluate.generation.definitions import DEFINITIONS
from molgraph.evaluate.generation.embeddings import EMBEDDINGS
from molgraph.evaluate.generation.generation_report import Row, cell_text, direction, label_of
from molgraph.evaluate.generation.measures import MEASURES, Measure
from molgraph.evaluate.statistics import Interval

TELLING = ("valid", "valid_unchecked", "unique", "novel", "frechet", "snn", "int_div", "filters")  # the others follow


@dataclass(frozen=True)
class GeneratorRow:
    """One line of the board: a generator over its seeds, or a control."""

    name: str  # as the recipe calls it
    kind: str  # ``sample`` or ``control``
    cells: int  # seeds and folds that it stands on
    values: dict[str, Interval]  # measure -> mean with 1.96 standard deviations; of one cell its own interval
    fit_seconds: float = float("nan")  # mean time of training
    sample_seconds: float = float("nan")  # mean time of drawing
    note: str = ""  # cells that failed, and why

    @property
    def distance(self) -> float:
        """Fréchet's distance to the test molecules; infinite where it is not known."""
        value = self.values["frechet"].value if "frechet" in self.values else np.inf
        return value if np.isfinite(value) else np.inf


@dataclass(frozen=True)
class GenerationBoard:
    """Generators that learned from the same molecules, by Fréchet's distance, then the controls."""

    dataset: str
    split: str
    embedding: str
    rows: tuple[GeneratorRow, ...]

    @property
    def measures(self) -> list[Measure]:
        """Those that some row has, the telling ones first."""
        there = [each for each in MEASURES if any(each.name in row.values for row in self.rows)]
        return sorted(there, key=lambda each: TELLING.index(each.name) if each.name in TELLING else len(TELLING))

    @property
    def tables(self) -> list[pd.DataFrame]:
        """A row a generator, as text: the telling measures with times and cells, then the other measures."""
        frames = []
        for telling in (True, False):
            chosen = [entry for entry in self.measures if (entry.name in TELLING) == telling]
            heads = [f"{label_of(entry, self.embedding)} {direction(entry)}" for entry in chosen]
            texts = [[cell_text(row.values.get(entry.name)) for entry in chosen] for row in self.rows]
            frames.append(pd.DataFrame(texts, [row.name for row in self.rows], heads))
        for name, key in (("train, s", "fit_seconds"), ("sample, s", "sample_seconds"), ("cells", "cells")):
            times = [getattr(row, key) for row in self.rows]
            frames[0][name] = ["" if np.isnan(entry) else f"{entry:,.0f}" for entry in times]
        return [table for table in frames if len(table.columns)]

    @property
    def sentence(self) -> str:
        """Which generator is nearest to the test molecules, beside the controls."""
        known = [row for row in self.rows if row.kind == "sample" and np.isfinite(row.distance)]
        if not known:
            return "no generator drew molecules"
        others = ", ".join(f"{row.name} {row.distance:.3g}" for row in self.rows if row.kind == "control")
        near = f"{known[0].name} is nearest to the test molecules, {known[0].distance:.3g} in {self.embedding}"
        return f"{near} ({others})" if others else near

    def to_frame(self) -> pd.DataFrame:
        """A row a generator or control: kind, cells, the measures' means, seconds of training and sampling."""
        rows = []
        for row in self.rows:
            means = {name: interval.value for name, interval in row.values.items()}
            seconds = {"fit_seconds": row.fit_seconds, "sample_seconds": row.sample_seconds}
            rows.append({"generator": row.name, "kind": row.kind, "cells": row.cells} | means | seconds)
        columns = ["kind", "cells", *(measure.name for measure in self.measures), "fit_seconds", "sample_seconds"]
        return pd.DataFrame(rows).set_index("generator")[columns]

    def to_markdown(self) -> str:
        """The tables as Markdown, controls in italics."""
        from molgraph.evaluate.benchmark.report_markdown import table  # with matplotlib, which few runs need

        lines = [f"## {self.dataset}, {self.split}", "", f"{self.sentence}.", ""]
        names = [f"*{row.name}*" if row.kind == "control" else row.name for row in self.rows]
        for texts in self.tables:
            rows = [[name, *cells] for name, cells in zip(names, texts.to_numpy(), strict=True)]
            heads = ["generator", *texts.columns]
            lines += [*table(heads, rows, right=range(1, len(heads))), ""]
        return "\n".join([*lines, *(f"- {row.name}: {row.note}" for row in self.rows if row.note), ""])


def generation_boards(records: Records) -> list[GenerationBoard]:
    """A board for each dataset and split.

    Raises:
        EmptyError: nothing was computed yet.
    """
    if not records.done:
        raise EmptyError(f"nothing was computed in {records.out} yet", hint="run the recipe first")
    judged, how, boards = judge_cells(records, records.done), records.recipe.generation, []
    for place in dict.fromkeys((record.cell.dataset, record.cell.split) for record in records.done):
        here = [result.row for result in judged if result.part[:2] == place]
        rows = []
        for name in (method.row for method in records.recipe.method):
            ran = [r.manifest for r in records.done if (r.cell.dataset, r.cell.split, r.cell.method) == (*place, name)]
            if ran:
                rows.append(_generator(name, ran, [row for row in here if (row.kind, row.name) == ("sample", name)]))
        rows.sort(key=lambda row: row.distance)
        for name in dict.fromkeys(row.name for row in here if row.kind == "control"):
            controls = [row for row in here if row.name == name and row.kind == "control"]
            rows.append(GeneratorRow(name, "control", len(controls), _mean(controls)))
        boards.append(GenerationBoard(*place, how.embedding, tuple(rows)))
    return boards


def write_generation_report(
    source: str | Path | Records, page: str | Path | None, markdown: str | Path | None = None
) -> list[GenerationBoard]:
    """Write the boards of a folder as a page, as Markdown, or both."""
    from molgraph.evaluate.report_style import render  # with matplotlib

    records = source if isinstance(source, Records) else read_records(source)
    boards, recipe = generation_boards(records), records.recipe
    title = recipe.title or recipe.name
    about = (
        f"{recipe.generation.draws:,} draws of each generator, invalid ones and repetitions too, against the test "
        "molecules, which no generator was given. Means over seeds, ± 1.96 standard deviations; of one seed, ± half "
        "the 95% interval of the draws. Fréchet's distance: " + EMBEDDINGS[recipe.generation.embedding].summary + ". "
        "Rows in italics generate nothing: half of training against the other half, a training sample, and training "
        "molecules with one carbon put in (AddCarbon)."
    )
    terms = [f"- {term}: {words}" for term, words in DEFINITIONS.items()]
    text = "\n".join([f"# {title}", "", about, "", *(board.to_markdown() for board in boards), *terms, ""])
    known = {"title": title, "about": about, "boards": boards, "definitions": DEFINITIONS}
    html = render("generation_board.html.jinja", **known, recipe=recipe.to_toml())
    for path, content in ((page, html), (markdown, text)):
        if path is not None:
            write_whole(path, content)
    return boards


def _generator(name: str, ran: Sequence[Mapping[str, Any]], judged: Sequence[Row]) -> GeneratorRow:
    """A generator's line, from the manifests of its cells and what was drawn in those that ended well."""
    seconds = pd.DataFrame([m["seconds"] for m in ran if m["status"] == "ok"], columns=["fit", "sample"]).mean()
    lost = [manifest for manifest in ran if manifest["status"] != "ok"]
    note = f"{len(lost)} of {len(ran)} cells failed: {lost[0]['status']}, {lost[0]['reason']}" if lost else ""
    return GeneratorRow(name, "sample", len(judged), _mean(judged), seconds["fit"], seconds["sample"], note)


def _mean(rows: Sequence[Row]) -> dict[str, Interval]:
    """Means over cells, with 1.96 standard deviations of them; of one cell its own interval."""
    if len(rows) == 1:
        return dict(rows[0].values)
    means = {}
    for name in dict.fromkeys(name for row in rows for name in row.values):
        values = np.array([row.values[name].value for row in rows if name in row.values])
        mean, half = float(values.mean()), 1.96 * float(values.std(ddof=1))
        means[name] = Interval(mean, mean - half, mean + half)
    return means
