"""``verify``: whatever is changed by hand in a benchmark's folder is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from molgraph.base.errors import MissingFileError
from molgraph.cli.main import app
from molgraph.evaluate.benchmark.cells import MANIFEST, PREDICTIONS, file_of_split
from molgraph.evaluate.benchmark.published_record import PACKED
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.run_folder import SCORES, Records, read_records
from molgraph.evaluate.benchmark.store import sha256
from molgraph.evaluate.benchmark.verify import verify_records
from tests.evaluate.bench_tables import go, recipe, small


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two methods, one of which fails on every fold."""
    out = tmp_path_factory.mktemp("whole")
    go(out, recipe("ridge", {"name": "odd", "params": {"how": "raise"}}))
    return out


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(whole, tmp_path / "out")
    return tmp_path / "out"


def first(out: Path) -> Path:
    """The folder of the first ridge's cell."""
    records = read_records(out)
    return next(r.cell.folder(out) for r in records if r.cell.method == "ridge")


def write(path: Path, change) -> None:
    """Change a manifest, plan or split file."""
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))


def predictions(folder: Path, change, *, covered: bool) -> None:
    """Change predictions, and with ``covered`` the manifest's hash too."""
    frame = pq.read_table(folder / PREDICTIONS).to_pandas()
    change(frame)
    frame.to_parquet(folder / PREDICTIONS, index=False)
    if covered:
        write(folder / MANIFEST, lambda raw: raw.update(predictions_sha256=sha256((folder / PREDICTIONS).read_bytes())))


def test_what_was_not_touched_is_right(whole):
    found = verify_records(whole)
    assert found.ok and found.cells == found.there == found.wanted == 10 and found.scores["value"].notna().sum() == 20


def nudge(frame: pd.DataFrame) -> None:
    frame.loc[0, "p:y"] += 1.0


def relabel(frame: pd.DataFrame) -> None:
    frame.loc[0, "y:y"] += 1.0


def reorder(frame: pd.DataFrame) -> None:
    frame["row"] = frame["row"].to_numpy()[::-1]


def spoil_split(out: Path) -> None:
    write(file_of_split(out, "small", "random-1x5", 0, 0), lambda raw: raw["train"].pop())


def spoil_data(out: Path) -> None:
    (path,) = (out / ".work" / "tables").iterdir()
    frame = pq.read_table(path)
    y = frame["y:y"].to_numpy().copy()
    y[0] += 1
    changed = frame.set_column(frame.column_names.index("y:y"), "y:y", [y])
    pq.write_table(changed.replace_schema_metadata(frame.schema.metadata), path)


def spoil_scores(out: Path) -> None:
    frame = pd.read_csv(out / SCORES)
    frame.loc[0, "value"] *= 0.9
    frame.to_csv(out / SCORES, index=False)


def add_score(out: Path) -> None:
    frame = pd.read_csv(out / SCORES)
    pd.concat([frame, frame.head(1).assign(method="best", value=0.01)]).to_csv(out / SCORES, index=False)


def lack_column(frame: pd.DataFrame) -> None:
    del frame["p:y"]


