"""Records of parts of a benchmark, joined, are the record of the whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from molgraph.base.errors import MismatchError
from molgraph.evaluate.benchmark.published_record import ABOUT, PACKED, read_record
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.run_folder import RECIPE
from molgraph.evaluate.benchmark.scoring import read_scores
from pipelines.boards.join import join_records
from tests.evaluate.bench_tables import go, recipe, small

TABLES = {"small": small(100), "other": small(80, seed=1)}
SPLITS = [{"splitter": "random", "folds": 5}, {"splitter": "random", "label": "one", "datasets": ["other"]}]
ASKED = recipe("ridge", {"name": "ridge", "label": "noise", "params": {"noise": 1.0}}, datasets=[*TABLES], split=SPLITS)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Copies of the record of a run of some cells alone, each of which is run once."""
    made: dict[str, Path] = {}

    def copy(out: Path, **only: list[str]) -> Path:
        if (key := str(only)) not in made:
            made[key] = tmp_path_factory.mktemp("made")
            go(made[key] / "run", ASKED, tables=TABLES, only=only or None)
            write_bench_report(made[key] / "run", record=made[key] / "record")
        return Path(shutil.copytree(made[key] / "record", out / "record"))

    return copy


def told(folder: Path) -> tuple[pd.DataFrame, dict]:
    """Scores without times, and what the record knows beside them without times."""
    about = json.loads((folder / ABOUT).read_text())
    about["facts"] = {k: v for k, v in about["facts"].items() if k not in ("CPU time of all cells", "commit")}
    return read_scores(folder / PACKED).drop(columns=["seconds", "cpu_seconds", "peak_mb"]), about


@pytest.mark.slow
def test_records_of_parts_give_the_record_of_the_whole(record: Callable[..., Path], tmp_path: Path) -> None:
    whole = record(tmp_path / "whole")
    first, second = record(tmp_path / "a", dataset=["small"]), record(tmp_path / "b", dataset=["other"])
    join_records(None, first)
    assert [read_record(first).done, read_record(first).wanted, read_record(whole).wanted] == [10, 22, 22]
    changed = json.loads((first / ABOUT).read_text())
    changed["facts"]["commit"] = "10 cells at 0123456789ab-dirty"
    (first / ABOUT).write_text(json.dumps(changed))
    join_records(first, second)
    (scores, about), (known, told_by_whole) = told(second), told(whole)
    pd.testing.assert_frame_equal(scores, known)
    assert about == told_by_whole
    assert "cells at 0123456789ab-dirty" in json.loads((second / ABOUT).read_text())["facts"]["commit"]


def test_the_row_with_more_cells_stands(record: Callable[..., Path], tmp_path: Path) -> None:
    less, more = record(tmp_path / "a", method=["ridge"]), record(tmp_path / "b", dataset=["small"], fold=["0"])
    entered = '[[method]]\nname = "paper"\nkind = "external"\nskip = ["small"]\n'  # as after molgraph bench submit
    (less / RECIPE).write_text(f"{(less / RECIPE).read_text()}\n{entered}")
    join_records(less, more)
    assert [method.row for method in BenchRecipe.from_toml(more / RECIPE).method] == ["ridge", "noise", "paper"]
    cells = read_scores(more / PACKED).groupby(["dataset", "split", "method"])["fold"].nunique().to_dict()
    ridge = {("small", "random-1x5"): 5, ("other", "random-1x5"): 5, ("other", "one"): 1}
    assert cells == {(*at, "ridge"): n for at, n in ridge.items()} | {("small", "random-1x5", "noise"): 1}
    before = (more / PACKED).read_bytes()
    join_records(less, more)
    assert (more / PACKED).read_bytes() == before


def test_a_recipe_may_gain_a_method(record: Callable[..., Path], tmp_path: Path) -> None:
    whole = record(tmp_path / "whole")
    less, more = record(tmp_path / "a", method=["ridge"]), record(tmp_path / "b", method=["noise"])
    asked = BenchRecipe.from_toml(less / RECIPE)
    (less / RECIPE).write_text(asked.model_copy(update={"method": asked.method[:1]}).to_toml())
    join_records(less, more)
    rows = read_scores(more / PACKED).groupby("method")["key"].nunique().to_dict()
    assert rows == {"ridge": 10, "noise": 11} and read_scores(whole / PACKED)["key"].nunique() == 22


def test_a_recipe_may_skip_less_than_the_record_did(record: Callable[..., Path], tmp_path: Path) -> None:
    whole = record(tmp_path / "whole")
    less, rest = record(tmp_path / "a", method=["ridge"]), record(tmp_path / "b", method=["noise"])
    skip = BenchRecipe.from_toml(less / RECIPE)
    kept, left = skip.method
    skips = skip.model_copy(update={"method": (kept, left.model_copy(update={"skip": ("small", "other")}))})
    (less / RECIPE).write_text(skips.to_toml())
    join_records(less, rest)
    (scores, about), (known, _) = told(rest), told(whole)
    single = known["split"] == "one"  # tested on its molecules: whole from one record, here the newer of two
    pd.testing.assert_frame_equal(scores, known[~single | (known["method"] == "noise")].reset_index(drop=True))
    assert about["done"] == 21 and about["wanted"] == 22


def test_records_of_other_recipes_or_folds_are_refused(record: Callable[..., Path], tmp_path: Path) -> None:
    first, second = record(tmp_path / "a", dataset=["small"]), record(tmp_path / "b", dataset=["other"])
    packed = read_scores(first / PACKED).assign(dataset="other")
    packed.to_csv(first / PACKED, index=False)
    with pytest.raises(MismatchError, match="data_hash of other"):
        join_records(first, second)
    (first / RECIPE).write_text((first / RECIPE).read_text().replace("folds = 5", "folds = 4", 1))
    with pytest.raises(MismatchError, match=str(first)):
        join_records(first, second)
    whole = record(tmp_path / "whole")
    before = (whole / PACKED).read_bytes()
    join_records(first, whole)  # nothing is lacking in it
    assert (whole / PACKED).read_bytes() == before
