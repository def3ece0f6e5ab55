"""What a run cannot use is said: splits that cannot divide a dataset, rows of no split; plans of before are read."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.base.errors import NotInstalledError
from molgraph.data.splits import LeftOut, split_table
from molgraph.data.splits.unused_rows import unused_rows
from molgraph.data.table import make_table
from molgraph.evaluate.benchmark.loop import Loop
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.verify import verify_records
from tests.evaluate.bench_tables import go, recipe, small

ODD_PARTS = [
    {"train": np.array([0]), "valid": np.array([], int), "test": np.array([1]),
     "left_out": (LeftOut(2, "no time in this row"),)},
    {"train": np.array([2]), "valid": np.array([], int), "test": np.array([1]), "left_out": ()},
]  # fmt: skip


def test_a_split_that_cannot_divide_a_dataset_is_refused_alone(tmp_path):
    one_scaffold = make_table([f"c1ccccc1{'C' * n}" for n in range(40)], targets=(Target("y"),), y=np.arange(40.0))
    tables = {"odd": one_scaffold, "small": small()}
    splits = [{"splitter": "random", "folds": 2}, {"splitter": "scaffold/balanced"}]
    asked = recipe("ridge", datasets=list(tables), split=splits)
    dry = go(tmp_path, asked, tables, dry_run=True)
    ran = go(tmp_path, asked, tables)
    assert list(ran.refused_splits) == [("odd", "scaffold-balanced")] and not ran.refused
    assert "would leave" in ran.refused_splits["odd", "scaffold-balanced"]
    (line,) = ran.refusals
    assert line.startswith("odd, scaffold-balanced is refused: the split 'scaffold/balanced' would leave ")
    assert dry.refusals == ran.refusals and dry.wanted == ran.wanted == 5 and ran.made == {"ok": 5}
    records = read_records(tmp_path)
    assert {(c.dataset, c.split) for c, _ in records} == {
        ("odd", "random-1x2"), ("small", "random-1x2"), ("small", "scaffold-balanced")
    }  # fmt: skip
    assert records.problems["odd"].refused_splits and not records.problems["small"].refused_splits
    assert verify_records(tmp_path).ok
    alone = go(tmp_path / "alone", recipe("ridge", datasets=["odd"], split=splits[1:]), tables)
    assert "would leave" in alone.refused["odd"] and not alone.refused_splits and alone.wanted == 0


def test_a_library_that_is_not_there_is_said_before_the_first_cell(tmp_path, monkeypatch):
    asked = recipe("ridge", {"name": "ridge", "label": "searched", "search": {"trials": 2}})
    go(tmp_path, asked, only={"fold": ["0"]})
    monkeypatch.setattr("molgraph.base.optional.find_spec", lambda name: None)
    assert go(tmp_path, asked, only={"fold": ["0"]}).made == {}, "what is there needs nothing"
    with pytest.raises(NotInstalledError, match="optuna") as error:
        go(tmp_path, asked)
    assert error.value.hint == "pip install 'molgraph-platform[bench]'\nor leave them out: --only method=ridge"
    assert go(tmp_path, asked, only={"method": ["ridge"]}).made == {"ok": 4}


def test_rows_that_no_split_holds_are_counted_by_reason(tmp_path):
    smiles = [*small(40).smiles, "C1CC", "c1cccc1N(=O)=O=O", "", "CCN(C)(C)(C)C"]
    table = make_table(smiles, targets=(Target("y"),), y=np.arange(44.0))
    split = [{"splitter": "random", "folds": 2}, {"splitter": "scaffold/balanced"}]
    ran = go(tmp_path, recipe("ridge", split=split), {"small": table}, only={"fold": ["0"], "method": ["ridge"]})
    assert ran.unused == ("small: 40 of 44 rows; 3 cannot be read, 1 no molecule",)
    problem = read_records(tmp_path).problems["small"]
    assert problem.left_out == {"cannot be read": 3, "no molecule": 1}


def test_a_row_that_one_split_holds_is_not_lost():
    table = make_table(["CCO", "CCN", "CCC", "CCCC"])
    first, second = (replace(split_table(table, "random", fractions=(0.5, 0.25, 0.25)), **parts) for parts in ODD_PARTS)
    assert unused_rows(table, [first]) == {"no time in this row": 1, "in no part of its splits": 1}
    assert unused_rows(table, [first, second]) == {"in no part of its splits": 1} and unused_rows(table, []) == {}


def test_a_molecule_whose_neutral_parent_cannot_be_read_has_its_own_reason():
    ring = "c1c(C(=O)OC)c(C(=O)OC)[c-](C(=O)OC)c1C(=O)OC"  # its anion is aromatic, its neutral form is not
    table = make_table(["CCO", "CCN", "c1ccccc1", "CCCC", f"COC(=O){ring}", "C1CC"])
    split = split_table(table, "scaffold/balanced", fractions=(0.5, 0.25, 0.25))
    assert unused_rows(table, [split]) == {"of a neutral parent that cannot be read": 1, "cannot be read": 1}


def test_a_plan_of_before_is_read_and_computes_nothing_anew(tmp_path):
    go(tmp_path, recipe("ridge"))
    path = tmp_path / "plan" / "small.json"
    raw = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in raw.items() if k not in ("left_out", "refused_splits")}))
    (problem,) = read_records(tmp_path).problems.values()
    assert problem.left_out == {} == problem.refused_splits and len(problem.cells) == 5
    assert (go(tmp_path, recipe("ridge")).there, json.loads(path.read_text())) == (5, raw)


def test_scores_of_another_recipe_do_not_outlive_a_run_that_is_killed(tmp_path, monkeypatch):
    go(tmp_path, recipe("ridge", "early"))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Loop, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, recipe("ridge"))
    assert verify_records(tmp_path).ok and not (tmp_path / "scores.csv").exists()
