"""``verify``: whatever is changed by hand in a benchmark's folder is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from molgraph.base.errors import StorageError
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.records import Records, read_records
from molgraph.evaluate.benchmark.scoring import SCORES
from molgraph.evaluate.benchmark.store import MANIFEST, sha256
from molgraph.evaluate.benchmark.verify import verify_records
from molgraph.evaluate.benchmark.worker import PREDICTIONS
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
        write(folder / MANIFEST, lambda raw: raw.update(predictions_sha256=sha256(folder / PREDICTIONS)))


def test_what_was_not_touched_is_right(whole):
    found = verify_records(whole)
    assert found.ok and found.cells == 10 and found.scores["value"].notna().sum() == 20


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


SPOILT = {
    "a prediction": (lambda out: predictions(first(out), nudge, covered=False), "predictions were changed"),
    "a prediction, its hash covered up": (
        lambda out: predictions(first(out), nudge, covered=True),
        "scores.csv has",
    ),
    "a label, its hash covered up": (lambda out: predictions(first(out), relabel, covered=True), "measured values"),
    "rows, the hash covered up": (lambda out: predictions(first(out), reorder, covered=True), "test rows"),
    "a prediction's file": (lambda out: (first(out) / PREDICTIONS).unlink(), "predictions are gone"),
    "a manifest": (lambda out: (first(out) / MANIFEST).write_text("{"), "cannot be read"),
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
    assert any(words in fault for _, fault in found.faults), found.faults


def test_a_folder_without_its_working_files_is_verified_by_the_datasets_card(tmp_path):
    asked = recipe("ridge", datasets=["chembl2321810"])
    go(tmp_path, asked)
    shutil.rmtree(tmp_path / ".work")
    assert verify_records(tmp_path).ok
    records: Records = read_records(tmp_path)
    found = records.predictions(records.done[0].cell)
    assert len(found.rows) == len(found.p["pActivity"]) and np.isfinite(found.p["pActivity"]).all()


def test_a_folder_that_is_no_benchmark_is_refused(tmp_path):
    with pytest.raises(StorageError, match=r"recipe\.toml"):
        verify_records(tmp_path)


def test_small_is_what_the_tests_think() -> None:
    assert len(small()) == 60 and small().row_targets[0].kind == "regression"
