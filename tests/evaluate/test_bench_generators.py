"""Benchmarks of generators: the test part is never seen, runs go on, changed draws are found, controls stand beside."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import BadValueError, UnknownNameError
from molgraph.base.registry import names
from molgraph.cli.main import app
from molgraph.data.splits import Split
from molgraph.data.table_parquet import read_handed, write_table
from molgraph.evaluate.benchmark.job import Job, make_generator
from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe, Generation
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.worker import run_job
from molgraph.evaluate.generation.board import write_generation_report
from molgraph.evaluate.generation.draws import read_draws, write_draws
from molgraph.evaluate.generation.judge import Draws, judge_samples
from molgraph.generate.ngram import NgramGenerator
from tests.tiny import series

RECIPE = {
    "name": "drawn",
    "datasets": ["mine"],
    "generation": {"draws": 30, "most_train": 40},
    "run": {"jobs": 2},
    "seeds": [0, 1],
    "split": [{"splitter": "random", "fractions": [0.6, 0.1, 0.3]}],
    "generator": [{"name": "ngram"}, {"name": "ngram", "label": "short", "params": {"order": 12, "max_length": 100}}],
}


@pytest.fixture(autouse=True, scope="module")
def _few_halves() -> Iterator[None]:
    """Narrow no interval, as ``test_generation_measures.py`` does; and import what an n-gram needs alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("molgraph.api.benchmarking.IMPORTS", ("molgraph.generate.ngram",))
        patch.setattr("molgraph.evaluate.generation.board_scores.judge_samples", partial(judge_samples, halves=4))
        yield


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two generators and two seeds."""
    out = tmp_path_factory.mktemp("bench") / "drawn"
    result = molgraph.benchmark(RECIPE, out, tables={"mine": series(80)})
    assert dict(result.ran.made) == {"ok": 4}
    assert list(result.summary.columns) == ["ngram", "short"]
    return out


def test_a_recipe_of_generators_is_read_back_and_mixes_with_no_method(tmp_path: Path) -> None:
    recipe = BenchRecipe.from_dict(RECIPE)
    (tmp_path / "a.toml").write_text(recipe.to_toml())
    assert BenchRecipe.from_toml(tmp_path / "a.toml") == recipe and recipe.generates
    for more, said in (
        ({"method": [{"name": "mean"}]}, "methods and generators"),
        ({"metrics": ["rmse"]}, "metrics"),
        ({"generation": {"embedding": "words"}}, "embedding"),
    ):
        with pytest.raises(BadValueError, match=said):
            BenchRecipe.from_dict(RECIPE | more)
    with pytest.raises(UnknownNameError, match="'ngrams'"):
        make_generator("ngrams")


def test_scores_are_those_of_the_stored_draws_and_the_same_for_the_same_seed(ran: Path) -> None:
    records = read_records(ran)
    split = Split.load(next((ran / "splits").rglob("r0-f0.json")))
    table = read_handed(records.problems["mine"].table_file(ran))
    record = next(r for r in records if r.cell.method == "short" and r.cell.seed == 1)
    drawn = read_draws(records.path(record.cell), record.manifest["predictions_sha256"])
    asked = {"reference": table.take(split.test).smiles.tolist(), "controls": False, "embedding": "descriptors"}
    known = judge_samples({"a": Draws(drawn.smiles)}, halves=0, **asked).rows[0].values
    scores = molgraph.evaluate.benchmark.scoring.score_records(records)
    mine = scores[(scores["method"] == "short") & (scores["seed"] == 1)].set_index("metric")["value"]
    for name in ("valid", "unique", "snn", "frechet", "int_div"):
        assert mine[name] == pytest.approx(known[name].value, nan_ok=True), name


@pytest.mark.slow
def test_the_same_command_goes_on_and_judges_nothing_twice(ran: Path) -> None:
    judged = {path: path.stat().st_mtime_ns for path in (ran / ".work" / "judged").iterdir()}
    assert len(judged) == 5, "four cells, and the controls once"
    records = read_records(ran)
    folder = records.cells[0].folder(ran)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    result = molgraph.benchmark(RECIPE, ran, tables={"mine": series(80)})
    assert result.ran.there == 3 and dict(result.ran.made) == {"ok": 1}
    assert judged == {path: path.stat().st_mtime_ns for path in (ran / ".work" / "judged").iterdir()}


def test_the_board_has_generators_and_controls(ran: Path, tmp_path: Path) -> None:
    (board,) = write_generation_report(ran, tmp_path / "a.html", tmp_path / "a.md")
    frame = board.to_frame()
    assert list(frame["kind"]) == ["sample"] * 2 + ["control"] * 3 and frame.loc["ngram", "cells"] == 2
    assert frame.loc["AddCarbon", "novel"] == 1 and frame.loc["training sample", "novel"] == 0
    assert "AddCarbon" in (tmp_path / "a.md").read_text("utf-8") and "<table" in (tmp_path / "a.html").read_text(
        "utf-8"
    )
    done = CliRunner().invoke(app, ["bench", "report", str(ran), "-o", str(tmp_path / "b.html")])
    assert done.exit_code == 0 and "nearest to the test molecules" in done.output, done.output
    assert CliRunner().invoke(app, ["bench", "verify", str(ran)]).exit_code == 0


def test_a_generator_is_given_no_test_molecule_and_no_label(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def spy(self, table, valid=None, *, workdir=None):
        seen.append((table, valid))
        return fit(self, table, valid)

    fit = NgramGenerator.fit
    monkeypatch.setattr(NgramGenerator, "fit", spy)
    file = next((ran / "splits").rglob("r0-f0.json"))
    split = Split.load(file)
    write_table(series(80), tmp_path / "table.parquet")
    method, given = BenchMethod(name="ngram", kind="generator"), Generation(draws=3, most_train=20)
    files = (tmp_path, tmp_path / "table.parquet", file)
    run_job(Job(*map(str, files), "none:none", method, generation=given))
    ((table, _),) = seen
    test = {*series(80).smiles[split.test]}
    assert len(table) == 20 and table.y is None and not test & {*table.smiles} and len(split.test) >= 20


def test_draws_that_were_changed_are_found(ran: Path) -> None:
    records = read_records(ran)
    path = records.path(records.cells[-1])
    before = path.read_bytes()
    try:
        write_draws(path, {"smiles": ["CCO"] * 60})
        done = CliRunner().invoke(app, ["bench", "verify", str(ran)])
        assert done.exit_code == 1 and "predictions were changed" in done.output, done.output
    finally:
        path.write_bytes(before)


def test_the_shipped_recipe_names_what_there_is() -> None:
    recipe = BenchRecipe.from_toml(molgraph.base.resources.recipe_path("generation"))
    known = names("generator")
    for method in recipe.method:
        if method.name in known:  # others come with later versions
            make_generator(method.name, **method.params)
    assert recipe.generates and {"ngram", "gru"} <= {m.name for m in recipe.method}
    assert np.isclose(recipe.generation.draws, 5000)
