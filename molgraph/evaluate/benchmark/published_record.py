"""Write the small record of a benchmark from which its board can be made again."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd

from molgraph.base.csv_text import csv_text
from molgraph.base.errors import DataError, StorageError
from molgraph.base.paths import atomic_write, missing_file, storage_error
from molgraph.evaluate.benchmark.board import Board, Ceiling
from molgraph.evaluate.benchmark.board_overall import summarise
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report_data import BenchReport, boards_of
from molgraph.evaluate.benchmark.run_folder import RECIPE, Records
from molgraph.evaluate.benchmark.scoring import SCORES, read_scores
from molgraph.evaluate.row_count import RowCount

FORMAT = "molgraph-record-1"
ABOUT, PACKED = "about.json", f"{SCORES}.gz"
_CELL = ["dataset", "split", "method", "repeat", "fold", "seed"]


def write_record(records: Records, scores: pd.DataFrame, report: BenchReport, folder: str | Path) -> Path:
    """Write recipe, every cell's scores with the hash of its predictions, and what the report knows beside them.

    Args:
        records: of the benchmark's folder.
        scores: the frame of ``score_records``.
        report: what ``gather`` made of both.
        folder: where ``recipe.toml``, ``scores.csv.gz`` and ``about.json`` go; the same input gives the same bytes.

    Returns:
        The folder.

    Raises:
        StorageError: files of these names stand there that are no record, or the folder cannot be written.
    """
    folder = Path(folder)
    if not is_record(folder) and any((folder / name).exists() for name in (RECIPE, PACKED, ABOUT)):
        raise StorageError(
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
    with atomic_write(folder / PACKED) as file:
        file.write(gzip.compress(csv_text(packed).encode(), mtime=0))
    ceilings = [
        [b.dataset, b.split, b.metric, c.value, c.sd, c.source] for b in report.boards for c in b.ceilings
    ]  # they need the labels
    leading: dict[str, list[str]] = {}
    for board in report.boards:
        if board.primary and board.metric not in leading.setdefault(board.dataset, []):
            leading[board.dataset].append(board.metric)
    about = {
        "format": FORMAT,
        "name": report.recipe_name,
        "leading": leading,
        "rows": {b.dataset: [b.rows.rows, dict(b.rows.left_out)] for b in report.boards},
        "ceilings": ceilings,
        "facts": dict(report.facts),
        "done": report.done,
        "wanted": report.wanted,
        "failed": dict(report.failed),
        "refused": dict(report.refused),
        "refused_splits": [[*place, why] for place, why in report.refused_splits.items()],
    }
    for name, text in ((RECIPE, report.recipe), (ABOUT, json.dumps(about, indent=1) + "\n")):
        with atomic_write(folder / name, "w") as file:
            file.write(text)
    return folder


def is_record(folder: str | Path) -> bool:
    """Whether a folder is a record, and no benchmark's own."""
    return (Path(folder) / ABOUT).is_file() and (Path(folder) / PACKED).is_file()


def read_record(folder: str | Path) -> BenchReport:
    """The report of a record: boards ranked anew from its scores; it has no slices, which need predictions.

    Raises:
        StorageError: no such record.
        DataError: a file in it is damaged, or rows of differing hash would stand in one table.
    """
    folder = Path(folder)
    for name in (RECIPE, PACKED, ABOUT):
        if not (folder / name).is_file():
            raise missing_file(folder / name, "part of a benchmark's record")
    recipe = BenchRecipe.from_toml(folder / RECIPE)
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        ceilings: dict[tuple[str, str, str], list[Ceiling]] = {}
        for dataset, split, metric, value, sd, source in about["ceilings"]:
            ceilings.setdefault((dataset, split, metric), []).append(Ceiling(value, sd, source))
        plain = {key: about[key] for key in ("facts", "done", "wanted", "failed", "refused")}
        leading, name, scores = dict(about["leading"]), str(about["name"]), read_scores(folder / PACKED)
        rows = {dataset: RowCount(n, why) for dataset, (n, why) in about.get("rows", {}).items()}  # later than leading
        refused_splits = {(dataset, split): why for dataset, split, why in about.get("refused_splits", [])}
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder} is no record of a benchmark: {error}", hint="was it written by molgraph?") from error

    def with_ceilings(board: Board) -> Board:
        return replace(board, ceilings=tuple(ceilings.get((board.dataset, board.split, board.metric), ())))

    boards = [with_ceilings(board) for board in boards_of(recipe, scores, leading, rows)]
    placed = {(b.dataset, b.split, b.metric) for b in boards}
    return BenchReport(
        title=recipe.title or name,
        boards=tuple(boards),
        overall=tuple(summarise(boards)),
        recipe=recipe.to_toml(),
        recipe_name=name,
        unplaced=tuple(q for q in recipe.quoted if (q.dataset, q.split, q.metric) not in placed),
        refused_splits=refused_splits,
        **plain,
    )
