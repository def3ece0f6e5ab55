"""molgraph data split: row numbers that somebody published, as a file or a folder, and a target to sort by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.cli.main import app
from molgraph.data.read import read_table
from molgraph.data.splits import Split, split_table
from molgraph.data.standardise import standardise

PARTS = {"train": [0, 2, 4, 6, 8, 10, 12], "valid": [1, 3], "test": [5, 7]}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("smiles,y\n" + "".join(f"{'C' * (i + 1)}O,{i % 7}\n" for i in range(40)), encoding="utf-8")
    return path


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["data", "split", *map(str, words)])
    return result.exit_code, result.output


@pytest.mark.parametrize("layout", ["npz", "folder"])
def test_published_row_numbers_are_taken_as_they_are(layout: str, table: Path, tmp_path: Path) -> None:
    source = tmp_path / ("lists.npz" if layout == "npz" else "lists")
    if layout == "npz":
        np.savez(source, **PARTS)
    else:
        source.mkdir()
        for name, rows in PARTS.items():
            (source / f"{name}_idx.txt").write_text("\n".join(map(str, rows)), encoding="utf-8")
    code, text = run(table, "--split", source, "-o", tmp_path / "split.json")
    assert code == 0, text
    made = Split.load(tmp_path / "split.json")
    assert {name: getattr(made, name).tolist() for name in PARTS} == PARTS
    assert made.splitter == "index/file"
    assert "29 left out" in text
    code, text = run(table, "--split", tmp_path / "split.json", "-o", tmp_path / "again.csv")  # molgraph's own file
    assert code == 0, text
    assert (tmp_path / "again.csv").read_text("utf-8").count(",test") == 2


def test_other_peoples_splitters_are_asked_of_molecules_as_they_are_written(tmp_path: Path) -> None:
    salts = [f"{'C' * n}C1CCNCC1.OS(=O)(=O)c1ccccc1" for n in range(1, 5)]  # an acid with a ring: another scaffold
    small = ["CC1CCNCC1", "CCC1CCNCC1", "CC1CC1", "CCC1CC1", "CC1CCC1", "CCC1CCC1"]
    rings = [*salts, *small, *(f"{'C' * n}c1ccccc1" for n in range(1, 11))]
    path = tmp_path / "rings.csv"
    path.write_text("smiles,y\n" + "".join(f"{s},{i}\n" for i, s in enumerate(rings)), encoding="utf-8")
    given = read_table(str(path))
    written = split_table(given, "scaffold/deepchem", quiet=True)
    assert written.hash != split_table(standardise(given), "scaffold/deepchem", quiet=True).hash
    code, text = run(path, "--split", "scaffold/deepchem", "-o", tmp_path / "made.json")
    assert code == 0, text
    assert Split.load(tmp_path / "made.json").hash == written.hash
    options = {
        "model": "random_forest",
        "params": {"n_estimators": 2, "threads": 1},
        "targets": ["y"],
        "baseline": False,
    }
    for split in ("scaffold/deepchem", str(tmp_path / "made.json")):
        learnt = molgraph.train(path, split=split, **options)
        assert (learnt.split.train == written.train).all() and learnt.split.content == written.content
    own = split_table(standardise(given), "random")
    code, text = run(path, "--split", "random")
    assert code == 0 and own.hash[:16] in text, "molgraph's own splitters are asked of standardised molecules"


def test_a_target_to_sort_by_and_what_is_refused(table: Path, tmp_path: Path) -> None:
    code, text = run(table, "--split", "stratified/deepchem", "--target", "y")
    assert code == 0, text
    assert "32 train, 4 valid, 4 test" in text
    code, text = run(table, "--split", "stratified/deepchem")
    assert code == 2
    assert "--target" in text
    code, text = run(table, "--split", tmp_path / "nowhere.npz")
    assert code == 2
    np.savez(tmp_path / "far.npz", train=[0, 1], test=[99])
    code, text = run(table, "--split", tmp_path / "far.npz")
    assert code == 3
    assert "names row 99 in test; the table has rows 0 to 39" in text


def test_folds_are_drawn_anew_for_each_repeat(table: Path, tmp_path: Path) -> None:
    code, text = run(table, "--split", "random", "--folds", 3, "--repeats", 2, "-o", tmp_path / "f.json")
    assert code == 0 and "fold r1-2, random" in text
    made = {name: Split.load(tmp_path / f"f-{name}.json") for name in ("r0-0", "r0-1", "r0-2", "r1-0", "r1-1", "r1-2")}
    assert len({split.hash for split in made.values()}) == 6
    for r in "01":
        tested = np.concatenate([made[f"r{r}-{k}"].test for k in range(3)])
        assert sorted(tested) == list(range(40))
    once, _ = run(table, "--split", "random", "--folds", 3, "-o", tmp_path / "g.json")
    assert once == 0 and Split.load(tmp_path / "g-1.json").test.tolist() == made["r0-1"].test.tolist()
    code, text = run(table, "--repeats", 2)
    assert code == 2 and "--folds 5 --repeats 5" in text
