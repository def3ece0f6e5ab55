"""Trials that every registered transform meets."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.registry import entry, names
from molgraph.generate.transforms.transform import Transform

X = np.array([-1e300, -50.0, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 7.0, 1e9, 1e300])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", names("transform"))
class TestEveryTransform:
    def make(self, name: str) -> Transform:
        cls = entry("transform", name).value
        made: Transform = cls(**cls.small)
        return made

    def test_says_what_it_is(self, name: str) -> None:
        found = entry("transform", name)
        low, high = self.make(name).span
        assert issubclass(found.value, Transform) and found.summary and found.value.__doc__ and low <= high

    def test_values_from_0_to_1(self, name: str) -> None:
        with np.errstate(all="ignore"):
            y = self.make(name)(X)
        assert y.shape == X.shape and y.dtype == np.float64 and (y >= 0).all() and (y <= 1).all() and np.ptp(y) > 0.5

    def test_each_value_counts_alone(self, name: str) -> None:
        transform, x = self.make(name), np.array([np.nan, 3.0, 1.0, np.inf, 2.0])
        y = transform(x)
        assert np.isnan(y[[0, 3]]).all() and y[1] == transform(x[1:2])[0] and y[4] == transform(np.array([2.0]))[0]
        assert np.array_equal(transform(x[::-1]), y[::-1], equal_nan=True) and transform(np.zeros(0)).shape == (0,)
