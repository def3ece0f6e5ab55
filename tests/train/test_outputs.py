"""Scales, label weights and losses against scikit-learn and plain sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError, FormatError, MissingColumnError
from molgraph.nn.head import Head
from molgraph.train.outputs import LIMIT, DescriptorScale, Outputs, class_tables, label_weights

REG, BIN = Target("r"), Target("b", "binary")
MULTI = Target("m", "multiclass", classes=("x", "y", "z"))
BOUND = Target("u", "bounded", bounds=(-1.0, 3.0))


def test_scale_is_scikit_learns_and_passes_over_nan(rng):
    y = rng.normal(7, 3, (50, 2))
    y[rng.random(y.shape) < 0.3] = np.nan
    out = Outputs.fit((REG, Target("s")), y)
    scaler = StandardScaler().fit(y)
    np.testing.assert_allclose(out.mean, scaler.mean_)
    np.testing.assert_allclose(out.scale, scaler.scale_)


def test_constant_target_is_not_divided_by_zero():
    out = Outputs.fit((REG,), np.full((5, 1), 3.1))
    assert out.scale.tolist() == [1.0]
    np.testing.assert_allclose(out.labels(np.full((5, 1), 3.1)), 0, atol=1e-6)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_labels_and_values_are_inverse_for_regression(values):
    y = np.array(values)[:, None]
    out = Outputs.fit((REG,), y)
    np.testing.assert_allclose(out.values(out.labels(y)), y, rtol=1e-4, atol=1e-4 * max(1, np.abs(y).max()))


def test_values_are_probabilities(rng):
    out = Outputs.fit((BIN, MULTI, BOUND), np.array([[0, 1, 0.5], [1, 2, 2.5]]))
    value = out.values(rng.normal(0, 40, (30, 5)).astype(np.float32))
    assert ((value[:, :4] >= 0) & (value[:, :4] <= 1)).all()
    np.testing.assert_allclose(value[:, 1:4].sum(axis=1), 1)
    assert value[:, 4].min() >= -1 and value[:, 4].max() <= 3


def test_balanced_class_weights_are_scikit_learns(rng):
    y = np.column_stack([rng.random(60) < 0.2, rng.integers(0, 3, 60)]).astype(float)
    y[::7] = np.nan
    weights = label_weights(y, None, class_tables((BIN, MULTI), y, "balanced"))
    for j, classes in ((0, [0, 1]), (1, [0, 1, 2])):
        known = ~np.isnan(y[:, j])
        expected = compute_class_weight("balanced", classes=np.array(classes), y=y[known, j])
        np.testing.assert_allclose(weights[known, j], expected[y[known, j].astype(int)], rtol=1e-6)
        assert (weights[~known, j] == 0).all()


def test_class_weights_by_label_and_target():
    y = np.array([[0.0, 2.0], [1.0, 0.0]])
    tables = class_tables((BIN, MULTI), y, {"b": {1: 5}, "m": {"z": 3}})
    assert label_weights(y, None, tables).tolist() == [[1, 3], [5, 1]]
    assert label_weights(y[:, :1], None, class_tables((BIN,), y, {"0": 2})).tolist() == [[2], [1]]
    with pytest.raises(DataError, match="'2'"):
        class_tables((BIN,), y, {"2": 2})
    for bad in ({"0": -1}, {"0": "heavy"}, {"0": 0, "1": 0}, "often"):
        with pytest.raises(FormatError, match="class_weights"):
            class_tables((BIN,), y, bad)


def test_row_weights_have_mean_one():
    weights = label_weights(np.ones((3, 1)), np.array([1.0, 2.0, 3.0]), {})
    np.testing.assert_allclose(weights.ravel(), [0.5, 1, 1.5])


def test_scales_are_weighted_as_the_loss_is(rng):
    """A row of weight 2 is two rows."""
    y, features = rng.normal(5, 2, (9, 2)), rng.normal(3, 1, (9, 2))
    y[2, 1] = np.nan
    times = np.array([1, 2, 3, 1, 1, 2, 1, 4, 1])
    weighted = Outputs.fit((REG, Target("s")), y, None, times.astype(float))
    repeated = Outputs.fit((REG, Target("s")), y.repeat(times, axis=0))
    np.testing.assert_allclose(weighted.mean, repeated.mean)
    np.testing.assert_allclose(weighted.scale, repeated.scale)
    light = DescriptorScale.fit(features, ("a", "b"), times / 7)
    heavy = DescriptorScale.fit(features.repeat(times, axis=0), ("a", "b"))
    np.testing.assert_allclose(light.mean, heavy.mean)
    np.testing.assert_allclose(light.scale, heavy.scale)


def test_losses_of_every_kind(rng):
    y = np.column_stack([rng.normal(size=40), rng.integers(0, 2, 40), rng.integers(0, 3, 40), rng.uniform(-1, 3, 40)])
    out = Outputs.fit((REG, BIN, MULTI, BOUND), y)
    raw = rng.normal(size=(40, 6)).astype(np.float32)
    losses = (
        Head(3, out.targets).losses(torch.from_numpy(raw), torch.from_numpy(out.labels(y))).double().mean(dim=0).numpy()
    )
    value = out.values(raw)
    squares = ((value[:, 0] - y[:, 0]) / out.scale[0]) ** 2, ((value[:, 5] - y[:, 3]) / 4) ** 2
    expected = [squares[0].mean(), log_loss(y[:, 1], value[:, 1]), log_loss(y[:, 2], value[:, 2:5]), squares[1].mean()]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


@pytest.mark.parametrize(("target", "values"), [(REG, 1), (BIN, 1)])
def test_one_kind_alone_is_the_same_function(rng, target, values):
    """The short cut for tables of one kind agrees with target by target."""
    y = rng.integers(0, 2, (20, 3)).astype(float)
    out = Outputs.fit(tuple(Target(n, target.kind) for n in "pqr"), y)
    raw, labels = torch.randn(20, 3), torch.from_numpy(out.labels(y))
    short = Head(3, out.targets)
    long = Head(3, out.targets)
    assert short.single == target.kind
    long.single = None
    torch.testing.assert_close(short.losses(raw, labels), long.losses(raw, labels))


def test_descriptors_are_scaled_on_the_training_part_and_found_by_name(rng):
    features = rng.normal(50, 9, (40, 3))
    features[:, 2] = 4.0
    scale = DescriptorScale.fit(features, ("a", "b", "c"))
    expected = StandardScaler().fit_transform(features)
    np.testing.assert_allclose(scale.apply(features, ("a", "b", "c")), expected, atol=1e-5)
    swapped = scale.apply(features[:, ::-1], ("c", "b", "a"))
    np.testing.assert_array_equal(swapped, scale.apply(features, ("a", "b", "c")))
    with pytest.raises(MissingColumnError, match="'b'"):
        scale.apply(features[:, :1], ("a",))


def test_rows_of_many_descriptors_are_no_longer_than_rows_of_one(rng):
    """All in the same proportion, far values cut at the same number of standard deviations."""
    names, features = [f"d{i}" for i in range(100)], rng.normal(50, 9, (40, 100))
    scale = DescriptorScale.fit(features, tuple(names))
    features[0, 0] = 1e9
    plain, unit = (s.apply(features, tuple(names)) for s in (scale, scale.unit_rows()))
    np.testing.assert_allclose(unit, plain / 10, rtol=1e-5)
    assert plain[0, 0] == LIMIT and np.mean(np.sum(unit[1:] ** 2, axis=1)) == pytest.approx(1, rel=0.05)
    one = DescriptorScale.fit(features[1:, :1], ("d0",))
    np.testing.assert_array_equal(one.unit_rows().scale, one.scale)
