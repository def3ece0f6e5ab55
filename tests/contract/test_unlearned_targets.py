"""Tables of sparse targets: one that no training label teaches is left out with a reason, by each base class."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import molgraph
from molgraph.api.sklearn_adapters import InputError
from molgraph.base.contracts import Method, State, Target
from molgraph.base.errors import DamagedModelError, EmptyError, LabelError
from molgraph.data.labels import check_targets
from molgraph.data.table import Table, make_table
from molgraph.evaluate import metrics
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.modelwriter import plain
from tests.contract.test_methods import SHARED, quick
from tests.tiny import series

NAN = float("nan")
N = 40
CLASSES = ("p", "q", "r")
LEARNT = {"half": Target("half", "binary"), "size": Target("size")}
#: name -> target, its label in the training rows that have one, how many of them have one, what is said
FAULTY = {
    "rare": (Target("rare", "binary"), 0.0, 31, "only class 0 among 31 training labels"),
    "one": (Target("one", "multiclass", classes=CLASSES), 1.0, 12, "only class q among 12 training labels"),
    "none": (Target("none", "binary"), NAN, 0, "no training label"),
    "flat": (Target("flat"), 2.5, 30, "all 30 training labels are 2.5"),
    "blank": (Target("blank"), NAN, 0, "no training label"),
    "single": (Target("single"), 7.0, 1, "one training label alone"),
}


def sparse(n: int = N, start: int = 0, faulty: tuple[str, ...] = tuple(FAULTY), *, vary: bool = False) -> Table:
    """Two targets to learn with a quarter of their labels missing, between others; ``vary``: theirs vary here."""
    rng = np.random.default_rng(start)
    smiles = list(series(n, start).smiles)
    y = {"half": np.arange(n) % 2.0, "size": np.array([float(len(s)) for s in smiles])}
    for values in y.values():
        values[rng.random(n) < 0.25] = NAN
    targets = dict(LEARNT)
    for name in faulty:
        target, label, known, _ = FAULTY[name]
        targets[name], y[name] = target, np.where(np.arange(n) < known, label, NAN)
        if vary:
            y[name] = np.arange(n) % 2.0
    order = sorted(targets)  # the faulty ones stand before, between and after
    smiles[-1] = "not a molecule"
    return make_table(smiles, targets=tuple(targets[k] for k in order), y=np.column_stack([y[k] for k in order]))


def columns_of(table: Table, names: tuple[str, ...]) -> np.ndarray:
    """bool [columns]: those of some targets."""
    return np.array([t.name in names for t in table.row_targets for _ in t.columns])


@pytest.fixture(scope="module", params=SHARED)
def fitted(request: pytest.FixtureRequest) -> Method:
    """Each of them, fitted once, with a validation part in which all targets vary."""
    return quick(request.param).fit(sparse(), sparse(20, 100, vary=True))


@pytest.mark.slow
def test_the_others_are_learnt_and_these_are_empty_with_a_reason(fitted: Method) -> None:
    table = sparse(20, 200, vary=True)
    found = fitted.predict(table)
    assert found.ok.tolist() == [True] * 19 + [False]
    learnt = columns_of(table, tuple(LEARNT))
    assert np.isfinite(found.value[found.ok][:, learnt]).all() and np.isnan(found.value[:, ~learnt]).all()
    assert found.unlearned == {name: FAULTY[name][3] for name in sorted(FAULTY)}
    assert set(found.reason[found.ok]) == {
        "not learned: blank (no training label); flat (all 30 training labels are 2.5); none (no training label); "
        "and 3 more"
    }
    assert "not learned" not in found.reason[-1] and found.reason[-1]
    if found.spread is not None:
        known = np.isfinite(found.spread[found.ok])  # a classifier's probability may come without one
        assert known[:, columns_of(table, ("size",))].all() and not known[:, ~learnt].any()


def test_the_note_is_kept_in_the_file(fitted: Method, tmp_path) -> None:
    said = [note for note in fitted.notes if "not learned" in note]
    assert said[0] == "target 'blank' is not learned: no training label; its predictions are empty"
    assert len(said) == len(FAULTY)
    table = sparse(20, 200)
    path = Model(fitted, targets=table.row_targets).save(tmp_path / "model.mgm")
    assert verify(path).largest_gap == 0
    again = load_model(path).method
    assert again.notes == fitted.notes
    a, b = fitted.predict(table), again.predict(table)
    assert a.value.tobytes() == b.value.tobytes() and list(a.reason) == list(b.reason) and a.unlearned == b.unlearned


def test_a_score_says_why_there_is_none(fitted: Method) -> None:
    table = sparse(20, 200, vary=True)
    for score in metrics.score(table, fitted.predict(table)):
        if score.target in FAULTY:
            assert np.isnan(score.value) and score.note == f"{score.target} is not learned: {FAULTY[score.target][3]}"
        else:
            assert "not learned" not in score.note and (np.isfinite(score.value) or score.note)


def test_a_file_that_names_other_targets_is_refused(fitted: Method) -> None:
    state = fitted.state()
    meta = json.loads(json.dumps(plain(state.meta)))
    inner = meta["members"][0] if "members" in meta else meta
    names = [t["name"] for t in inner["targets"]]
    for odd in ({"other": "why"}, dict.fromkeys(names, "why"), {"rare": 3}, 7, "rare"):
        inner["unlearned"] = odd
        with pytest.raises(DamagedModelError):
            type(fitted).from_state(State(state.arrays, meta))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_what_stands_in_an_empty_target_changes_nothing(name: str) -> None:
    """The same fit, to the bit, whatever constant it holds; for a classical method also as if it were not there."""
    some = sparse(faulty=("flat",))
    at = [t.name for t in some.row_targets].index("flat")
    y = some.y.copy()
    y[:, at] = np.where(np.isnan(y[:, at]), NAN, -7.0)
    valid = sparse(20, 100, ("flat",), vary=True)
    new = sparse(20, 200, ("flat",))
    a = quick(name).fit(some, valid).predict(new)
    b = quick(name).fit(replace(some, y=y), sparse(20, 100, ("flat",))).predict(new)
    assert a.value.tobytes() == b.value.tobytes()
    if name in ("random_forest", "mean"):
        without = quick(name).fit(sparse(faulty=())).predict(new)
        np.testing.assert_array_equal(np.delete(a.value, at, axis=1), without.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("faulty", FAULTY)
def test_each_fault_alone_beside_others(name: str, faulty: str) -> None:
    method = quick(name).fit(sparse(faulty=(faulty,)))
    found = method.predict(sparse(8, 200, (faulty,)))
    why = FAULTY[faulty][3]
    assert found.unlearned == {faulty: why}
    np.testing.assert_array_equal(np.isnan(found.value[0]), columns_of(sparse(8, 200, (faulty,)), (faulty,)))


@pytest.mark.parametrize("name", SHARED)
def test_where_nothing_is_left_to_learn_it_is_an_error_in_the_same_words(name: str) -> None:
    table = sparse().with_targets(["rare", "flat", "none"])
    with pytest.raises(LabelError, match="rare: only class 0") as caught:
        quick(name).fit(table)
    assert caught.value.hint
    with pytest.raises(LabelError, match=r"'flat' is 2\.5"):
        quick(name).fit(table.with_targets(["flat"]))


@pytest.mark.parametrize("name", SHARED)
def test_labels_of_rows_that_weigh_nothing_do_not_count(name: str) -> None:
    y = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 3.0], [NAN, 4.0]])
    targets = (Target("a", "binary"), Target("b"))
    table = make_table(["C", "CC", "CCC", "CCCC"], targets=targets, y=y, weights=np.array([1.0, 1.0, 0.0, 1.0]))
    assert check_targets(table).unlearned == {"a": "only class 0 among 2 training labels"}
    assert list(quick(name).fit(table).predict(table).unlearned) == ["a"]
    with pytest.raises(EmptyError, match="weight"):
        quick(name).fit(replace(table, weights=np.zeros(4)))


@pytest.mark.slow
def test_a_whole_run_goes_on_and_says_so(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    """One assay of three has no active molecule in the train part; its scores, report, file and rows say why."""
    n = 60
    smiles = list(series(n).smiles)
    y = np.column_stack([np.arange(n) % 2, np.arange(n) == n - 1, np.arange(n, dtype=float) ** 0.5])
    words = np.array(["train"] * 44 + ["valid"] * 6 + ["test"] * 10, dtype=object)
    targets = (Target("a", "binary"), Target("rare", "binary"), Target("c"))
    table = make_table(smiles, targets=targets, y=y, split=words)
    for model in ("dmpnn", "random_forest"):
        caplog.clear()
        with caplog.at_level("INFO", logger="molgraph"):
            result = molgraph.train(table, split_column="split", model=model, epochs=1)
        why = "only class 0 among 44 training labels"
        note = f"target 'rare' is not learned: {why}; its predictions are empty"
        assert note in result.model.card.notes and caplog.messages.count(note) == 1
        rows = result.score_rows
        assert (rows["note"][rows["target"] == "rare"] == f"rare is not learned: {why}").all()
        assert "rare" in result.verdict and set(result.best) == {"a", "c"}
        result.report(tmp_path / "report.html")
        assert why in (tmp_path / "report.html").read_text(encoding="utf-8")
        path = result.save(tmp_path / f"{model}.mgm")
        (tmp_path / "new.csv").write_text("smiles\nCCO\noops\n")
        molgraph.predict_file(path, tmp_path / "new.csv", tmp_path / "out.csv")
        lines = (tmp_path / "out.csv").read_text().splitlines()
        assert lines[1].endswith(f",ok,not learned: rare ({why})") and ",unreadable," in lines[2]


def test_scikit_learn_is_given_no_half_answer() -> None:
    y = np.column_stack([np.arange(6.0), np.ones(6)])
    with pytest.raises(InputError, match="'y1'"):
        molgraph.MoleculeRegressor("random_forest", n_estimators=3).fit(["C" * (i + 1) for i in range(6)], y)
