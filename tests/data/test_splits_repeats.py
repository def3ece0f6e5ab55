"""Repeated cross-validation: groups whole, every row tested once a repeat, folds of one class drawn anew or marked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.chem.identity import molecule_keys
from molgraph.data.sources.builtin import nci
from molgraph.data.splits import Split, kfold, one_class, repeated_kfold, split_table
from molgraph.data.splits.folds import MOST_DRAWS
from molgraph.data.table import Table, make_table

CHAINS = ["C" * n for n in range(1, 61)]


def labelled(y: np.ndarray, kind: str = "binary") -> Table:
    y = np.asarray(y, dtype=float).reshape(len(CHAINS), -1)
    classes = ("a", "b", "c") if kind == "multiclass" else ()
    return make_table(CHAINS, targets=tuple(Target(f"t{j}", kind, classes=classes) for j in range(y.shape[1])), y=y)


def test_each_repeat_tests_every_row_once_with_forms_together() -> None:
    table = make_table(["C1CC", *nci().smiles[::25], "CCO.Cl", "CCO"])
    parents = molecule_keys(table.smiles, stereo=False).values
    splits = repeated_kfold(table, repeats=3, k=4, seed=2)
    assert [(s.params["repeat"], s.params["fold"]) for s in splits] == [(r, f) for r in range(3) for f in range(4)]
    for r in range(3):
        tested = np.concatenate([s.test for s in splits[4 * r : 4 * r + 4]])
        assert sorted(tested.tolist()) == list(range(1, len(table)))
    for s in splits:
        assert len(s.valid) == 0 and not set(parents[s.train]) & set(parents[s.test])
        assert s.params["draws"] == 1 and "one_class" not in s.params
    assert len({s.hash for s in splits}) == 12
    assert [s.hash for s in splits] == [s.hash for s in repeated_kfold(table, repeats=3, k=4, seed=2)]
    assert set(splits[0].test) != set(splits[4].test)


def test_the_first_repeat_is_the_plain_cross_validation() -> None:
    table = make_table(CHAINS)
    once, plain = repeated_kfold(table, 1, 5, seed=3), kfold(table, 5, "random", seed=3, with_valid=False)
    assert [s.test.tolist() for s in once] == [s.test.tolist() for s in plain]
    assert "draws" not in plain[0].params


@pytest.mark.parametrize("splitter", ["scaffold/balanced", "scaffold/generic", "cluster/butina"])
def test_other_groups_stay_whole_too(splitter: str) -> None:
    table = make_table(nci().smiles[::40])
    splits = repeated_kfold(table, 2, 3, splitter)
    assert {s.groups for s in splits} == {splits[0].groups} and splits[0].groups < len(table)


def test_folds_of_one_class_are_drawn_anew_by_the_recorded_rule() -> None:
    y = np.zeros(len(CHAINS))
    y[:7] = 1  # seven positives in five folds: most draws leave a fold without one
    splits = repeated_kfold(labelled(y), repeats=4, k=5)
    draws = [s.params["draws"] for s in splits[::5]]
    assert max(draws) > 1 and max(draws) < MOST_DRAWS
    for s in splits:
        assert len(np.unique(y[s.test])) == 2 and "one_class" not in s.params
    assert {s.params["draws"] for s in splits[:5]} == {draws[0]}


def test_a_target_that_cannot_come_right_is_marked_and_costs_no_draws() -> None:
    y = np.zeros((len(CHAINS), 3))
    y[:3, 0] = 1  # three positives, five folds
    y[::2, 1] = 1
    y[:, 2] = np.nan
    splits = repeated_kfold(labelled(y), repeats=2, k=5)
    assert {s.params["draws"] for s in splits} == {1}
    for s in splits:
        lost = s.params["one_class"]["test"].split(", ")
        assert "t2" in lost and "t1" not in lost and ("t0" in lost) == (len(np.unique(y[s.test, 0])) == 1)
        assert s.params["one_class"]["train"] == "t2"
        assert one_class(labelled(y), s) == {part: names.split(", ") for part, names in s.params["one_class"].items()}


def test_draws_end(tmp_path) -> None:
    y = np.zeros((len(CHAINS), 30))  # thirty tasks of five positives each: no draw can serve them all
    for j in range(30):
        y[(np.arange(5) * 7 + j) % len(CHAINS), j] = 1
    splits = repeated_kfold(labelled(y), repeats=1, k=5)
    assert splits[0].params["draws"] == MOST_DRAWS
    assert any("one_class" in s.params for s in splits)
    splits[0].save(tmp_path / "s.json")
    again = Split.load(tmp_path / "s.json")
    assert again.params == splits[0].params and again.hash == splits[0].hash


def test_kfold_draws_anew_too_and_says_so() -> None:
    y = np.zeros(len(CHAINS))
    y[:7] = 1
    found = [kfold(labelled(y), 5, "random", seed) for seed in range(4)]
    assert all(len(np.unique(y[s.test])) == 2 == len(np.unique(y[s.train])) for splits in found for s in splits)
    assert any("draws" in splits[0].params for splits in found)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=60, max_size=60), st.integers(2, 5), st.booleans())
def test_marks_are_what_one_class_finds(labels: list[float], k: int, valid: bool) -> None:
    table = labelled(np.array(labels), "multiclass")
    for s in kfold(table, k, "random", with_valid=valid and k > 2):
        marked = {part: names.split(", ") for part, names in s.params.get("one_class", {}).items()}
        found = one_class(table, s)
        assert marked == {part: names for part, names in found.items() if part != "valid"}


def test_splits_that_are_made_once_are_looked_at_too() -> None:
    table = labelled(np.array([0.0] * 50 + [1.0] * 10))
    words = np.array(["train"] * 40 + ["test"] * 20, dtype=object)
    assert one_class(table, split_table(table, "column", column=words)) == {"train": ["t0"]}
    assert one_class(make_table(CHAINS), split_table(make_table(CHAINS), "random")) == {}


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(BadValueError, match="repeats is 0"):
        repeated_kfold(make_table(CHAINS), repeats=0)
    with pytest.raises(UnsupportedError, match="scaffold/deepchem"):
        repeated_kfold(make_table(CHAINS), splitter="scaffold/deepchem")
