"""Metrics against scikit-learn and scipy; scores that say what they stand on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from molgraph.base import registry
from molgraph.base.contracts import Kind, Metric, Prediction, Target
from molgraph.base.errors import LabelError, MissingColumnError, ShapeError, UnknownNameError, UnsupportedError
from molgraph.data.table import make_table
from molgraph.evaluate.metrics import (
    Score,
    default_metric,
    default_metrics,
    evaluate_metric,
    get_metric,
    score,
    scores_frame,
)

NAN = float("nan")
KINDS: tuple[Kind, ...] = ("regression", "bounded", "binary", "multiclass")
ORACLES: dict[str, Callable[..., float]] = {
    "rmse": lambda y, p, **k: sk.mean_squared_error(y, p, **k) ** 0.5,
    "mae": sk.mean_absolute_error,
    "r2": sk.r2_score,
    "spearman": lambda y, p: stats.spearmanr(y, p).statistic,
    "kendall": lambda y, p: stats.kendalltau(y, p).statistic,
    "ci": lambda y, p: _concordance(y, p),
    "roc_auc": sk.roc_auc_score,
    "prc_auc": sk.average_precision_score,
    "mcc": lambda y, p, **k: sk.matthews_corrcoef(y, _hard(p), **k),
    "accuracy": lambda y, p, **k: sk.accuracy_score(y, _hard(p), **k),
    "log_loss": lambda y, p, **k: sk.log_loss(y, p, labels=range(3 if p.ndim == 2 else 2), **k),
    "brier": lambda y, p, **k: sk.brier_score_loss(y, p, **k),
    "pearson": lambda y, p: stats.pearsonr(y, p).statistic,
    "balanced_accuracy": lambda y, p, **k: sk.balanced_accuracy_score(y, _hard(p), **k),
    "f1": lambda y, p, **k: sk.f1_score(y, _hard(p), **k),
}


def _concordance(y: np.ndarray, p: np.ndarray) -> float:
    """Every pair by itself, as DeepDTA's ``get_cindex`` counts them."""
    won = [(1 + np.sign(p[i] - p[j])) / 2 for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    return float(np.mean(won))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30))
def test_the_concordance_index_is_the_share_of_all_pairs_whatever_the_ties(rows: list[tuple[int, int]]) -> None:
    y, p = np.array(rows, dtype=float).T
    if np.ptp(y) == 0:
        assert "the same" in evaluate_metric(get_metric("ci"), y, p)[1]
    else:
        assert get_metric("concordance_index").function(y, p) == pytest.approx(_concordance(y, p), abs=1e-12)


def _hard(p: np.ndarray) -> np.ndarray:
    return p.argmax(axis=1) if p.ndim == 2 else p >= 0.5


def _rows(kind: str, seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if kind == "multiclass":
        p = rng.dirichlet(np.ones(3), n)
        return np.append(rng.integers(0, 3, n - 3), [0, 1, 2]).astype(float), p
    if kind == "binary":
        return np.append(rng.integers(0, 2, n - 2), [0, 1]).astype(float), rng.random(n).round(1)  # with ties
    y = rng.normal(size=n).round(1)
    return y, y + rng.normal(size=n).round(1)


@pytest.mark.parametrize("name", ORACLES)
def test_a_metric_is_its_oracle(name: str) -> None:
    metric = get_metric(name)
    for kind in metric.kinds:
        for seed in range(5):
            y, p = _rows(kind, seed)
            assert metric.function(y, p) == pytest.approx(ORACLES[name](y, p), rel=1e-9, abs=1e-12)


def test_every_registered_metric_has_an_oracle_and_a_true_direction() -> None:
    assert set(ORACLES) <= set(registry.names("metric"))
    for name in ORACLES:
        metric = get_metric(name)
        for kind in metric.kinds:
            y, p = _rows(kind, 0)
            perfect = np.eye(3)[y.astype(int)] if kind == "multiclass" else y
            good, bad = metric.function(y, perfect), metric.function(y, p)
            assert (good > bad) == metric.higher_is_better, name


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 40))
def test_roc_auc_by_ranks_is_the_curves(seed: int, n: int) -> None:
    y, p = _rows("binary", seed, n)
    assert get_metric("roc_auc").function(y, p) == pytest.approx(sk.roc_auc_score(y, p), abs=1e-12)


