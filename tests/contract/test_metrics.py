"""Trials that every registered metric meets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from molgraph.base.contracts import Kind, Metric
from molgraph.base.registry import entry, get, names
from molgraph.evaluate.metrics import evaluate_metric

CASES = [(name, kind) for name in names("metric") for kind in get("metric", name).kinds]


def measured(kind: Kind, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Measured values [n], and predictions without a fault: values, or probabilities [n] or [n, classes]."""
    rng = np.random.default_rng(0)
    if kind == "multiclass":
        y = np.append(rng.integers(0, 3, n - 3), [0, 1, 2]).astype(float)
        return y, np.eye(3)[y.astype(int)]
    y = np.append(rng.random(n - 2) < 0.1, [0, 1]).astype(float) if kind == "binary" else rng.random(n)
    return y, y.copy()


def chance(kind: Kind, n: int) -> np.ndarray:
    """Predictions that know nothing of the measured values."""
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(3), n) if kind == "multiclass" else rng.random(n)


@pytest.mark.parametrize("name", names("metric"))
def test_says_what_it_is(name: str) -> None:
    found = entry("metric", name)
    assert isinstance(found.value, Metric) and found.value.name == name and found.value.kinds
    assert found.summary and found.value.needs, "models --kind metric shows both"


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_its_direction_is_true_and_no_prediction_beats_the_measured_values(name: str, kind: Kind) -> None:
    metric, (y, best) = get("metric", name), measured(kind)
    good, bad = metric.function(y, best), metric.function(y, chance(kind, len(y)))
    assert type(good) is float and math.isfinite(good) and math.isfinite(bad)
    assert good > bad if metric.higher_is_better else good < bad


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_order_of_rows_changes_nothing(name: str, kind: Kind) -> None:
    metric, (y, _) = get("metric", name), measured(kind)
    p, order = chance(kind, len(y)), np.random.default_rng(2).permutation(len(y))
    before = y.copy(), p.copy()
    assert metric.function(y[order], p[order]) == pytest.approx(metric.function(y, p), rel=1e-9)
    assert np.array_equal(y, before[0]) and np.array_equal(p, before[1]), "it changes nothing that it is given"


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_rows_that_give_it_no_value_are_answered_with_a_reason(name: str, kind: Kind) -> None:
    metric, (y, best) = get("metric", name), measured(kind)
    same = np.full(4, y[0])
    for few in (same, same[:1], same[:0]):
        value, note = evaluate_metric(metric, few, best[: len(few)])
        assert math.isfinite(value) or note
