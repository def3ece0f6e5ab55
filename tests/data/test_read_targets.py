"""Targets: their notation, kinds found and given, missing words, and values that cannot be learnt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molgraph.base.contracts import Target
from molgraph.base.errors import AmbiguousColumnError, CellError, DataError, LabelError, MissingColumnError
from molgraph.data.read import read_table

nan = float("nan")


def read(values: list, asked: str = "y"):
    return read_table({"smiles": ["C" * (i + 1) for i in range(len(values))], "y": values}, targets=[asked])


@pytest.mark.parametrize(
    ("values", "asked", "kind", "expected"),
    [
        (["0", "1", ""], "y", "binary", [0, 1, nan]),
        (["0.0", "1.0", "1"], "y", "binary", [0, 1, 1]),
        (["True", "false", "NA"], "y", "binary", [1, 0, nan]),
        ([True, False, True], "y", "binary", [1, 0, 1]),
        (["0", "1", "2"], "y", "regression", [0, 1, 2]),
        (["0", "1", "1"], "y:regression", "regression", [0, 1, 1]),
        (
            ["", "NA", "n/a", "NaN", "null", "None", "-", "#N/A", " ", "+1.5", " 2e3 "],
            "y",
            "regression",
            [nan] * 9 + [1.5, 2000],
        ),
        ([1, None, 2.5], "y", "regression", [1, nan, 2.5]),
        (["red", "blue", "", "red"], "y:multiclass", "multiclass", [1, 0, nan, 1]),
        (["10", "9", "2.0", "2"], "y:multiclass", "multiclass", [2, 1, 0, 0]),
        ([2, 1, 2], "y:multiclass", "multiclass", [1, 0, 1]),
        ([2.0, None, 1.0], "y:multiclass", "multiclass", [1, nan, 0]),
    ],
)
def test_kinds_and_values(values: list, asked: str, kind: str, expected: list) -> None:
    table = read(values, asked)
    assert table.targets[0].kind == kind
    np.testing.assert_equal(table.y[:, 0], np.array(expected, dtype=float))


def test_classes_are_ordered_numbers_first() -> None:
    assert read(["b", "10", "9", "a"], "y:multiclass").targets[0].classes == ("9", "10", "a", "b")


@pytest.mark.parametrize(
    ("values", "asked", "kind", "noun", "hint"),
    [
        (["1", "high", "low"], "y", LabelError, "row 2: .*'high'", "y:multiclass"),
        (["1", "5,48"], "y", CellError, "'5,48' .*row 2", "with a point"),
        (["1.5", ">10"], "y", CellError, "'>10' .*row 2", "--qualifiers drop"),
        (["inf"], "y", LabelError, "'y' is infinite", ""),
        (["1e999"], "y", LabelError, "'y' is infinite", ""),
        ([float("-inf")], "y", LabelError, "'y' is infinite", ""),
        (["1_000"], "y", LabelError, "'1_000'", ""),
        (["٣"], "y", LabelError, "row 1: .*'٣'", ""),
        (["1", "2", "3"], "y:binary", LabelError, "row 2: .*'y' is 2", "y:multiclass"),
        (["1", "2"], "y:multi", LabelError, "'multi'", "NAME:multiclass"),
        (["1", "2"], "y:bounded", LabelError, "'y:bounded'", "Target"),
        (["1", "2"], "z", MissingColumnError, "'z'", "known: smiles, y"),
        (["1", "2"], "z:binary", MissingColumnError, "'z'", "known: smiles, y"),
        ([str(i) for i in range(1001)], "y:multiclass", LabelError, "'y'.* 1000", "y:regression"),
    ],
)
def test_clear_errors(values: list, asked: str, kind: type[DataError], noun: str, hint: str) -> None:
    with pytest.raises(kind, match=noun) as caught:
        read(values, asked)
    assert hint in caught.value.hint


def test_several_targets_and_ready_ones() -> None:
    data = {"smiles": ["C", "CC"], "a": ["1", "2"], "b:c": ["0", "1"], "k": ["x", "y"]}
    assert [t.name for t in read_table(data, targets="a,b:c").targets] == ["a", "b:c"]
    ready = Target("k", "multiclass", classes=("y", "x", "z"))
    table = read_table(data, targets=[ready, "a"])
    assert table.targets[0] == ready
    assert table.y.tolist() == [[1, 1], [0, 2]]
    with pytest.raises(LabelError, match="'k'"):
        read_table(data, targets=[Target("k", "multiclass", classes=("z",))])
    with pytest.raises(LabelError, match="3 and 4"):
        read_table(data, targets=[Target("a", "bounded", bounds=(3, 4))])
    with pytest.raises(AmbiguousColumnError, match="'a'"):
        read_table(data, targets=["a", "a:binary"])


@given(st.lists(st.floats(allow_infinity=False), min_size=1, max_size=30), st.booleans())
def test_numbers_survive_as_text_or_as_floats(values: list[float], as_text: bool) -> None:
    given_values = [repr(v) for v in values] if as_text else values
    np.testing.assert_array_equal(read(given_values, "y:regression").y[:, 0], np.array(values))
