"""Running a benchmark: cells that end badly are rows, nothing is computed twice, a folder can be shared and changed."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from molgraph.base.errors import EmptyError, UnknownNameError, UnsupportedError, UsageError
from molgraph.data.table import make_table
from molgraph.evaluate.benchmark.board import make_boards
from molgraph.evaluate.benchmark.cells import MANIFEST
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.result import BenchmarkResult
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records, stored_scores
from molgraph.evaluate.benchmark.verify import verify_records
from tests.evaluate.bench_tables import engine, go, plain, recipe, small
from tests.evaluate.odd_methods import Ridge

ENDS = {
    "raise": ("crashed", "ValueError: no such thing"),
    "refuse": ("refused", "this table is not for me"),
    "exit": ("crashed", "its process ended with exit code 3; last words"),
    "exits": ("crashed", "SystemExit: 0"),
    "segfault": ("crashed", "ended by SIGSEGV"),
    "killed": ("crashed", "ended by SIGKILL"),
    "memory_error": ("memory", "out of memory: too big"),
    "short": ("refused", "odd predicted 6 rows"),
    "sleep": ("timeout", "ran longer than its budget of 4 s"),
    "hog": ("memory", "more than its budget of 0.5 GB"),
    "child_hogs": ("memory", "more than its budget of 0.5 GB"),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every odd way to end a cell is met, between two good methods."""
    out = tmp_path_factory.mktemp("odd")
    odd = [{"name": "odd", "label": how, "params": {"how": how}} for how in ENDS]
    budget = {"seconds": 4, "memory_gb": 0.5}
    asked = recipe("ridge", *odd, {"name": "ridge", "label": "last"}, budget=budget, run={"jobs": 4})
    ran = go(out, asked, only={"fold": ["0"]})
    assert ran.wanted == len(ENDS) + 2 and sum(ran.made.values()) == ran.wanted and ran.made["ok"] == 2
    return out


@pytest.mark.parametrize("how", ENDS)
def test_a_cell_that_ends_badly_is_a_row_that_says_how(ended, how):
    record = next(r for r in read_records(ended) if r.cell.method == how)
    status, reason = ENDS[how]
    assert record.manifest["status"] == status and reason in record.manifest["reason"]
    assert "\n" not in record.manifest["reason"] and record.manifest["predictions_sha256"] is None
    files = {path.name for path in record.cell.folder(ended).iterdir()}
    assert files == {MANIFEST, "stderr.txt"}
    if how in ("hog", "child_hogs"):
        assert record.manifest["peak_mb"] >= 512


def test_a_method_may_leave_out_a_split(tmp_path):
    splits = [{"splitter": "random", "folds": 2, "label": label} for label in ("a", "b")]
    ran = go(tmp_path, recipe("ridge", {"name": "ridge", "label": "other", "skip": ["b"]}, split=splits))
    scores = score_records(read_records(tmp_path))
    assert {*zip(scores["split"], scores["method"], strict=True)} == {("a", "ridge"), ("a", "other"), ("b", "ridge")}
    boards = [board for board in make_boards(scores, read_records(tmp_path).recipe) if board.primary]
    assert ran.wanted == 6 and [board.methods for board in boards] == [["other", "ridge"], ["ridge"]]
    assert [board.notes for board in boards] == [(), ("Left out by the recipe: other.",)]


def test_the_board_goes_on(ended):
    scores = score_records(read_records(ended))
    good = scores[scores["status"] == "ok"]
    assert set(good["method"]) == {"ridge", "last"} and good["value"].notna().all()
    bad = scores[scores["status"] != "ok"]
    assert set(bad["method"]) == set(ENDS) and bad["value"].isna().all() and (bad["n"] == 0).all()
    assert bad["reason"].str.len().min() > 0


def test_manifest_says_what_a_repeat_needs(ended):
    record = next(r for r in read_records(ended) if r.cell.method == "ridge")
    found = record.manifest
    for key in ("format", "data_hash", "split_hash", "versions", "machine", "made", "targets", "cpu_seconds"):
        assert found[key], key
    assert set(found["seconds"]) == {"search", "fit", "predict", "total"}
    assert found["split"] == {"label": "random-1x5", "recipe": "random", "params": {}, "seed": 0}
    assert found["params"] == {} and found["seed"] == 0 and found["versions"]["numpy"] == np.__version__


