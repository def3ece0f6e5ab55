"""Searching hyper-parameters: resumable to the bit, blind to valid and test rows, and a bad trial ends nothing."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import molgraph
from molgraph.auxiliary.knn import NearestNeighbours
from molgraph.base.errors import ConflictError, DataError, UsageError
from molgraph.base.journal import Journal
from molgraph.base.search_space import Categorical, Float, Int
from molgraph.data.table import Table
from molgraph.evaluate.trials import best_trial, importances, run_trials

SPACE = {"x": Float(-1, 1), "n": Int(1, 100, log=True), "kind": Categorical(("a", 0.1))}
FIRST = {"x": 0.9, "n": 3, "kind": "a"}


def score(params: Any) -> list[float]:
    return [params["x"] ** 2 + 0.01 * (params["kind"] == "a"), params["x"] ** 2]


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(0)
    smiles = ["C" * (1 + i % 9) + "ON"[i % 2] + "C" * (i // 9 % 8) for i in range(90)]
    y = [len(s) + rng.normal() * 0.3 for s in smiles]
    return molgraph.read_table({"smiles": smiles, "y": y}, targets=["y"])


def tune(table: Table, **options: Any) -> Any:
    return molgraph.tune(table, model="knn", split="random", **{"trials": 5, "threads": 1, **options})


def test_a_search_that_was_stopped_ends_as_one_that_was_not() -> None:
    whole = run_trials(SPACE, score, trials=25, seed=3, first=FIRST)
    assert dict(whole[0].params) == FIRST
    for stopped in (1, 12, 24):
        asked: list[Any] = []

        def counted(params: Any, asked: list[Any] = asked) -> list[float]:
            asked.append(params)
            return score(params)

        again = run_trials(SPACE, counted, trials=25, seed=3, first=FIRST, before=whole[:stopped])
        assert len(asked) == 25 - stopped
        assert [(t.params, t.value) for t in again] == [(t.params, t.value) for t in whole]
    with pytest.raises(DataError, match="trial 1 of the journal"):
        run_trials(SPACE, score, trials=25, seed=4, before=whole[:3])


def test_the_sampler_beats_chance_and_the_parameter_that_matters_is_named() -> None:
    random = np.random.default_rng(0).uniform(-1, 1, (200, 30)) ** 2
    found = [best_trial(run_trials(SPACE, score, trials=30, seed=seed)) for seed in range(5)]
    assert np.median([t.value for t in found if t is not None]) < np.median(random.min(axis=1)) + 0.005
    shares = importances(SPACE, run_trials(SPACE, score, trials=30, seed=0))
    assert next(iter(shares)) == "x" and shares["x"] > 0.8 and sum(shares.values()) == pytest.approx(1)


def test_defaults_outside_of_the_ranges_are_tried_first_too() -> None:
    whole = run_trials(SPACE, score, trials=9, seed=3, first={"x": 0.0, "n": 3, "kind": None})
    assert dict(whole[0].params) == {"x": 0.0, "n": 3, "kind": None} == dict(best_trial(whole).params)  # type: ignore[union-attr]
    assert [t.params for t in whole[1:]] == [t.params for t in run_trials(SPACE, score, trials=8, seed=3)]
    again = run_trials(SPACE, score, trials=9, seed=3, first=whole[0].params, before=whole[:4])
    assert [t.params for t in again] == [t.params for t in whole] and importances(SPACE, whole)


def test_a_budget_begins_no_trial_that_would_end_after_it() -> None:
    def slow(params: Any) -> list[float]:
        time.sleep(0.02)
        return score(params)

    assert len(run_trials(SPACE, slow, trials=1000, seed=0, seconds=0.05)) in (1, 2)
    assert len(run_trials(SPACE, slow, trials=1000, seed=0, seconds=1e-9)) == 1, "the first is always made"


def test_a_journal_survives_a_torn_line_and_refuses_another_run(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, {"a": 1})
    for i in range(3):
        journal.append({"i": i})
    path.write_bytes(path.read_bytes()[:-3])
    again = Journal(path, {"a": 1})
    assert [step["i"] for step in again.steps] == [0, 1]
    again.append({"i": 9})
    assert [step["i"] for step in Journal(path, {"a": 1}).steps] == [0, 1, 9]
    with pytest.raises(ConflictError, match="another run"):
        Journal(path, {"a": 2})


def test_no_label_of_a_valid_or_test_row_is_seen(table: Table) -> None:
    found = tune(table)
    split = found.training.split
    y = table.y.copy()  # type: ignore[union-attr]
    held = np.concatenate([split.valid, split.test])
    y[held] = y[held][::-1] * 7
    other = tune(replace(table, y=y))
    assert (other.training.split.train == split.train).all()
    assert [t.value for t in other.measured] == [t.value for t in found.measured]
    assert other.chosen == found.chosen
    assert found.best.value <= found.measured[0].value, "the defaults are among the trials"
    assert found.model.method.get_params().items() >= found.chosen.items()
    assert "chosen out of fold" in found.model.card.notes[-1]


def test_a_killed_search_goes_on_and_a_failed_trial_is_a_row(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, fits = NearestNeighbours.fit, [0]

    def odd(self: NearestNeighbours, *args: Any, **more: Any) -> NearestNeighbours:
        fits[0] += 1
        if fits[0] == stop:
            raise KeyboardInterrupt
        if self.power == 0.0:
            raise RuntimeError("no power")
        return fit(self, *args, **more)

    monkeypatch.setattr(NearestNeighbours, "fit", odd)
    stop = -1
    whole = tune(table, trials=8)
    failed = [t for t in whole.measured if t.value is None]
    assert failed and all("RuntimeError: no power" in t.reason for t in failed) and len(whole.trials) == 8
    stop, fits[0] = fits[0] - 6, 0
    with pytest.raises(KeyboardInterrupt):
        tune(table, trials=8, workdir=tmp_path)
    kept = len((tmp_path / "tuning.jsonl").read_text().splitlines()) - 1
    assert 1 <= kept < 8
    stop = -1
    again = tune(table, trials=8, workdir=tmp_path)
    assert [(t.params, t.value) for t in again.measured] == [(t.params, t.value) for t in whole.measured]
    assert again.predict(["CCO", "CCCCN"]).value.tobytes() == whole.predict(["CCO", "CCCCN"]).value.tobytes()
    assert len(tune(table, trials=9, workdir=tmp_path).measured) == 9, "more trials go on too"
    with pytest.raises(ConflictError, match="other data or other settings"):
        tune(table, trials=8, workdir=tmp_path, seed=1)


def test_what_is_given_is_not_searched_and_the_command_can_be_typed(table: Table) -> None:
    found = tune(table, params={"radius": 1}, trials=3)
    assert {*found.space} == {"k", "power"}
    words = found.command.split()
    typed = molgraph.base.run_config.RunConfig().override(*words[words.index("-s") + 1 :: 2])
    assert typed.model.params == {"radius": 1, **found.chosen}
    assert words[:5] == ["molgraph", "train", "DATA", "--model", "knn"]


def test_the_report_draws_the_search(table: Table, tmp_path: Path) -> None:
    found = tune(table, trials=9)
    page = found.report(tmp_path / "r.html").read_text()
    assert "Search of the hyper-parameters" in page and page.count("<svg") >= 4
    assert "Which parameters matter" in page and "no trial has seen" in page
    assert json.dumps(found.trials["trial"].tolist()) and found.trials["rmse"].is_monotonic_increasing


def test_what_cannot_be_tuned_says_so_in_a_sentence(table: Table) -> None:
    few = table.take(np.arange(10))
    with pytest.raises(DataError, match="8 labelled training rows are too few to choose parameters by"):
        tune(few)
    for y in (np.ones(90), np.full(90, 2.5)):
        with pytest.raises(DataError, match="in every row that has it: there is nothing to learn"):
            tune(replace(table, y=y[:, None]))
    with pytest.raises(UsageError, match="mean has no parameters to search"):
        molgraph.tune(table, model="mean")
    with pytest.raises(UsageError, match="all parameters of knn that can be searched are given"):
        tune(table, params={"radius": 1, "k": 3, "power": 1.0})
    for wrong in ("10x", "-1", "", "0"):
        with pytest.raises(UsageError, match="the budget is"):
            tune(table, budget=wrong)
