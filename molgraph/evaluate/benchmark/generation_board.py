"""Make the boards of a benchmark of generators, beside the control rows, as frames, Markdown and a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError
from molgraph.base.paths import atomic_write
from molgraph.evaluate.benchmark.cells import Cell
from molgraph.evaluate.benchmark.generation_scores import judge_cells
from molgraph.evaluate.benchmark.run_folder import Record, Records, read_records
from molgraph.evaluate.generation.embeddings import EMBEDDINGS
from molgraph.evaluate.generation.generation_report import Row, cell_text, direction, label_of
from molgraph.evaluate.generation.measures import MEASURES, Measure
from molgraph.evaluate.statistics import Interval

TELLING = ("valid", "valid_unchecked", "unique", "novel", "frechet", "snn", "int_div", "filters")  # the others follow


@dataclass(frozen=True)
class GeneratorRow:
    """One line of the board: a generator over its seeds, or a control.

    Args:
        name: as the recipe calls it.
        kind: ``sample`` or ``control``.
        cells: how many seeds and folds it stands on.
        values: measure -> mean over them, with its interval: of one cell its own, of several 1.96 standard deviations.
        seconds: mean time of training and of sampling; NaN for a control.
        note: cells that failed, and why.
    """

    name: str
    kind: str
    cells: int
    values: dict[str, Interval]
    seconds: tuple[float, float] = (float("nan"), float("nan"))
    note: str = ""


@dataclass(frozen=True)
class GenerationBoard:
    """Generators that learned from the same molecules, by Fréchet's distance, then the controls."""

    dataset: str
    split: str
    embedding: str
    draws: int
    rows: tuple[GeneratorRow, ...]

    @property
    def measures(self) -> list[Measure]:
        """Those that some row has, the telling ones first."""
        there = [each for each in MEASURES if any(each.name in row.values for row in self.rows)]
        return sorted(there, key=lambda each: TELLING.index(each.name) if each.name in TELLING else len(TELLING))

    @property
    def tables(self) -> list[tuple[list[str], list[list[str]]]]:
        """The telling measures with the times, then the others: heads, and the texts of each row."""
        made = []
        for telling in (True, False):
            chosen = [each for each in self.measures if (each.name in TELLING) == telling]
            heads = [f"{label_of(each, self.embedding)} {direction(each)}" for each in chosen]
            rows = [[cell_text(row.values.get(each.name)) for each in chosen] for row in self.rows]
            if telling:
                heads += ["train, s", "sample, s", "cells"]
                rows = [[*cells, *_costs(row)] for cells, row in zip(rows, self.rows, strict=True)]
            if chosen:
                made.append((heads, rows))
        return made

    @property
    def sentence(self) -> str:
        """Which generator is nearest to the test molecules, beside the controls."""
        known = [row for row in self.rows if row.kind == "sample" and np.isfinite(_distance(row))]
        if not known:
            return "no generator drew molecules"
        others = ", ".join(f"{row.name} {_distance(row):.3g}" for row in self.rows if row.kind == "control")
        near = f"{known[0].name} is nearest to the test molecules, {_distance(known[0]):.3g} in {self.embedding}"
        return f"{near} ({others})" if others else near

    def to_frame(self) -> pd.DataFrame:
        """A row a generator or control: kind, cells, the measures' means, seconds of training and sampling."""
        columns = {"kind": [r.kind for r in self.rows], "cells": [r.cells for r in self.rows]}
        names = [row.name for row in self.rows]
        made = pd.DataFrame(columns, index=pd.Index(names, name="generator"))
        for each in self.measures:
            made[each.name] = [row.values[each.name].value if each.name in row.values else np.nan for row in self.rows]
        made["fit_seconds"], made["sample_seconds"] = zip(*(row.seconds for row in self.rows), strict=True)
        return made


def generation_boards(records: Records) -> list[GenerationBoard]:
    """A board for each dataset and split.

    Raises:
        DataError: nothing was computed yet.
    """
    if not records.done:
        raise DataError(f"nothing was computed in {records.out} yet", hint="run the recipe first")
    judged = judge_cells(records, records.done)
    cells: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records.done:
        cells[record.cell.dataset, record.cell.split].append(record)
    boards = []
    for (dataset, split), members in cells.items():
        rows = []
        for method in records.recipe.method:
            mine = [record for record in members if record.cell.method == method.row]
            if mine:
                rows.append(_row(method.row, mine, [judged[r.cell] for r in mine if r.cell in judged]))
        rows.sort(key=lambda row: (not np.isfinite(_distance(row)), _distance(row)))
        controls: dict[str, list[Row]] = defaultdict(list)
        for key, row in judged.items():
            if not isinstance(key, Cell) and key[0][:2] == (dataset, split):
                controls[row.name].append(row)
        rows += [GeneratorRow(name, "control", len(found), _mean(found)) for name, found in controls.items()]
        how = records.recipe.generation
        boards.append(GenerationBoard(dataset, split, how.embedding, how.draws, tuple(rows)))
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
    text = "\n".join([f"# {title}", "", about, "", *(_markdown(board) for board in boards)])
    html = render("generation_board.html.jinja", title=title, about=about, boards=boards, recipe=recipe.to_toml())
    for path, content in ((page, html), (markdown, text)):
        if path is not None:
            with atomic_write(path) as file:
                file.write(content.encode())
    return boards


def _markdown(board: GenerationBoard) -> str:
    lines = [f"## {board.dataset}, {board.split}", "", f"{board.sentence}.", ""]
    names = [f"*{row.name}*" if row.kind == "control" else row.name for row in board.rows]
    for heads, rows in board.tables:
        lines += ["| generator | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
        lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in zip(names, rows, strict=True)]
        lines.append("")
    return "\n".join([*lines, *(f"- {row.name}: {row.note}" for row in board.rows if row.note), ""])


def _costs(row: GeneratorRow) -> list[str]:
    return [*("" if np.isnan(each) else f"{each:,.0f}" for each in row.seconds), f"{row.cells}"]


def _row(name: str, members: Sequence[Record], judged: Sequence[Row]) -> GeneratorRow:
    ended = [record.manifest for record in members if record.manifest["status"] == "ok"]
    times = [[float(m["seconds"].get(key, np.nan)) for m in ended] for key in ("fit", "sample")]
    fit, sample = (float(np.mean(each)) if each else float("nan") for each in times)
    lost = [record.manifest for record in members if record.manifest["status"] != "ok"]
    note = "" if not lost else f"{len(lost)} of {len(members)} cells failed: {lost[0]['status']}, {lost[0]['reason']}"
    return GeneratorRow(name, "sample", len(judged), _mean(judged), (fit, sample), note)


def _mean(rows: Sequence[Row]) -> dict[str, Interval]:
    """Means over cells, with 1.96 standard deviations of them; of one cell its own interval."""
    if len(rows) == 1:
        return dict(rows[0].values)
    found = {}
    for name in dict.fromkeys(name for row in rows for name in row.values):
        values = np.array([row.values[name].value for row in rows if name in row.values])
        mean, half = float(values.mean()), 1.96 * float(values.std(ddof=1))
        found[name] = Interval(mean, mean - half, mean + half)
    return found


def _distance(row: GeneratorRow) -> float:
    return row.values["frechet"].value if "frechet" in row.values else float("nan")