def test_failures_are_tried_again_only_when_asked(ended, tmp_path):
    again = tmp_path / "there"
    odd = {"name": "odd", "params": {"how": "raise", "when": str(again)}}
    again.touch()
    out = tmp_path / "out"
    assert go(out, recipe(odd)).made == {"crashed": 5}
    again.unlink()
    assert go(out, recipe(odd)).made == {}, "a failure is a result"
    assert go(out, recipe(odd), retry=["timeout"]).made == {}
    assert go(out, recipe(odd), retry=["failed"]).made == {"ok": 5}
    assert go(out, recipe(odd), retry=["failed"]).made == {}


def test_a_method_that_lacks_folds_has_no_mean_beside_others_and_is_named_each_time(tmp_path):
    there, out = tmp_path / "there", tmp_path / "out"
    both = recipe({"name": "ridge"}, {"name": "odd", "params": {"how": "raise", "when": str(there)}})
    assert go(out, both, only={"fold": ["0"]}).made == {"ok": 2}
    there.touch()
    assert go(out, both).made == {"ok": 4, "crashed": 4}
    ran = go(out, both)
    assert ran.made == {} and {(cell.method, status) for cell, status, _ in ran.failures} == {("odd", "crashed")}
    assert len(ran.failures) == 4 and go(out, both, only={"fold": ["0"]}).failures == ()
    summary = BenchmarkResult(ran).summary
    assert summary["ridge"].notna().all() and summary["odd"].isna().all()


def test_nothing_is_computed_twice_and_a_changed_recipe_computes_what_it_changes(tmp_path):
    log, out = str(tmp_path / "log"), tmp_path / "out"
    first = recipe({"name": "ridge", "params": {"log": log}}, {"name": "odd", "params": {"how": "short", "log": log}})
    assert go(out, first, dry_run=True).wanted == 10 and not out.exists()
    ran = go(out, first, only={"method": ["ridge"], "fold": ["0", "1"]})
    assert (ran.wanted, ran.there, ran.made) == (2, 0, {"ok": 2})
    assert go(out, first).made == {"ok": 3, "refused": 5}
    before = plain(score_records(read_records(out)))
    ran = go(out, first)
    assert (ran.wanted, ran.there, ran.made, ran.stale) == (10, 10, {}, 0)
    assert sum("fit" in json.loads(line) for line in Path(log).read_text().splitlines()) == 10
    pd.testing.assert_frame_equal(plain(score_records(read_records(out))), before)
    changed = recipe({"name": "ridge", "params": {"log": log, "alpha": 1e3}})
    ran = go(out, changed)
    assert (ran.made, ran.stale) == ({"ok": 5}, 10)
    after = score_records(read_records(out))
    assert set(after["method"]) == {"ridge"} and len(after) == 5 * after["metric"].nunique()
    assert go(out, first).made == {}, "the first recipe's cells were kept"


def test_a_default_that_changed_is_computed_again(tmp_path, monkeypatch):
    assert go(tmp_path, recipe("ridge")).made == {"ok": 5}
    manifest = read_records(tmp_path).done[0].manifest
    code = manifest["resolved"].pop("code")
    assert (
        len(code) == 64
        and manifest["params"] == {}
        and manifest["resolved"] == {"alpha": 1.0, "log": None, "seed": 0, "noise": 0.0}
    )
    assert go(tmp_path, recipe({"name": "ridge", "params": {"alpha": 1.0}})).made == {}, "the same parameters"
    own = Ridge.__init__

    def changed(self: Ridge, alpha: float = 2.0, log: str | None = None, seed: int = 0, noise: float = 0.0) -> None:
        own(self, alpha, log, seed, noise)

    monkeypatch.setattr(Ridge, "__init__", changed)
    ran = go(tmp_path, recipe("ridge"))
    assert (ran.made, ran.stale) == ({"ok": 5}, 5) and verify_records(tmp_path).ok


def test_scores_of_the_run_are_written_with_all_their_digits(tmp_path):
    go(tmp_path, recipe("ridge"))
    made, stored = score_records(read_records(tmp_path)), stored_scores(tmp_path)
    assert (made["value"] == stored["value"]).all() and list(made) == list(stored)


def test_other_data_under_the_same_name_are_other_cells(tmp_path):
    go(tmp_path, recipe("ridge"))
    ran = go(tmp_path, recipe("ridge"), {"small": small(seed=1)})
    assert (ran.made, ran.stale) == ({"ok": 5}, 5)
    ran = go(tmp_path, recipe("ridge"), {"small": make_table(["CCO"])})
    assert "no targets" in ran.refused["small"] and ran.stale == 0, "whose the cells are is not known"


