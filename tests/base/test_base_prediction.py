"""A prediction as a frame: every column under a name of its own."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.contracts import Prediction, Target


def prediction(*names: str, spread: bool = True, interval: bool = False, n: int = 2, **more: object) -> Prediction:
    ids = np.array([str(i) for i in range(n)], dtype=object)
    value = np.arange(n * len(names), dtype=float).reshape(n, len(names))
    status, reason = np.full(n, "ok", dtype=object), np.full(n, "", dtype=object)
    fields: dict = {"spread": value + 100 if spread else None, "interval": (value - 1, value + 1) if interval else None}
    return Prediction(ids, tuple(Target(name) for name in names), value, status, reason, **fields | more)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a", "b"), ["a", "a_spread", "b", "b_spread"]),
        (("a", "a_spread"), ["a_predicted", "a_predicted_spread", "a_spread", "a_spread_spread"]),
        (("a_spread", "a"), ["a_spread", "a_spread_spread", "a_predicted", "a_predicted_spread"]),
        (
            ("id", "id_predicted"),
            ["id_predicted_predicted", "id_predicted_predicted_spread", "id_predicted", "id_predicted_spread"],
        ),
        (
            ("status", "input"),
            ["status_predicted", "status_predicted_spread", "input_predicted", "input_predicted_spread"],
        ),
    ],
)
def test_no_column_is_lost_to_another_of_its_name(names: tuple[str, ...], expected: list[str]) -> None:
    made = prediction(*names)
    frame = made.to_frame()
    assert list(frame) == ["id", *expected, "status", "reason"]
    assert frame[expected].to_numpy()[0].tolist() == [0, 100, 1, 101]


def test_classes_intervals_and_extras_are_named_apart_too() -> None:
    classes = Target("c", "multiclass", classes=("x", "x_low"))
    made = prediction("c:x", "k", "l", spread=False, interval=True, extra={"k": np.array([7.0, 8.0])})
    made = Prediction(**{**vars(made), "targets": (Target("c:x"), classes)})
    frame = made.to_frame()
    assert frame.columns.is_unique and len(frame.columns) == 1 + 5 + 1 + 2  # classes have no interval
    assert frame["k"].tolist() == [7.0, 8.0] and frame["c:x_low"].tolist() == [2.0, 5.0]


def test_a_plain_shell_shows_a_few_lines() -> None:
    made = prediction("a", "b", n=2000, unlearned={"b": "no label"})
    made.status[7:9] = "unreadable"
    head, *rows = repr(made).splitlines()
    assert head == "Prediction of a, b: 2,000 rows, 2 without a value, not learned: b"
    assert rows[0].split() == ["id", "a", "a_spread", "b", "b_spread", "status", "reason"] and len(rows) == 6
    assert len(repr(made)) < 800 and "array(" not in repr(made)
    assert repr(prediction(*"abcdefg", n=0)).startswith("Prediction of a, b, c, d, e and 2 more: 0 rows")
