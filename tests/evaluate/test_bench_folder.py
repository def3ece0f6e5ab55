"""A benchmark writes into folders of its own alone, and over nothing that it reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import molgraph
from molgraph.base.errors import BusyError, ConflictError, FileKeptError
from molgraph.evaluate.benchmark.loop import Loop
from molgraph.evaluate.benchmark.published_record import PACKED
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.scoring import stored_scores
from molgraph.evaluate.benchmark.verify import verify_records
from tests.evaluate.bench_tables import go, recipe

FOREIGN = ("recipe.toml", "scores.csv", "plan/mine.json", "splits/small/random-1x5/mine.csv", "cells/mine", "notes.txt")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one method."""
    out = tmp_path_factory.mktemp("bench") / "run"
    go(out, recipe("ridge"))
    return out


@pytest.fixture
def own(run: Path, tmp_path: Path) -> Path:
    """A copy of it that may be spoilt."""
    return shutil.copytree(run, tmp_path / "own")


@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_that_is_no_benchmarks_is_refused_and_left_as_it_is(name, tmp_path):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("mine")
    for dry_run in (False, True):
        with pytest.raises(FileKeptError, match=tmp_path.name):
            go(tmp_path, recipe("ridge"), dry_run=dry_run)
    assert contents(tmp_path) == {name: b"mine"}


@pytest.mark.parametrize("left", [(".work",), (".work", "recipe.toml"), ("recipe.toml", "plan"), ()], ids=str)
def test_the_folder_of_an_interrupted_or_copied_run_goes_on(left, own, run):
    for path in own.iterdir():
        if path.name not in left:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert go(own, recipe("ridge")).made == {"ok": 5}
    assert verify_records(own).ok and set(contents(own)) >= set(contents(run)) - {".work/claims"}


def test_files_of_others_within_a_benchmark_are_never_deleted(own):
    mine = [own / "plan" / "mine.json", own / "splits" / "small" / "random-1x5" / "mine.csv", own / "notes.txt"]
    for path in mine:
        path.write_text("mine")
    other = [{"splitter": "random", "folds": 5, "seeds": [1], "label": "random-1x5"}]
    assert go(own, recipe("ridge", split=other)).made == {"ok": 5}, "the split is drawn anew"
    assert go(own, recipe("ridge", split=[{"splitter": "random", "folds": 2, "label": "random-1x5"}])).made == {"ok": 2}
    assert [path.read_text() for path in mine] == ["mine"] * 3
    assert len(list((own / "splits" / "small" / "random-1x5").glob("r0-f*.json"))) == 2
    assert verify_records(own).ok


def test_a_recipe_or_table_in_the_place_of_what_is_written_is_refused(own, tmp_path):
    kept = own / "recipe.toml"
    asked = recipe("ridge")
    assert go(own, asked, source=kept).made == {}, "the folder's own recipe, as it was"
    kept.write_text("# my comment\n" + kept.read_text())
    link = tmp_path / "link.toml"
    link.symlink_to(kept)
    table = [{"name": "small", "path": str(own / "cells" / "mine.csv"), "targets": ["y"]}]
    split = [{"splitter": "index/file", "params": {"path": str(own / "splits" / "mine.json")}}]
    before = contents(own)
    for wrong, source in (
        (asked, kept), (asked, link), (recipe("ridge", table=table), None), (recipe("ridge", split=split), None)
    ):  # fmt: skip
        with pytest.raises(ConflictError, match=r"recipe|link|mine"):
            go(own, wrong, source=source)
    assert contents(own) == before


def test_a_folder_of_before_whose_splits_have_a_recipe_goes_on_as_it_is(own):
    kept = own / "recipe.toml"
    kept.write_text(kept.read_text().replace("\nsplitter = ", "\nrecipe = "))
    (mark,) = own.glob("splits/small/*/asked.json")
    before = contents(own)
    assert b"\nrecipe = " in before["recipe.toml"] and json.loads(mark.read_text())["recipe"] == "random"
    assert go(own, recipe("ridge"), source=kept).made == {}, "nothing is drawn or computed anew"
    assert verify_records(own).ok and contents(own) == before


def test_a_run_ends_where_another_begins_with_another_recipe(own, monkeypatch):
    asked, other = recipe({"name": "ridge", "params": {"alpha": 3.0}}), recipe({"name": "ridge", "label": "other"})
    real = Loop.run

    def meanwhile(loop: Loop, todo: list) -> None:
        real(loop, todo)
        monkeypatch.setattr(Loop, "run", real)
        assert go(own, other).made == {"ok": 5}

    monkeypatch.setattr(Loop, "run", meanwhile)
    with pytest.raises(BusyError, match=own.name):
        go(own, asked)
    assert set(stored_scores(own)["method"]) == {"other"} and verify_records(own).ok
    assert go(own, asked).made == {}, "its cells were kept"


def test_the_verb_knows_which_recipe_it_reads(own):
    (own / "recipe.toml").write_text(
        'name="x"\ndatasets=["chembl2321810"]\n[[split]]\nsplitter="random"\n[[method]]\nname="mean"\n'
    )
    before = contents(own)
    with pytest.raises(ConflictError, match=r"recipe\.toml"):
        molgraph.benchmark(own / "recipe.toml", own)
    assert contents(own) == before


def test_a_report_is_not_written_over_the_benchmark_or_into_what_is_no_record(own, tmp_path):
    manifest = next(own.rglob("manifest.json"))
    before = contents(own)
    for path in (own / "recipe.toml", own / "scores.csv", manifest):
        for wrong in ({"out": path}, {"markdown": path}):
            with pytest.raises(ConflictError, match=path.name):
                write_bench_report(own, **wrong)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "recipe.toml").write_text("mine")
    for folder in (own, mine):
        with pytest.raises(FileKeptError, match=folder.name):
            write_bench_report(own, record=folder)
    assert contents(own) == before and contents(mine) == {"recipe.toml": b"mine"}
    record = tmp_path / "record"
    for _ in range(2):
        write_bench_report(own, record=record)
    with pytest.raises(ConflictError, match=PACKED):
        write_bench_report(record, record / PACKED)