def _prediction(value: np.ndarray, *targets: Target) -> Prediction:
    table = make_table(["C"] * len(value))
    columns = np.asarray(value, float)
    columns = columns[:, None] if columns.ndim == 1 else columns
    return Prediction(table.ids, targets, columns, table.status, table.reason)


def test_rows_without_label_or_prediction_are_left_out_and_the_latter_said() -> None:
    target = Target("y")
    table = make_table(["C"] * 5, targets=(target,), y=[1, 2, NAN, 4, 5])
    (found,) = score(table, _prediction([1, 4, 9, NAN, NAN], target), metrics=["mae"])
    assert found == Score("y", "mae", 1.0, 2, "2 of 4 measured rows have no prediction")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_a_score_without_a_value_says_why(kind: Kind, n: int) -> None:
    classes = ("a", "b") if kind == "multiclass" else ()
    target = Target("y", kind, classes=classes)
    value = np.full((n, len(target.columns)), 0.5)
    for s in score(np.zeros(n), _prediction(value, target), metrics=None):
        assert np.isnan(s.value) == (n < 2 or s.metric in ("r2", "spearman", "roc_auc", "prc_auc", "mcc"))
        assert bool(s.note) == bool(np.isnan(s.value)), s
    assert len(score(np.zeros(n), _prediction(value, target))) == len(default_metrics(kind))


def test_one_class_is_named_in_the_note() -> None:
    (found,) = score(np.ones(3), _prediction([0.1, 0.2, 0.3], Target("y", "binary")), metrics=["roc_auc"])
    assert np.isnan(found.value) and "one class only (1)" in found.note


def test_targets_are_found_by_name_whatever_their_order() -> None:
    a, b = Target("a"), Target("b", "multiclass", classes=("x", "y", "z"))
    y = np.array([[0, 10.0], [2, 20.0], [1, 30.0]])
    table = make_table(["C"] * 3, targets=(b, a), y=y)
    value = np.column_stack([y[:, 1] + 1, np.eye(3)[[0, 2, 1]]])
    found = {(s.target, s.metric): s.value for s in score(table, _prediction(value, a, b), metrics=["mae", "accuracy"])}
    assert found == {("b", "accuracy"): 1.0, ("a", "mae"): 1.0}
    assert [s.target for s in score(table, _prediction(value, a, b), [a], ["mae"])] == ["a"]


def test_wrong_questions_are_refused() -> None:
    p = _prediction([1.0, 2.0], Target("y"))
    with pytest.raises(UnknownNameError, match="'rmsee'"):
        score(np.zeros(2), p, metrics=["rmsee"])
    with pytest.raises(UnsupportedError, match="roc_auc"):
        score(np.zeros(2), p, metrics=["roc_auc"])
    with pytest.raises(ShapeError, match=r"\(3, 1\)"):
        score(np.zeros(3), p)
    with pytest.raises(MissingColumnError, match="'yy'"):
        score(make_table(["C", "C"], targets=(Target("yy"),), y=[1, 2]), p)
    with pytest.raises(LabelError):
        score(make_table(["C", "C"]), p)


def test_a_metric_from_elsewhere_is_used_and_its_nan_noted() -> None:
    bias = Metric("bias", lambda y, p: float((p - y).mean()), False, ("regression",))
    nothing = Metric("nothing", lambda y, p: NAN, False, ("regression",))
    found = score(np.zeros(2), _prediction([1.0, 3.0], Target("y")), metrics=[bias, nothing])
    assert found[0].value == 2.0 and "not finite" in found[1].note


def test_defaults_judge_their_kind_and_frames_keep_every_score() -> None:
    for kind in KINDS:
        assert kind in default_metric(kind).kinds
    scores = score(np.array([1.0, 2.0]), _prediction([1.0, 2.0], Target("y")))
    assert scores_frame(scores)["metric"].tolist() == ["rmse", "mae", "r2", "spearman"]
    assert scores_frame({"a": scores, "b": scores})["method"].tolist() == ["a"] * 4 + ["b"] * 4
    assert list(scores_frame([]).columns) == ["target", "metric", "value", "n", "note"]
