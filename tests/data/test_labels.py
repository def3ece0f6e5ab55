"""Labels that can be learnt, and the sentence for each that cannot."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.base.errors import EmptyError, LabelError
from molgraph.data.labels import check_labels, check_targets, misfits
from molgraph.data.table import make_table

NAN = float("nan")
REG, BIN = Target("r"), Target("b", "binary")
MULTI, BOUND = Target("m", "multiclass", classes=("x", "y", "z")), Target("u", "bounded", bounds=(-1.0, 3.0))
IDS = ("007", "b", "c", "d", "e", "f", "g", "h")

REFUSED = {
    "no value": (REG, [NAN, NAN, NAN], "'r' .*no value"),
    "one value": (REG, [NAN, 5, NAN], "'r' .*alone"),
    "constant": (REG, [3, NAN, 3], "'r' is 3"),
    "one class": (BIN, [1, 1, NAN], "'b' is 1"),
    "one class of several": (MULTI, [2, 2, 2], "'m' is z"),
    "infinite": (REG, [np.inf, 1, -np.inf], "'r' is infinite .*007, c$"),
    "beyond what a prediction can be": (REG, [1.0, -1e300, 2.0], "'r' is -1e\\+300 .* b, .*3.4e"),
    "infinite in many": (REG, [np.inf] * 8, "'r' is infinite .*007, b, c, d, e .*3 more$"),
    "labels 0/1/2": (BIN, [0, 1, 2], "'b' is 2 .* c;.*0 and 1"),
    "a class too many": (MULTI, [0, 1, 3], "'m' is 3 .* c;.*0 to 2"),
    "no class number": (MULTI, [0.5, 1, 2], "'m' is 0.5 .*007"),
    "out of bounds": (BOUND, [0, 4, 4], "'u' is 4 .* b, c;.*-1 and 3"),
    "no bounds": (Target("u", "bounded"), [0, 1, 2], "'u' .*no bounds"),
    "bounds the wrong way": (Target("u", "bounded", bounds=(1.0, 1.0)), [0, 1, 2], "'u' .*no bounds"),
    "a target of atoms": (Target("a", level="atom"), [0, 1, 2], "'a' .*each atom"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_targets_that_cannot_be_learnt(name: str) -> None:
    target, values, words = REFUSED[name]
    table = make_table(["C"] * len(values), targets=(target,), y=values, ids=IDS[: len(values)])
    with pytest.raises(LabelError, match=f"(?m){words}") as caught:
        check_targets(table)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("target", "values"), [(REG, [1, 2, NAN]), (BIN, [0, 1, NAN]), (MULTI, [0, NAN, 2]), (BOUND, [-1, 3, NAN])]
)
def test_targets_that_can(target: Target, values: list[float]) -> None:
    table = make_table(["C"] * 3, targets=(target,), y=values)
    found = check_targets(table)
    assert found.y is table.y and not found.unlearned


def test_rows_that_cannot_be_read_do_not_count() -> None:
    table = make_table(["C", None, "C", "oops"], targets=(REG,), y=[1, np.inf, 2, np.inf])
    with pytest.raises(LabelError, match="id 3"):
        check_targets(table)
    check_targets(table, np.array([True, True, True, False]))
    with pytest.raises(LabelError, match="alone"):
        check_targets(table, np.array([True, True, False, False]))
    with pytest.raises(EmptyError, match="4 rows"):
        check_targets(table, np.zeros(4, dtype=bool))
    with pytest.raises(LabelError, match="no target"):
        check_targets(make_table(["C", "CC"]))


def test_a_target_among_others_that_teaches_nothing_is_masked_with_a_reason() -> None:
    y = np.array([[1, 0, NAN, 5, 0], [2, 0, NAN, NAN, NAN], [3, NAN, NAN, 5, 1]], dtype=float)
    targets = (REG, BIN, Target("n"), Target("f"), Target("b2", "binary"))
    found = check_targets(make_table(["C", "CC", "CCC"], targets=targets, y=y))
    assert found.unlearned == {
        "b": "only class 0 among 2 training labels",
        "n": "no training label",
        "f": "all 2 training labels are 5",
    }
    np.testing.assert_array_equal(found.y[:, [0, 4]], y[:, [0, 4]])
    assert np.isnan(found.y[:, 1:4]).all() and y[0, 1] == 0
    with pytest.raises(LabelError, match="'b' is 2"):  # a wrong label is an error, however many targets
        check_targets(make_table(["C", "CC"], targets=(REG, BIN), y=[[1, 2], [2, 2]]))
    with pytest.raises(LabelError, match=r"'m' .*no classes"):
        check_targets(make_table(["C", "CC"], targets=(REG, Target("m", "multiclass")), y=[[1, NAN], [2, NAN]]))


def test_the_first_wrong_value_is_named_with_all_its_rows() -> None:
    y = np.array([[0.0], [7.0], [2.0], [7.0]])
    with pytest.raises(LabelError, match=r"is 7 .* b, d;"):
        check_labels((BIN,), y, np.array(IDS[:4], dtype=object))
    assert misfits(REG, y[:, 0])[0].size == 0
