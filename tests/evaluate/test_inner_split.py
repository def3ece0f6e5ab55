"""Inner splits follow the outer one; keys hold the code of methods; trials may learn for a shorter time."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from molgraph.auxiliary.knn import NearestNeighbours
from molgraph.base.code import code_hash, commit
from molgraph.base.contracts import Target
from molgraph.base.errors import UnknownNameError
from molgraph.chem.scaffold import scaffolds
from molgraph.data.datasets import load_dataset
from molgraph.data.splits import split_table
from molgraph.data.splits.inner import inner_splits, inner_splitter
from molgraph.data.table import Table, make_table
from molgraph.evaluate.benchmark.report_data import facts_of
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.train.method import GraphMethod
from tests.evaluate.bench_tables import go, recipe


@pytest.fixture(scope="module")
def table() -> Table:
    return load_dataset("chembl2321810").table.take(np.arange(0, 1017, 3))


@pytest.mark.parametrize("name", ["scaffold/balanced", "scaffold/deepchem"])
def test_new_scaffolds_outside_are_new_scaffolds_inside(table: Table, name: str) -> None:
    outer = split_table(table, name, quiet=True)
    train = table.take(outer.train)
    assert inner_splitter(outer) == "scaffold/balanced"
    of = np.array(scaffolds(train.smiles.tolist()).values)
    (early,) = inner_splits(train, outer, 3, share=0.1, part="valid")
    assert len(early.test) == 0 and 0 < len(early.valid) <= 0.2 * len(train)
    assert not set(of[early.train]) & set(of[early.valid])
    for each in inner_splits(train, outer, 3, folds=3):
        assert not set(of[each.train]) & set(of[each.test])


def test_other_splits_have_random_ones_inside(table: Table) -> None:
    outer = split_table(table, "random")
    assert inner_splitter(outer) == "random"
    cluster = split_table(table, "cluster/butina", similarity=0.6)
    (inner,) = inner_splits(table.take(cluster.train), cluster, 0, share=0.2)
    assert inner.splitter == "cluster/butina" and inner.params["similarity"] == 0.6


def test_a_published_split_by_scaffold_is_divided_inside_by_scaffold(table: Table) -> None:
    words = np.where(np.arange(len(table)) % 5 == 0, "test", "train")
    outer = split_table(replace(table, split=words.astype(object)), "column", inner="scaffold/balanced")
    assert inner_splitter(outer) == "scaffold/balanced"
    (early,) = inner_splits(table.take(outer.train), outer, 3, share=0.1, part="valid")
    assert early.splitter == "scaffold/balanced" and len(early.valid)
    with pytest.raises(UnknownNameError, match="scafold"):
        split_table(replace(table, split=words.astype(object)), "column", inner="scafold/balanced")


def test_where_training_rows_have_one_scaffold_the_inner_split_is_random() -> None:
    benzenes = make_table(["c1ccccc1" + "C" * n for n in range(1, 21)], targets=(Target("y"),), y=np.arange(20.0))
    asked = replace(split_table(benzenes, "random"), splitter="scaffold/balanced")
    (inner,) = inner_splits(benzenes, asked, 0, share=0.2)
    assert inner.splitter == "random"


def test_a_search_under_scaffold_folds_is_judged_on_new_scaffolds(tmp_path: Path) -> None:
    ridge = {"name": "ridge", "search": {"trials": 2, "fraction": 0.3}}
    splits = [
        {"splitter": "cluster/butina", "folds": 3, "params": {"similarity": 0.5}},
        {"splitter": "random", "folds": 3},
    ]
    go(tmp_path, recipe(ridge, split=splits), only={"fold": ["0"]})
    found = {r.cell.split: r.manifest["search"]["split"] for r in read_records(tmp_path)}
    assert found == {"cluster-butina-1x3": "cluster/butina", "random-1x3": "random"}


def test_trials_have_settings_of_their_own(tmp_path: Path) -> None:
    log, other = str(tmp_path / "trials"), str(tmp_path / "last")
    search = {"trials": 2, "fraction": 0.3, "params": {"log": log}}
    go(tmp_path / "out", recipe({"name": "ridge", "params": {"log": other}, "search": search}), only={"fold": ["0"]})
    counts = [sum("fit" in json.loads(line) for line in Path(path).read_text().splitlines()) for path in (log, other)]
    assert counts == [2, 1]


def test_a_key_holds_the_code_of_the_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_code.py").write_text("class A:\n    x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import own_code  # type: ignore[import-not-found]

    before = code_hash([own_code.A])
    (tmp_path / "own_code.py").write_text("class A:\n    x = 2\n")
    assert code_hash([own_code.A]) != before and "own_code" in sys.modules
    assert code_hash([NearestNeighbours]) != code_hash([GraphMethod]) and code_hash([NearestNeighbours]) == code_hash(
        [NearestNeighbours]
    )
    go(tmp_path / "out", recipe("ridge"), only={"fold": ["0"]})
    (record,) = (records := read_records(tmp_path / "out")).done
    assert len(record.manifest["resolved"]["code"]) == 64 and record.manifest["commit"] == commit()
    record.manifest["commit"] = "0123456789" * 4 + "-dirty"
    assert facts_of(records)["commit"] == "1 cells at 012345678901-dirty"
