"""Ranges: what they hold, what they give, what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molgraph.base.search_space import Categorical, Float, Int, Range

RANGES: list[Range] = [
    Float(-2.0, 3.0),
    Float(1e-4, 10.0, log=True),
    Int(0, 7),
    Int(1, 1000, log=True),
    Categorical((None, "a", 3)),
]


@pytest.mark.parametrize("range_", RANGES)
@given(share=st.floats(0, 1))
def test_what_a_range_gives_it_holds(range_: Range, share: float) -> None:
    assert range_.holds(range_.at(share))


def test_the_ends_are_reached_and_the_middle_follows_the_scale() -> None:
    for range_ in RANGES[:4]:
        assert (range_.at(0.0), range_.at(1.0)) == (range_.low, range_.high)
    assert Float(1.0, 100.0, log=True).at(0.5) == pytest.approx(10)
    assert Float(1.0, 100.0).at(0.5) == pytest.approx(50.5)
    assert {Categorical(("a", "b")).at(s / 10) for s in range(11)} == {"a", "b"}


def test_what_lies_outside_is_not_held() -> None:
    assert not Float(0.0, 1.0).holds(1.1) and not Float(0.0, 1.0).holds("x") and not Float(0.0, 1.0).holds(True)
    assert not Int(0, 3).holds(1.5) and not Int(0, 3).holds(True) and Int(0, 3).holds(3)
    assert not Categorical((1, "a")).holds(True) and not Categorical((1, "a")).holds(1.0)


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
