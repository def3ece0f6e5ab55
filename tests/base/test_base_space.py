"""Ranges: what they refuse."""

from __future__ import annotations

import pytest

from molgraph.base.search_space import Categorical, Float, Int


@pytest.mark.parametrize(
    "make",
    [
        lambda: Float(2.0, 1.0),
        lambda: Float(0.0, 1.0, log=True),
        lambda: Int(-1, 4, log=True),
        lambda: Float(0.0, float("inf")),
        lambda: Categorical(()),
    ],
)
def test_ranges_that_cannot_be_are_refused(make) -> None:
    with pytest.raises(ValueError, match=r"low is|no values"):
        make()
