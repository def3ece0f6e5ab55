"""``auto``: its weights are the best, out of fold means out of fold, the budget holds, a stopped run goes on."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from molgraph.auxiliary.auto import Auto
from molgraph.auxiliary.selection import out_of_fold
from molgraph.auxiliary.selection.greedy import greedy_weights, row_losses
from molgraph.auxiliary.selection.trials import meeting_limits
from molgraph.auxiliary.tabular import feature_cache
from molgraph.base.contracts import Target
from molgraph.base.errors import EmptyError
from tests.tiny import series

QUICK = ("linear", "random_forest(n_estimators=20)")


@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass"])
def test_greedy_weights_are_near_the_best_of_all_mixtures(kind):
    rng = np.random.default_rng(7)
    n, target = 200, Target("y", kind, classes=("a", "b", "c") if kind == "multiclass" else ())
    if kind == "regression":
        y = rng.normal(size=n)
        values = [y[:, None] + rng.normal(size=(n, 1)) * s for s in (0.6, 0.7, 1.5)]
    elif kind == "binary":
        y = rng.integers(0, 2, n).astype(float)
        values = [1 / (1 + np.exp(-(2 * y[:, None] - 1 + rng.normal(size=(n, 1)) * s))) for s in (0.6, 0.8, 2.0)]
    else:
        y = rng.integers(0, 3, n).astype(float)
        logits = [np.eye(3)[y.astype(int)] * 2 + rng.normal(size=(n, 3)) * s for s in (0.8, 1.0, 2.0)]
        values = [np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in logits]
    weights = greedy_weights(target, values, y)
    assert weights.sum() == pytest.approx(1)

    def loss(w):
        return row_losses(target, sum(share * value for share, value in zip(w, values, strict=True)), y).mean()

    grid = [(a / 25, b / 25, 1 - (a + b) / 25) for a, b in itertools.product(range(26), repeat=2) if a + b <= 25]
    best = min(map(loss, grid))
    alone = min(loss(row) for row in np.eye(3))
    assert loss(weights) - best < 0.05 * (alone - best) + 1e-9, "mixing gains nearly all that it can"


def test_rows_are_predicted_by_models_that_did_not_see_them():
    table = series(60)
    shuffled = table.take(range(60))
    shuffled = type(table)(**{**vars(shuffled), "y": np.random.default_rng(0).permutation(table.y)})
    auto = Auto(methods=("knn(k=1)",), folds=3, split="random").fit(shuffled)
    assert auto.held_out is not None
    held, seen = auto.held_out.prediction.value[:, 0], auto.predict(shuffled).value[:, 0]
    y = shuffled.y[:, 0]
    assert np.corrcoef(held, y)[0, 1] < 0.4 < 0.6 < np.corrcoef(seen, y)[0, 1], "labels are noise: only memory knows"


def test_features_are_computed_once_for_all_folds_and_methods(monkeypatch):
    table, kept, write = series(90), Counter(), feature_cache._write
    monkeypatch.setattr(
        feature_cache, "_write", lambda at, keys, x: kept.update({at.name: len(keys)}) or write(at, keys, x)
    )
    auto = Auto(methods=("xgboost", "random_forest(n_estimators=5)"), folds=3, split="random").fit(table)
    assert set(kept.values()) == {len(table)}, "no molecule twice"
    assert all(member.store is None for member in auto.members), "the folder of the features is gone"


def test_what_was_stopped_goes_on_with_the_same_result(tmp_path, monkeypatch):
    table = series(40)
    whole = Auto(methods=QUICK, folds=3, split="random").fit(table, workdir=tmp_path / "a").predict(table).value
    fits = []
    made = out_of_fold._made
    monkeypatch.setattr(out_of_fold, "_made", lambda *a: fits.append(a[0].name) or made(*a))
    for last in (tmp_path / "a").rglob("fold-2.json"):
        last.unlink()
    again = Auto(methods=QUICK, folds=3, split="random").fit(table, workdir=tmp_path / "a")
    assert sorted(fits) == sorted(QUICK), "one fold of each"
    assert again.predict(table).value.tobytes() == whole.tobytes()
    shutil.rmtree(tmp_path / "a")


def test_a_bad_trial_ends_nothing_and_lack_of_time_is_a_reason(monkeypatch):
    table, made = series(40), out_of_fold._made

    def failing(candidate, settings):
        if candidate.name == "gp":
            raise RuntimeError("the matrix is not positive definite")
        return made(candidate, settings)

    monkeypatch.setattr(out_of_fold, "_made", failing)
    auto = Auto(methods=("linear", "gp"), folds=2, split="random").fit(table)
    reasons = auto.trials.set_index("method")["reason"]
    assert reasons["linear"] == "" and "positive definite" in reasons["gp"]
    with pytest.raises(EmptyError, match="time"):
        Auto(budget="0.000001s", methods=("dmpnn",), folds=2, split="random").fit(table)


def test_networks_get_the_epochs_for_which_there_is_time():
    auto = Auto(budget="12s", methods=("dmpnn(d_hidden=8)",), folds=2, split="random", threads=1).fit(series(60))
    assert 15 <= auto.members[0].epochs < 3000, "fewer than the usual 3,000 steps of one batch"
    assert auto.trials.iloc[-1]["seconds"] < 12 * 1.1


def test_limits_are_learnt_and_cost_nothing_where_they_are_met():
    table = series(240)
    y = table.y[:, 0]
    cut = np.quantile(y, 0.6)
    above = y > cut
    limits = np.full((240, 1, 2), np.nan)
    limits[above, 0] = cut, np.inf
    censored = replace(table, y=np.where(above, np.nan, y)[:, None], limits=limits)
    met = meeting_limits(np.array([cut + 3, cut - 3] * 120)[:, None], censored, censored.row_targets)[:, 0]
    assert (met[above] <= cut).all() and set(met[~above]) == {cut + 3, cut - 3}
    how = {"methods": ("linear", "xgboost(n_estimators=40, n_bits=256)"), "folds": 3, "split": "random"}
    auto = Auto(**how).fit(censored)
    assert not auto.trials["reason"].any() and np.isfinite(auto.trials["error of pActivity"]).all()
    dropped = Auto(**how).fit(replace(censored, limits=None))
    errors = [np.abs(each.predict(table).value[above, 0] - y[above]).mean() for each in (auto, dropped)]
    assert errors[0] < 0.9 * errors[1]
