"""Labels in the place of predictions, of classes and of numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from molgraph.evaluate.label_check import perfect


def test_classes_that_are_told_apart_without_a_slip_are_labels() -> None:
    y = np.arange(24) % 2
    p = 0.2 + 0.6 * y
    assert "every molecule of class 1" in perfect(p, y, True, 0.0)
    assert not perfect(np.where(np.arange(24) == 1, 0.1, p), y, True, 0.0), "a slip"
    assert not perfect(np.full(24, 0.5), y, True, 0.0)
    sure = np.repeat([0.0, 1.0], 100)
    flipped = np.where(np.arange(200) == 7, 1.0, sure)
    assert "the measured class 99% in the rows" in perfect(flipped, sure, True, 0.0)
    assert not perfect(np.where(np.arange(200) % 20 == 7, 1.0 - sure, sure), sure, True, 0.0), "one in twenty"
    several = np.arange(90) % 3
    assert "measured class 100%" in perfect(np.eye(3)[several], several, False, 0.0)
    assert not perfect(np.full((90, 3), 1 / 3), several, False, 0.0)
    noisy = y + 0.1 * np.random.default_rng(0).normal(size=24)
    assert "repeats of the measurement" in perfect(noisy, y.astype(float), False, 0.6) and not perfect(
        noisy, y, False, 0.0
    )


@pytest.mark.parametrize("changed", [lambda y: 1.5 * y + 0.3, np.negative, lambda y: np.exp(2 * y), lambda y: y**3])
def test_labels_in_another_unit_or_order_are_found(changed: Callable[[np.ndarray], np.ndarray]) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    assert "above 0.9999" in perfect(changed(y).astype(np.float32), y.astype(np.float32), False, 0.0)
    assert not perfect(changed(y + 0.1 * rng.normal(size=60)), y, False, 0.0), "predictions of R² 0.99"
    assert not perfect(np.zeros(60), y, False, 0.0)
