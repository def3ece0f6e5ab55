"""Studies of many trainings: bias and variance, and width, on models whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import molgraph
from molgraph.auxiliary.study.bias_variance import BiasVarianceStudy, bias_variance
from molgraph.auxiliary.study.double_descent import DoubleDescentStudy, feature_curve
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.seeds import derive, generator
from molgraph.study.near_far import divide
from molgraph.study.random_features import noisy_plane, random_features
from molgraph.study.study import Subject
from molgraph.study.widths import at_width
from tests.systems.effect import Effect
from tests.tiny import series

FOREST, GIN = "random_forest(n_estimators=5)", "gin(depth=2, d_hidden=8, head_width=8)"


@pytest.mark.system("bias-variance-sweep", rung="exact")
def test_bias_and_variance_are_those_of_models_of_disjoint_parts(off: str) -> None:
    """Of trainings by hand; they add up to the squared error; off: all models learn from the same part."""
    study = BiasVarianceStudy(parts=3, repeats=2, disjoint=not off)
    found = study.run(Subject(series(200), FOREST), seed=4)
    assert found.sound, repr(found)
    parts = divide(series(200), study.rows, 4)
    p = np.zeros((2, 3, len(parts.test)))
    for k in range(2):
        pieces = np.array_split(generator(4, "division", k).permutation(len(parts.train)), 3)
        for i, piece in enumerate(pieces):
            method = at_width(Subject(None, FOREST), 0, derive(4, "fit", k, i))
            p[k, i] = method.fit(parts.train.take(np.sort(piece))).predict(parts.test).value[:, 0]
    y, near = np.asarray(parts.test.y)[:, 0], parts.similarity >= np.median(parts.similarity)
    variance = np.mean([((a - a.mean(axis=0)) ** 2).sum(axis=0) / 2 for a in p], axis=0)
    for row, here in zip(found.frame.itertuples(), (near, ~near), strict=True):
        np.testing.assert_allclose(row.variance, variance[here].mean())
        np.testing.assert_allclose(row.squared_error, ((p - y) ** 2).mean(axis=(0, 1))[here].mean())
        np.testing.assert_allclose(row.bias2 + row.variance, row.squared_error)


@pytest.mark.system("bias-variance-sweep", rung="exact")
def test_the_variance_of_two_models_is_unbiased(off: str) -> None:
    """Its mean over all pairs of draws from four numbers is their variance; off: divided by N in the place of N - 1."""
    values = np.array([0.0, 1.0, 3.0, 7.0])
    pairs = np.array([[[a], [b]] for a in values for b in values])
    found = pairs.var(axis=1).mean() if off else bias_variance(pairs, np.zeros(1)).variance[0]
    np.testing.assert_allclose(found, values.var())


@pytest.mark.system("bias-variance-sweep", rung="works")
def test_variance_peaks_where_features_are_as_many_as_rows(off: str, effect: Effect) -> None:
    """Against 10 and 600 features, whichever is larger, of 60 noisy rows a model; off: with a ridge.

    Beside: the squared bias, which falls from 10 to 600 features.
    """
    ratios, beside = [], {"bias at 10 less that at 600": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, y = noisy_plane(rng, 60 * 8, 20, 0.5)
        x_test, y_test = noisy_plane(rng, 500, 20, 0.0)
        both = []
        for width in (10, 60, 600):
            how = {"width": width, "ridge": 0.1 if off else 0.0}
            rows = range(0, len(x), 60)
            p = [random_features(rng, x[i : i + 60], y[i : i + 60], x_test, **how) for i in rows]
            both.append([part.mean() for part in bias_variance(np.array([p]), y_test)])
        ratios.append(both[1][1] / max(both[0][1], both[2][1]))
        beside["bias at 10 less that at 600"].append(both[0][0] - both[2][0])
    effect("variance at 60 features in multiples of that at 10 or 600", ratios, at_least=10, beside=beside)


@pytest.mark.system("deep-double-descent", rung="exact")
def test_features_as_many_as_rows_fit_all_labels_by_the_smallest_norm(off: str) -> None:
    """Predictions of the pseudo-inverse, with training error 0; off: with a ridge."""
    rng = np.random.default_rng(0)
    x, y = noisy_plane(rng, 40, 10, 1.0)
    found = random_features(np.random.default_rng(1), x, y, x, width=80, ridge=1.0 if off else 0.0)
    np.testing.assert_allclose(found, y, atol=1e-6)
    w = np.random.default_rng(1).normal(size=(10, 80)) / np.sqrt(10)
    new, a = rng.normal(size=(20, 10)), np.maximum(x @ w, 0)
    found = random_features(np.random.default_rng(1), x, y, new, width=80, ridge=1.0 if off else 0.0)
    np.testing.assert_allclose(found, np.maximum(new @ w, 0) @ np.linalg.pinv(a) @ y, atol=1e-6)


@pytest.mark.system("deep-double-descent", rung="exact")
def test_each_error_is_that_of_a_training_by_hand_on_exchanged_labels(off: str) -> None:
    """Off: no label is exchanged."""
    study = DoubleDescentStudy(widths="2+4+8", epochs=3, repeats=1, rows=150, noise=0.0 if off else 0.4)
    found = study.run(Subject(series(150), GIN), seed=2)
    assert found.sound and b"<svg" in found.draw("svg"), repr(found)
    parts = divide(series(150), 150, 2)
    y, rng = np.array(parts.train.y), generator(2, "noise")
    moved = rng.permutation(len(y))[: round(0.4 * len(y))]
    y[moved, 0] = y[rng.permutation(moved), 0]
    assert sorted(y[:, 0]) == sorted(np.asarray(parts.train.y)[:, 0]) and (y != parts.train.y).any()
    train = replace(parts.train, y=y)
    for i, width in enumerate((2, 4, 8)):
        method = at_width(Subject(None, GIN), width, derive(2, "fit", 0))
        method.set_params(epochs=3, patience=None, min_steps=0)
        p = method.fit(train).predict(parts.test).value
        np.testing.assert_allclose(found.frame["test_error"][i], np.mean((p - parts.test.y) ** 2) / y.var(), rtol=1e-6)


@pytest.mark.system("deep-double-descent", rung="works")
def test_the_error_peaks_at_as_many_features_as_rows(off: str, effect: Effect) -> None:
    """At 200 features against 2,000, beside the width of the peak; off: a tuned ridge."""
    widths = (50, 120, 170, 200, 230, 300, 2000)
    ratios, beside = [], {"width of the peak": [], "tuned ridge": []}
    for seed in range(3):
        plain = feature_curve(widths, n=200, noise=0.5, seed=seed, tuned=bool(off))
        tuned = feature_curve((200, 2000), n=200, noise=0.5, seed=seed, tuned=True)
        beside["width of the peak"].append(float(widths[int(plain.argmax())]))
        beside["tuned ridge"].append(float(tuned[0] / tuned[1]))
        ratios.append(float(plain[3] / plain[-1]))
        assert off or abs(beside["width of the peak"][-1] - 200) <= 30
    effect("error at 200 features in multiples of that at 2,000", ratios, at_least=2, beside=beside)


@pytest.mark.parametrize(
    ("words", "model", "error", "match"),
    [
        ("double-descent(widths=4+8)", GIN, BadValueError, "no peak"),
        ("double-descent(widths=a+b+c)", GIN, BadValueError, "whole numbers"),
        ("bias-variance(widths=4+8)", FOREST, UnsupportedError, "no width"),
    ],
)
def test_what_cannot_be_compared_is_refused(words: str, model: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        molgraph.study(words, series(120), model=model)