def test_two_runs_share_a_folder(tmp_path):
    log = str(tmp_path / "log")
    asked = recipe({"name": "odd", "params": {"how": "slow", "log": log}}, seeds=[0, 1, 2])
    found: list = []
    runs = [
        threading.Thread(target=lambda each=each: found.append(go(tmp_path / "out", asked, engine=each)))
        for each in ("local", engine())
    ]
    for run in runs:
        run.start()
        time.sleep(0.3)
    for run in runs:
        run.join(60)
    assert len(found) == 2 and sum(ran.made["ok"] for ran in found) + sum(ran.there for ran in found) >= 15
    assert sum("fit" in json.loads(line) for line in Path(log).read_text().splitlines()) == 15, "none twice"
    assert len(read_records(tmp_path / "out").done) == 15


def test_a_table_that_nobody_can_learn_from_is_refused_and_the_others_go_on(tmp_path):
    tables = {"small": small(), "bare": small().with_targets([])}
    ran = go(tmp_path, recipe("ridge", datasets=["bare", "small"]), tables)
    assert "has no targets" in ran.refused["bare"] and ran.made == {"ok": 5}
    records = read_records(tmp_path)
    assert records.refused == ran.refused
    scores = score_records(records)
    rows = scores[scores["dataset"] == "bare"]
    assert list(rows["method"]) == ["ridge"] and list(rows["status"]) == ["refused"] and rows["value"].isna().all()
    assert "has no targets" in rows["reason"].item() and rows["metric"].item() == ""
    assert {board.dataset for board in make_boards(scores)} == {"small"}
    assert [row for row in BenchmarkResult(ran).summary.index if "(refused)" in row] == ["bare random-1x5 (refused)"]
    assert verify_records(tmp_path).faults == (("bare", f"refused: {ran.refused['bare']}"),)
    alone = go(tmp_path / "alone", recipe("ridge", datasets=["bare"]), {"bare": tables["bare"]})
    with pytest.raises(EmptyError, match="bare has no targets"):
        write_bench_report(alone.out)


QUOTED = {
    "dataset": "small", "split": "random-1x5", "method": "m", "metric": "rmse", "value": 0.5, "protocol": "p",
    "source": "s",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [
        ({"datasets": ["smal"]}, UnknownNameError, "'smal'"),
        ({"split": [{"splitter": "scafold/balanced"}]}, UnknownNameError, "'scafold/balanced'"),
        ({"split": [{"splitter": "random", "params": {"sed": 1}}]}, UnknownNameError, "'sed'"),
        ({"split": [{"splitter": "scaffold/deepchem", "folds": 5}]}, UnsupportedError, "'scaffold/deepchem'"),
        ({"metrics": ["rmsee"]}, UnknownNameError, "'rmsee'"),
        ({"quoted": [QUOTED | {"dataset": "smal"}]}, UnknownNameError, "dataset 'smal'"),
        ({"quoted": [QUOTED | {"split": "random-1x4"}]}, UnknownNameError, "'random-1x4'"),
        ({"quoted": [QUOTED | {"metric": "rmsee"}]}, UnknownNameError, "'rmsee'"),
        ({"quoted": [QUOTED], "metrics": ["mae"]}, UnknownNameError, "metric 'rmse'"),
        ({"method": [{"name": "rigde"}]}, UnknownNameError, "'rigde'"),
        ({"method": [{"name": "ridge", "params": {"alhpa": 1}}]}, UnknownNameError, "'alhpa'"),
        ({"method": [{"name": "odd", "search": {}}]}, UnsupportedError, "odd"),
        ({"run": {"imports": ["no.such.module"]}}, UsageError, "no.such.module"),
    ],
)
def test_what_nobody_knows_is_refused_before_anything_runs(tmp_path, change, kind, word):
    values = recipe("ridge").model_dump() | change
    with pytest.raises(kind, match=word):
        go(tmp_path / "out", type(recipe("ridge")).from_dict(values))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"engine": "rai"}, "'rai'"),
        ({"retry": ["crashd"]}, "'crashd'"),
        ({"only": {"metod": ["ridge"]}}, "'metod'"),
        ({"only": {"method": ["rigde"]}}, "'rigde'"),
        ({"only": {"seed": ["0", "99"]}}, "seed '99'"),
        ({"only": {"fold": ["5"]}}, "fold '5'"),
        ({"only": {"repeat": ["1"]}}, "repeat '1'"),
        ({"only": {"split": ["whole"], "fold": ["1"]}}, "fold '1'"),
    ],
)
def test_wrong_options_are_answered_with_the_nearest_ones(tmp_path, options, word):
    split = [{"splitter": "random", "folds": 5}, {"splitter": "random", "label": "whole"}]
    with pytest.raises(UnknownNameError, match=word):
        go(tmp_path / "out", recipe("ridge", split=split, seeds=[0, 1]), **options)
    assert not (tmp_path / "out").exists()
