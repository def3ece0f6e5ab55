"""Splits of the user's own in a benchmark: files that train takes, and columns of words, folds, times and groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.api.benchmarking import read_own_table
from molgraph.base.errors import CellError, FormatError, LabelError
from molgraph.data.read import read_table
from molgraph.data.splits import Split, split_table
from molgraph.data.standardise import standardise
from molgraph.evaluate.benchmark.plan import prepare
from molgraph.evaluate.benchmark.published_record import read_record, write_record
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report_data import gather
from molgraph.evaluate.benchmark.result import BenchmarkResult
from molgraph.evaluate.benchmark.verify import verify_records
from tests.evaluate.bench_tables import go

N = 30


@pytest.fixture
def frame() -> pd.DataFrame:
    """Salts, so that the standardiser changes every row, with columns of every kind of split."""
    i = np.arange(N)
    return pd.DataFrame(
        {
            "smiles": [f"{'C' * (n + 1)}C(=O)[O-].[Na+]" for n in i],
            "y": i * 0.5,
            "part": np.where(i < 20, "train", np.where(i < 25, "valid", "test")),
            "fold": i % 3,
            "day": [f"2020-01-{n + 1:02d}" for n in i],
            "project": [f"P{n % 6}" for n in i],
        }
    )


def asked(path: Path, *splits: dict, **table: object) -> BenchRecipe:
    own = {"name": "mine", "path": str(path), "targets": ["y"], **table}
    return BenchRecipe.from_dict(
        {"name": "t", "datasets": ["mine"], "table": [own], "split": list(splits), "method": [{"name": "ridge"}]}
    )


def planned(recipe: BenchRecipe, out: Path, split: str | None = None):
    own = recipe.table[0]
    table = read_table(own.path, targets=own.targets, id=own.id, split=own.split_column)
    problem = prepare(recipe, out, "mine", table, {})
    return problem, {
        f"{label}-{repeat}-{fold}": Split.load(out / "splits/mine" / label / f"r{repeat}-f{fold}.json")
        for label, repeat, fold in problem.split_hash
    }


def test_a_benchmark_takes_the_file_that_train_takes(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "mine.csv", index=False)
    made = split_table(standardise(read_table(tmp_path / "mine.csv")), "random")  # as `data split` makes it
    made.save(tmp_path / "s.json")
    file = str(tmp_path / "s.json")
    for split in ({"splitter": "file", "params": {"path": file}}, {"splitter": file}):
        recipe = asked(tmp_path / "mine.csv", split)
        ran = go(tmp_path / "out", recipe, {"mine": read_table(tmp_path / "mine.csv", targets=["y"])})
        assert ran.refusals == () and verify_records(tmp_path / "out").ok
        kept = Split.load(tmp_path / "out/splits/mine/file/r0-f0.json")
        assert kept.test.tolist() == made.test.tolist() and kept.train.tolist() == made.train.tolist()
    learnt = molgraph.train(str(tmp_path / "mine.csv"), targets=["y"], split=file, model="mean", baseline=False)
    assert learnt.split.test.tolist() == made.test.tolist() and learnt.split.content == made.content
    split_table(read_table(frame), "random", seed=1).save(tmp_path / "s.json")  # another file of the same name
    again = planned(recipe, tmp_path / "out")[1]["file-0-0"]
    assert again.test.tolist() != made.test.tolist()
    frame[::-1].to_csv(tmp_path / "mine.csv", index=False)
    refused = planned(recipe, tmp_path / "out")[0].refused
    assert "the same rows in another order" in refused or "other rows" in refused
    assert "split this table anew" in refused


COLUMNS = [
    ({"splitter": "column", "params": {"column": "part"}}, {"column-0-0": range(25, 30)}),
    ({"splitter": "column"}, {"column-0-0": range(25, 30)}),  # the table's split_column
    ({"splitter": "time", "params": {"column": "day"}}, {"time-0-0": range(27, 30)}),
    ({"splitter": "column", "folds": 3, "params": {"column": "fold"}},
     {f"column-1x3-0-{k}": range(k, 30, 3) for k in range(3)}),
    ({"splitter": "column", "params": {"column": "fold", "fold": 2}}, {"column-0-0": range(2, 30, 3)}),
]  # fmt: skip


@pytest.mark.parametrize(("split", "tested"), COLUMNS)
def test_columns_of_the_users_own(split, tested, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "mine.csv", index=False)
    recipe = asked(tmp_path / "mine.csv", split, split_column="part")
    problem, made = planned(recipe, tmp_path / "out")
    assert not problem.refusals and {k: s.test.tolist() for k, s in made.items()} == {
        k: list(rows) for k, rows in tested.items()
    }
    assert not any(len(s.valid) for k, s in made.items() if "1x3" in k), "folds of a benchmark all train or test"


def test_a_column_of_groups_and_one_that_is_changed(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "mine.csv", index=False)
    split = {"splitter": "group", "folds": 3, "params": {"column": "project"}}
    recipe = asked(tmp_path / "mine.csv", split, {"splitter": "column", "params": {"column": "part"}})
    _, made = planned(recipe, tmp_path / "out")
    for fold in range(3):
        split = made[f"group-1x3-0-{fold}"]
        assert not set(frame["project"][split.train]) & set(frame["project"][split.test])
    assert planned(recipe, tmp_path / "out")[1]["column-0-0"].hash == made["column-0-0"].hash
    frame["part"] = frame["part"][::-1].to_numpy()
    frame.to_csv(tmp_path / "mine.csv", index=False)
    assert planned(recipe, tmp_path / "out")[1]["column-0-0"].test.tolist() == list(range(5))


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ({"splitter": "column", "params": {"column": "fold"}}, "say folds = 3 in the [[split]]"),
        ({"splitter": "column", "params": {"column": "folt"}}, "did you mean 'fold'?"),
        ({"splitter": "column", "folds": 5, "params": {"column": "fold"}}, "5 folds were asked for, the split column"),
        ({"splitter": "column", "folds": 3, "repeats": 2, "params": {"column": "fold"}}, "not drawn anew"),
        ({"splitter": "column", "folds": 3, "params": {"column": "part"}}, "words, no fold numbers"),
        ({"splitter": "column", "params": {"column": "fold", "fold": 3}}, "fold is 3"),
        ({"splitter": "time"}, 'params = { column = "NAME" }'),
    ],
)
def test_what_a_column_cannot_do_is_said_with_the_way_out(split, words, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "mine.csv", index=False)
    assert words in planned(asked(tmp_path / "mine.csv", split), tmp_path / "out")[0].refused


def test_ids_of_an_own_table(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.assign(key=[f"K{i}" for i in range(N)]).to_csv(tmp_path / "mine.csv", index=False)
    split_table(read_table(tmp_path / "mine.csv", id="key"), "random").save(tmp_path / "s.json")
    split = {"splitter": str(tmp_path / "s.json")}
    assert not planned(asked(tmp_path / "mine.csv", split, id="key"), tmp_path / "out")[0].refused
    assert "(--id)" in planned(asked(tmp_path / "mine.csv", split), tmp_path / "out")[0].refused


def test_the_short_name_of_a_split_is_told_in_full(tmp_path: Path) -> None:
    recipe = asked(tmp_path / "x.csv", {"splitter": "scaffold"})
    assert recipe.split[0].name == "scaffold-balanced" and BenchRecipe.from_dict(recipe.model_dump()) == recipe


def test_fold_numbers_of_a_column_in_train(frame: pd.DataFrame) -> None:
    learnt = molgraph.train(frame, smiles="smiles", targets=["y"], split_column="fold", model="mean", baseline=False)
    assert learnt.split.test.tolist() == list(range(0, 30, 3)) and learnt.split.valid.tolist() == list(range(1, 30, 3))
    for values, word in ((frame["fold"] % 2, "0 and 1"), (frame["fold"] + 1, "0 to 2")):
        with pytest.raises(FormatError, match=word):
            split_table(read_table(frame.assign(fold=values), split="fold"), "column")


def test_weights_features_and_censored_labels_of_an_own_table(frame: pd.DataFrame, tmp_path: Path) -> None:
    more = {"w": np.arange(N) + 1.0, "pH": np.arange(N) % 5, "sign": np.where(np.arange(N) % 10, "=", ">")}
    frame.assign(**more).to_csv(tmp_path / "m.csv", index=False)
    reads = {"weight": "w", "features": ["pH"]}
    table = read_own_table(asked(tmp_path / "m.csv", {"splitter": "random"}, **reads).table[0])
    assert table.weights.tolist() == more["w"].tolist() and table.feature_names == ("pH",)
    for qualifiers, lost in (("drop", 3), ("strip", 0)):
        own = {"censoring": "sign", "qualifiers": qualifiers}
        table = read_own_table(asked(tmp_path / "m.csv", {"splitter": "random"}, **own).table[0])
        assert np.isnan(table.y[:, 0]).sum() == lost and len(table) == N
        fate = "were taken out" if lost else "are read as if they were exact"
        assert table.notes == (f"3 of {N} labels are censored and {fate}",)
    asks = asked(tmp_path / "m.csv", {"splitter": "random", "folds": 3}, qualifiers="strip", censoring="sign")
    made = BenchmarkResult(go(tmp_path / "run", asks, {"mine": table}))
    report = gather(made.records, made.scores, slices=False)
    write_record(made.records, made.scores, report, tmp_path / "record")
    for board in (*report.boards, *read_record(tmp_path / "record").boards):
        assert f"{N} rows; 3 of {N} labels are censored and are read as if they were exact" in repr(board).splitlines()
    with pytest.raises(LabelError, match="'mine' has 3"):
        read_own_table(asked(tmp_path / "m.csv", {"splitter": "random"}, censoring="sign").table[0])
    with pytest.raises(CellError, match="'train'"):
        read_own_table(asked(tmp_path / "m.csv", {"splitter": "random"}, censoring="part").table[0])