SPOILT = {
    "a cell": (lambda out: shutil.rmtree(first(out)), "has rows of it, and the cell is not there"),
    "all cells": (lambda out: shutil.rmtree(out / "cells"), "has rows of it, and the cell is not there"),
    "a plan": (lambda out: (out / "plan" / "small.json").unlink(), "its plan is gone (plan/small.json)"),
    "a cell's manifest alone": (lambda out: (first(out) / MANIFEST).unlink(), "its manifest is gone"),
    "a split's file": (
        lambda out: file_of_split(out, "small", "random-1x5", 0, 0).unlink(),
        "cannot read the split",
    ),
    "a column, the hash covered up": (
        lambda out: predictions(first(out), lack_column, covered=True),
        "lack a target's column",
    ),
    "scores of a method that nobody ran": (add_score, "small random-1x5 best r0-f0-s0: scores.csv has rows"),
    "the file of scores": (lambda out: (out / SCORES).write_text("no,scores\n"), "scores.csv: it cannot be read"),
    "a prediction": (lambda out: predictions(first(out), nudge, covered=False), "predictions were changed"),
    "a prediction, its hash covered up": (
        lambda out: predictions(first(out), nudge, covered=True),
        "scores.csv has",
    ),
    "a label, its hash covered up": (lambda out: predictions(first(out), relabel, covered=True), "measured values"),
    "rows, the hash covered up": (lambda out: predictions(first(out), reorder, covered=True), "test rows"),
    "a prediction's file": (lambda out: (first(out) / PREDICTIONS).unlink(), "predictions are gone"),
    "a manifest": (lambda out: (first(out) / MANIFEST).write_text("{"), "cannot be read"),
    "a manifest that lacks something": (
        lambda out: write(first(out) / MANIFEST, lambda raw: raw.pop("status")),
        "is damaged: 'status' is gone or changed",
    ),
    "a manifest of another kind": (
        lambda out: write(first(out) / MANIFEST, lambda raw: raw.update(seconds={})),
        "is damaged: 'seconds' is gone or changed",
    ),
    "the data, all of it": (
        lambda out: next((out / ".work" / "tables").iterdir()).write_bytes(b""),
        "is damaged: delete it and run the recipe again",
    ),
    "another cell's manifest": (
        lambda out: write(first(out) / MANIFEST, lambda raw: raw.update(key="0" * 64)),
        "belongs to another cell",
    ),
    "a split hash": (
        lambda out: write(first(out) / MANIFEST, lambda raw: raw.update(split_hash="0" * 64)),
        "another dataset's or split's hash",
    ),
    "a split": (spoil_split, "the split's rows give the hash"),
    "the data": (spoil_data, "the dataset's hash is"),
    "a score": (spoil_scores, "scores.csv has"),
    "a resolved parameter": (
        lambda out: write(first(out) / MANIFEST, lambda raw: raw["resolved"].update(alpha=2.0)),
        "its key is not that of the recipe's",
    ),
    "a parameter in the recipe": (
        lambda out: (out / "recipe.toml").write_text(
            (out / "recipe.toml").read_text().replace('name = "ridge"', 'name = "ridge"\nparams = { alpha = 2.0 }')
        ),
        "its key is not that of the recipe's",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_was_changed_by_hand_is_named(out, what):
    spoil, words = SPOILT[what]
    spoil(out)
    found = verify_records(out)
    assert not found.ok
    assert any(words in f"{where}: {fault}" for where, fault in found.faults), found.faults
    where, fault = found.faults[0]
    assert f"{where}: {fault}" in repr(found)


@pytest.mark.parametrize(
    ("what", "good"),
    [
        ("a prediction", 9),
        ("a prediction, its hash covered up", 9),
        ("a score", 9),
        ("a cell", 9),
        ("a plan", 0),
        ("a split", 8),
        ("the data", 0),
    ],
)
def test_what_has_a_fault_is_not_among_the_good(out, what, good):
    SPOILT[what][0](out)
    found = verify_records(out)
    assert found.cells == good
    words = f"{good} cells are as they were written" if what != "a plan" else "there is nothing to verify"
    assert words in repr(found).splitlines()[-1]


def test_cells_that_are_not_there_yet_are_no_fault_and_are_counted(out):
    shutil.rmtree(first(out))
    (out / SCORES).unlink()  # as after a run that was killed
    found = verify_records(out)
    assert found.ok and (found.cells, found.there, found.wanted) == (9, 9, 10)
    assert repr(found).startswith("9 of 10 cells are there; 9 cells are as they were written")


def test_nothing_to_verify_is_not_all_right(out):
    shutil.rmtree(out / "cells")
    (out / SCORES).unlink()
    found = verify_records(out)
    assert not found.ok and not found.faults
    assert repr(found) == "there is nothing to verify: none of 10 cells is there"


def test_a_dataset_that_was_not_begun_is_no_fault(tmp_path):
    tables = {"small": small(), "other": small(40)}
    go(tmp_path, recipe("ridge", datasets=list(tables)), tables, only={"dataset": ["small"]})
    found = verify_records(tmp_path)
    assert found.ok and repr(found).startswith("5 of 5 cells of 1 of 2 datasets are there; 5 cells")


def test_a_folder_without_its_working_files_is_verified_by_the_datasets_card(tmp_path):
    asked = recipe("ridge", datasets=["chembl2321810"])
    go(tmp_path, asked)
    shutil.rmtree(tmp_path / ".work")
    assert verify_records(tmp_path).ok
    records: Records = read_records(tmp_path)
    found = records.predictions(records.done[0].cell)
    assert len(found.rows) == len(found.p["pActivity"]) and np.isfinite(found.p["pActivity"]).all()


def repack(record: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Change the scores of a record."""
    frame = pd.read_csv(record / PACKED, dtype=str, keep_default_na=False)
    change(frame).to_csv(record / PACKED, index=False)


def elsewhere(frame: pd.DataFrame, by: float) -> pd.DataFrame:
    """The record of another processor: the first fold's bytes are others, its scores are changed by that share."""
    first = (frame["method"] == "ridge") & (frame["fold"] == "0")
    value = frame["value"].where(~first, [str(float(v or "nan") * (1 + by)) for v in frame["value"]])
    return frame.assign(predictions_sha256=frame["predictions_sha256"].where(~first, "0" * 64), value=value)


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (lambda frame: frame, "5 cells have the same bytes as in record, 0 differ, 0 are here only, 0 there only", 0),
        (
            lambda frame: elsewhere(frame, 1e-9),
            "4 cells have the same bytes as in record, 1 differ (small random-1x5 ridge r0-f0-s0; scores by at most "
            "1e-09 of their size), 0 are here only, 0 there only",
            0,
        ),
        (lambda frame: elsewhere(frame, 1e-3), "1 differ (small random-1x5 ridge r0-f0-s0; scores by at most 0.001", 1),
        (lambda frame: frame.assign(split_hash="0"), "record stands on other rows or folds (split_hash)", 1),
        (
            lambda frame: frame[frame["fold"] != "2"],
            "4 cells have the same bytes as in record, 0 differ, 1 are here",
            0,
        ),
        (
            lambda frame: pd.concat([frame, frame.assign(seed="7")]),
            "5 cells have the same bytes as in record, 0 differ, 0 are here only, 5 there only",
            0,
        ),
        (lambda frame: frame.assign(seed="7"), "0 cells have the same bytes as in record, 0 differ, 5 are here", 1),
    ],
)
def test_a_run_is_compared_with_a_record(whole, tmp_path, change, words, code):
    write_bench_report(whole, tmp_path / "board.html", record=tmp_path / "record", slices=False)
    repack(tmp_path / "record", change)
    found = CliRunner().invoke(app, ["bench", "verify", str(whole), "--against", str(tmp_path / "record")])
    assert found.exit_code == code and words in " ".join(found.output.split()), found.output


def test_what_is_no_record_is_refused(whole, tmp_path):
    found = CliRunner().invoke(app, ["bench", "verify", str(whole), "--against", str(tmp_path)])
    assert found.exit_code == 5 and "record's file of scores" in found.output


def test_a_folder_that_is_no_benchmark_is_refused(tmp_path):
    with pytest.raises(MissingFileError, match=r"recipe\.toml"):
        verify_records(tmp_path)


def test_small_is_what_the_tests_think() -> None:
    assert len(small()) == 60 and small().row_targets[0].kind == "regression"
