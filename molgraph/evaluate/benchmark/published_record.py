"""Write the small record of a benchmark from which its board can be made again."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base.csv_text import csv_text
from molgraph.base.errors import FileKeptError, FormatError
from molgraph.base.paths import missing_file, storage_error, write_whole
from molgraph.data.splits.unused_rows import RowCount
from molgraph.evaluate.benchmark.board import Ceiling, make_boards
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.run_folder import RECIPE, SCORES, Records
from molgraph.evaluate.benchmark.scoring import read_scores

FORMAT = "molgraph-record-1"
ABOUT, PACKED = "about.json", f"{SCORES}.gz"
_CELL = ["dataset", "split", "method", "repeat", "fold", "seed"]
_PLAIN = ("facts", "done", "wanted", "failed", "refused")


def write_record(records: Records, scores: pd.DataFrame, report: BenchReport, folder: str | Path) -> Path:
    """Write recipe, every cell's scores with the hash of its predictions, and what the report knows beside them.

    The same records, scores (of ``score_records``) and report (of ``gather``) give the same bytes.
    """
    folder = Path(folder)
    if not is_record(folder) and any((folder / name).exists() for name in (RECIPE, PACKED, ABOUT)):
        raise FileKeptError(
            f"{folder} is no record of a benchmark, and its files would be written over",
            hint="name a folder that is new or empty, or that of an earlier record",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(f"cannot write the record's folder {folder}", error) from error
    done = pd.DataFrame(
        [(*(getattr(r.cell, c) for c in _CELL), r.cell.key, r.manifest["predictions_sha256"]) for r in records.done],
        columns=[*_CELL, "key", "predictions_sha256"],
    )
    packed = scores.merge(done, on=_CELL, how="left", validate="many_to_one")
    leading: dict[str, list[str]] = {}
    for board in report.boards:
        names = leading.setdefault(board.dataset, [])
        names += [board.metric] if board.primary and board.metric not in names else []
    single = [(b.place, b.errors) for b in report.boards if b.errors is not None]
    about = {
        "format": FORMAT,
        "name": report.recipe_name,
        "leading": leading,
        "rows": {b.dataset: [b.rows.rows, dict(b.rows.left_out), b.rows.notes] for b in report.boards},
        # the labels, which are not in the record, are needed for these
        "entered": {b.dataset: dict(b.entered) for b in report.boards if b.entered},
        "ceilings": [[*b.place, c.value, c.sd, c.source] for b in report.boards for c in b.ceilings],
        "errors": [[*place, [*e.index], e.to_numpy().tolist(), e.attrs["df"]] for place, e in single],
        **{name: getattr(report, name) for name in _PLAIN},
        "refused_splits": [[*place, reason] for place, reason in report.refused_splits.items()],
    }
    texts = {RECIPE: records.recipe.to_toml().encode(), ABOUT: (json.dumps(about, indent=1) + "\n").encode()}
    for name, content in (texts | {PACKED: gzip.compress(csv_text(packed).encode(), mtime=0)}).items():
        write_whole(folder / name, content)
    return folder


def is_record(folder: str | Path) -> bool:
    """Whether a folder is a record, and no benchmark's own."""
    return (Path(folder) / ABOUT).is_file() and (Path(folder) / PACKED).is_file()


def read_record(folder: str | Path) -> BenchReport:
    """The report of a record: boards ranked anew from its scores; it has no slices, which need predictions."""
    folder = Path(folder)
    for name in (RECIPE, PACKED, ABOUT):
        if not (folder / name).is_file():
            raise missing_file(folder / name, "part of a benchmark's record")
    recipe = BenchRecipe.from_toml(folder / RECIPE)
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        ceilings = [((dataset, split, metric), Ceiling(*rest)) for dataset, split, metric, *rest in about["ceilings"]]
        errors = {}
        for dataset, split, metric, methods, values, *df in about.get("errors", []):  # later than leading, and df still
            errors[dataset, split, metric] = frame = pd.DataFrame(values, methods, methods)
            frame.attrs["df"] = df[0] if df else np.inf
        known = {key: about[key] for key in _PLAIN}
        leading, scores = dict(about["leading"]), read_scores(folder / PACKED)
        counts = about.get("rows", {}).items()  # later than leading
        rows = {dataset: RowCount(n, why, *more) for dataset, (n, why, *more) in counts}
        entered = {dataset: dict(entries) for dataset, entries in about.get("entered", {}).items()}
        known["refused_splits"] = {(dataset, split): why for dataset, split, why in about.get("refused_splits", [])}
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as why:
        raise FormatError(f"{folder} is no record of a benchmark: {why}", hint="was it written by molgraph?") from why
    boards = [
        replace(
            b, ceilings=tuple(item for place, item in ceilings if place == b.place), entered=entered.get(b.dataset, {})
        ).tested_by(errors.get(b.place))
        for b in make_boards(scores, recipe, primary=leading, rows=rows)
    ]
    return BenchReport(recipe.title or recipe.name, tuple(boards), recipe=recipe, **known)
