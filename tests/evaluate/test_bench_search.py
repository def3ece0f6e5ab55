"""Searching parameters and leaks: no test row, and no test label, is ever seen; what cannot be learnt is not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.data.splits import Split
from molgraph.data.table import Table, make_table
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from tests.evaluate.bench_tables import go, recipe, small

SEARCH = {"trials": 6, "folds": 3}
QUICK = {"trials": 2, "fraction": 0.3}


def test_a_search_sees_training_rows_alone(tmp_path):
    log = tmp_path / "log"
    asked = recipe({"name": "ridge", "params": {"log": str(log)}, "search": SEARCH})
    go(tmp_path / "out", asked, only={"fold": ["0"]})
    split = Split.load(file_of_split(tmp_path / "out", "small", "random-1x5", 0, 0))
    train, test = ({str(small().ids[i]) for i in rows} for rows in (split.train, split.test))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    fits = [set(line["fit"]) for line in lines if "fit" in line]
    predicts = [set(line["predict"]) for line in lines if "predict" in line]
    assert len(fits) == 6 * 3 + 1 and fits[-1] == train, "the best parameters learn from all training rows"
    assert all(fit < train for fit in fits[:-1]) and all(seen <= train for seen in predicts[:-1])
    assert all(not fit & seen for fit, seen in zip(fits[:-1], predicts[:-1], strict=True))
    assert predicts[-1] == test


def test_test_labels_change_nothing_but_the_scores(tmp_path):
    """The same split, with the labels of its test rows taken away: the same parameters, the same predictions."""
    asked = recipe({"name": "ridge", "search": SEARCH}, split=[{"splitter": "random", "seeds": [0]}])
    go(tmp_path / "a", asked)
    split = Split.load(file_of_split(tmp_path / "a", "small", "random", 0, 0))
    y = small().y.copy()
    y[split.test] = np.nan
    go(tmp_path / "b", asked, {"small": replace(small(), y=y)})
    (a,), (b,) = (read_records(tmp_path / name).done for name in "ab")
    assert a.manifest["chosen"] == b.manifest["chosen"] and a.manifest["search"]["rows"] == len(split.train)
    values = [[t["value"] for t in r.manifest["search"]["trials"]] for r in (a, b)]
    assert values[0] == values[1]
    p = [read_records(tmp_path / name).predictions(r.cell).p["y"] for name, r in (("a", a), ("b", b))]
    assert p[0].tobytes() == p[1].tobytes()


def test_trials_are_written_down_and_the_best_is_chosen(tmp_path):
    asked = recipe({"name": "ridge", "search": SEARCH}, {"name": "ridge", "label": "fixed", "params": {"alpha": 1e6}})
    go(tmp_path, asked)
    for record in read_records(tmp_path):
        if record.cell.method == "ridge":
            trials = record.manifest["search"]["trials"]
            best = min(trials, key=lambda t: t["value"])
            assert len(trials) == 6 and record.manifest["chosen"] == best["params"]
            assert record.manifest["search"]["metrics"] == {"y": "rmse"} and record.manifest["seconds"]["search"] > 0
    scores = score_records(read_records(tmp_path)).query("metric == 'rmse'").groupby("method")["value"].mean()
    assert scores["ridge"] < 0.5 * scores["fixed"], "a search finds what the worst value misses"


def test_every_kind_of_range_is_searched_and_trials_that_fail_lose(tmp_path):
    asked = recipe({"name": "steps", "search": {"trials": 12, "fraction": 0.3}})
    go(tmp_path, asked, only={"fold": ["0"]})
    (record,) = read_records(tmp_path)
    trials = record.manifest["search"]["trials"]
    assert {t["params"]["kind"] for t in trials} == {"a", "b"} and record.manifest["chosen"]["depth"] <= 2
    failed = [t for t in trials if t["params"]["depth"] > 2]
    assert failed and all(t["value"] is None and "too deep" in t["reason"] for t in failed)


def test_a_search_is_the_same_each_time_and_another_for_another_seed(tmp_path):
    asked = recipe({"name": "ridge", "search": SEARCH}, seeds=[0, 1])
    for name in "ab":
        go(tmp_path / name, asked, only={"fold": ["0"]})
    a, b = ([r.manifest["search"]["trials"][3]["params"] for r in read_records(tmp_path / n)] for n in "ab")
    assert a == b and a[0] != a[1]


def test_methods_that_stop_early_get_a_tenth_of_the_training_rows(tmp_path):
    log = tmp_path / "log"
    early = {"name": "early", "params": {"log": str(log)}}
    splits = [{"splitter": "random", "folds": 5}, {"splitter": "random", "label": "with-valid"}]
    go(tmp_path / "out", recipe(early, split=splits), only={"fold": ["0"]})
    fits = [json.loads(line) for line in log.read_text().splitlines() if "fit" in line]
    assert sorted((len(fit["fit"]), fit["valid"]) for fit in fits) == [(43, 5), (48, 6)]


@pytest.mark.slow
def test_shuffled_labels_score_at_chance(tmp_path):
    table = small(240, kind="binary")
    shuffled = replace(table, y=np.random.default_rng(0).permutation(table.y))
    asked = recipe("ridge", {"name": "ridge", "label": "searched", "search": QUICK}, datasets=["true", "shuffled"])
    go(tmp_path, asked, {"true": table, "shuffled": shuffled})
    scores = score_records(read_records(tmp_path)).query("metric == 'roc_auc'")
    mean = scores.groupby(["dataset", "method"])["value"].mean()
    assert (mean["true"] > 0.95).all() and (abs(mean["shuffled"] - 0.5) < 0.08).all()


def test_a_feature_that_knows_the_labels_of_test_rows_alone_does_not_help(tmp_path):
    """Labels are noise, and a feature is the label in the test rows, zero elsewhere: who learns from it has peeked."""
    rng, n = np.random.default_rng(0), 200
    y = rng.normal(size=n)
    split = [{"splitter": "random", "seeds": [0]}]
    asked = recipe("ridge", {"name": "ridge", "label": "searched", "search": SEARCH}, split=split)
    go(tmp_path / "a", asked, {"small": noise(y, np.zeros(n))})
    known = Split.load(file_of_split(tmp_path / "a", "small", "random", 0, 0))
    told = np.zeros(n)
    told[known.test] = y[known.test]
    go(tmp_path / "b", asked, {"small": noise(y, told)})
    assert (Split.load(file_of_split(tmp_path / "b", "small", "random", 0, 0)).test == known.test).all()
    values = [score_records(read_records(tmp_path / name)).query("metric == 'rmse'")["value"] for name in "ab"]
    assert values[0].to_list() == values[1].to_list() and min(values[1]) > 0.9 * y[known.test].std()


def test_a_feature_that_knows_all_labels_does_help(tmp_path):
    y = np.random.default_rng(0).normal(size=200)
    go(tmp_path, recipe("ridge", split=[{"splitter": "random"}]), {"small": noise(y, y)})
    value = score_records(read_records(tmp_path)).query("metric == 'rmse'")["value"].item()
    assert value < 0.1, "or the test above could not fail"


def noise(y: np.ndarray, feature: np.ndarray) -> Table:
    """Molecules whose labels follow nothing but, perhaps, a feature."""
    smiles = list(small(len(y)).smiles)
    return make_table(smiles, targets=(Target("y"),), y=y, features=feature[:, None], feature_names=("told",))
