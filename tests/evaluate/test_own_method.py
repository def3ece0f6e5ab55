"""Methods by import path: estimators, functions and odd ones, on the same folds as registered methods."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from molgraph.auxiliary.own_method import OwnMethod, make_any, make_own
from molgraph.base.code import code_hash
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, FormatError, UnknownNameError, UnsupportedError, UsageError
from molgraph.chem.fingerprints import morgan
from molgraph.data.table import make_table
from molgraph.evaluate.benchmark.recipe import BenchMethod
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from tests.evaluate.bench_tables import go, recipe, small
from tests.evaluate.own_methods import pipeline

FACTORY = "molgraph.auxiliary.own_method:make_any"
HERE = "tests.evaluate.own_methods"


def run(out: Path, *methods: dict[str, Any], **more: Any) -> dict[str, tuple[str, str]]:
    """Status and reason of the first fold, by row."""
    go(out, recipe(*methods, **more), only={"fold": ["0"]}, factory=FACTORY)
    return {r.cell.method: (r.manifest["status"], r.manifest["reason"]) for r in read_records(out)}


def test_estimators_functions_and_registered_methods_stand_on_one_board(tmp_path: Path) -> None:
    paths = ["sklearn.linear_model:Ridge", f"{HERE}:Nearest", f"{HERE}:carbons"]
    methods = [{"name": "mean"}, *({"path": path} for path in paths)]
    found = run(tmp_path, *methods)
    assert {row: status for row, (status, _) in found.items()} == dict.fromkeys(
        ("mean", "Ridge", "Nearest", "carbons"), "ok"
    )
    scores = score_records(read_records(tmp_path)).query("metric == 'rmse'").set_index("method")["value"]
    assert scores["carbons"] < 0.3 < scores["Ridge"] < scores["mean"]
    manifest = next(r.manifest for r in read_records(tmp_path) if r.cell.method == "Ridge")
    assert manifest["resolved"]["alpha"] == 1.0 and manifest["method"] == "sklearn.linear_model:Ridge"


def test_an_estimator_learns_fingerprints_and_each_target_by_itself() -> None:
    smiles = ["CCO", "CCN", "C(C", "c1ccccc1", "CCCC"]
    y = np.array([[1.0, 0], [2, 1], [3, 1], [np.nan, 1], [5, 0]])
    table = make_table(smiles, targets=(Target("a"), Target("b", "binary")), y=y)
    x = morgan(smiles).x
    found = make_own("sklearn.linear_model:Ridge", alpha=2.0).fit(table.with_targets(["a"])).predict(table)
    own = Ridge(alpha=2.0).fit(x[[0, 1, 4]], y[[0, 1, 4], 0])
    np.testing.assert_allclose(found.value[[0, 1, 3, 4], 0], own.predict(x[[0, 1, 3, 4]]))
    assert np.isnan(found.value[2, 0]) and found.status[2] == "unreadable"
    found = make_own("sklearn.linear_model:LogisticRegression").fit(table.with_targets(["b"])).predict(table)
    own = LogisticRegression().fit(x[[0, 1, 3, 4]], y[[0, 1, 3, 4], 1].astype(int))
    np.testing.assert_allclose(found.value[[0, 3], 0], own.predict_proba(x[[0, 3]])[:, 1])


def test_weights_are_given_to_a_fit_that_takes_them_and_else_told_of() -> None:
    smiles, y = ["CCO", "CCN", "c1ccccc1", "CCCC"], np.array([1.0, 2, 3, 5])
    table = make_table(smiles, targets=(Target("y"),), y=y, weights=np.array([1.0, 1e-6, 1, 1e-6]))
    made = make_own("sklearn.linear_model:Ridge").fit(table)
    own = Ridge().fit(morgan(smiles).x, y, sample_weight=table.weights)
    np.testing.assert_allclose(made.predict(table).value[:, 0], own.predict(morgan(smiles).x))
    assert made.notes == () and "no sample_weight" in make_own(f"{HERE}:Nearest").fit(table).notes[0]


def test_an_estimator_that_is_made_is_cloned() -> None:
    smiles = ["CCO", "CCN", "c1ccccc1", "CCCC"]
    table = make_table(smiles, targets=(Target("a"),), y=np.array([[1.0], [2], [3], [5]]))
    made = make_own(f"{HERE}:pipeline", ridge__alpha=1.0)
    found, x = made.fit(table).predict(table), morgan(smiles).x.astype(float)
    own = clone(pipeline).set_params(ridge__alpha=1.0).fit(x, table.y[:, 0])
    np.testing.assert_allclose(found.value[:, 0], own.predict(x))
    assert not hasattr(pipeline[-1], "coef_") and made.resolved_params()["ridge__alpha"] == 1.0
    with pytest.raises(UnknownNameError, match="'alpha'"):
        make_own(f"{HERE}:pipeline", alpha=1.0)


def test_any_file_of_ones_own_package_changes_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ownpackage"
    folder.mkdir()
    for name, text in {
        "__init__": "",
        "helper": "A = 1",
        "model": "from ownpackage.helper import A\ndef f(): ...",
    }.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    parts = make_own("ownpackage.model:f").code_parts()
    before = code_hash(parts)
    (folder / "helper.py").write_text("A = 2")
    assert code_hash(parts) != before
    (folder / "helper.py").write_text("A = 1")
    moved = folder.rename(tmp_path / "elsewhere")
    monkeypatch.setattr(sys.modules["ownpackage"], "__path__", [str(moved)])
    monkeypatch.setattr(sys.modules["ownpackage.model"], "__file__", str(moved / "model.py"))
    assert code_hash(parts) == before, "wherever the package stands"


def test_classes_that_a_fold_lacks_have_probability_0() -> None:
    kind = Target("k", "multiclass", classes=("a", "b", "c"))
    table = make_table(["C", "CC", "CCC", "CCCC"], targets=(kind,), y=[0.0, 2, 0, 2])
    value = make_own("sklearn.linear_model:LogisticRegression").fit(table).predict(table).value
    assert value.shape == (4, 3) and (value[:, 1] == 0).all()
    np.testing.assert_allclose(value.sum(1), 1)
    with pytest.raises(FormatError, match="1 to 3"):
        make_own(f"{HERE}:one_more").fit(table).predict(table)


@pytest.mark.slow
def test_odd_methods_end_as_cells_that_say_why(tmp_path: Path) -> None:
    names = ("Spoils", "raises", "hangs", "forks", "short", "words", "floods", "complex_numbers", "infinite")
    methods = [{"path": f"{HERE}:{name}"} for name in ("Nearest", *names)]
    found = run(tmp_path, *methods, budget={"seconds": 6})
    assert {row: status for row, (status, _) in found.items()} == {
        "Nearest": "ok", "Spoils": "ok", "raises": "crashed", "hangs": "timeout", "forks": "ok", "short": "refused",
        "words": "refused", "floods": "crashed", "complex_numbers": "refused", "infinite": "refused",
    }  # fmt: skip
    assert "printed more than 100 MB" in found["floods"][1]
    assert all(path.stat().st_size < 21_000 for path in tmp_path.rglob("stderr.txt"))
    assert "no idea" in found["raises"][1] and "for 12 rows" in found["short"][1] and "no numbers" in found["words"][1]
    records = read_records(tmp_path)
    same = [records.predictions(r.cell).p["y"] for r in records if r.cell.method in ("Nearest", "Spoils")]
    assert (same[0] == same[1]).all(), "it was given copies"


def test_what_a_method_starts_ends_with_its_cell(tmp_path: Path) -> None:
    note = tmp_path / "pids.txt"
    found = run(tmp_path / "run", {"path": f"{HERE}:escapes", "params": {"note": str(note)}})
    assert found["escapes"][0] == "ok"
    assert not any(psutil.pid_exists(int(pid)) for pid in note.read_text().split())


def test_labels_in_the_place_of_predictions_are_refused(tmp_path: Path) -> None:
    asked = recipe({"path": f"{HERE}:reads", "params": {"folder": str(tmp_path)}}, "mean")
    go(tmp_path, asked, {"small": small(150)}, only={"fold": ["0"]}, factory=FACTORY)
    ended = {r.cell.method: r.manifest for r in read_records(tmp_path)}
    assert ended["mean"]["status"] == "ok" and ended["reads"]["status"] == "refused"
    assert "are the measured values themselves in 100% of the rows" in ended["reads"]["reason"]


@pytest.mark.parametrize(
    ("path", "params", "kind", "word"),
    [
        ("no_such_package:Model", {}, UsageError, "no_such_package"),
        (f"{HERE}:Nearst", {}, UnknownNameError, "'Nearst'"),
        (f"{HERE}:number", {}, BadValueError, "int"),
        ("sklearn.linear_model:Ridge", {"alhpa": 1}, UnknownNameError, "'alhpa'"),
        ("sklearn.model_selection:KFold", {}, UnsupportedError, "KFold"),
        ("sklearn.linear_model:Ridge", {"reads": "graphs"}, BadValueError, "'graphs'"),
    ],
)
def test_what_cannot_be_a_method_is_refused_before_anything_runs(
    path: str, params: dict, kind: type[UsageError], word: str
) -> None:
    with pytest.raises(kind, match=word):
        make_any(path, **params)


def test_a_module_that_hangs_at_import_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hangs_at_import.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("molgraph.base.import_path.IMPORT_SECONDS", 0.2)
    with pytest.raises(UsageError, match=r"0\.2 s"):
        make_own("hangs_at_import:Model")


@pytest.mark.slow
def test_a_module_that_forks_and_prints_at_import_leaves_one_process(tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text("import os\nos.fork()\nprint('noise')\n\ndef mean(x, y, t):\n    return [0]\n")
    code = "from molgraph.auxiliary.own_method import make_own; make_own('forks:mean'); print('made')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "made\n" and "noise" in done.stderr


def test_a_path_is_a_module_and_an_object() -> None:
    assert BenchMethod.from_dict({"path": "a.b:C"}).row == "C"
    assert BenchMethod.from_dict({"path": "a.b:C", "label": "mine"}).row == "mine"
    for odd in ({"path": "a.b.C"}, {"path": "a:C", "name": "x"}, {"path": "a:C:d"}):
        with pytest.raises(BadValueError, match=odd["path"]):
            BenchMethod.from_dict(odd)
    with pytest.raises(UnsupportedError):
        OwnMethod(f"{HERE}:carbons").state()
