"""Folds go out as files and predictions come back: right ones are scored, bad ones refused, nothing written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from molgraph.base import errors
from molgraph.base.contracts import Target
from molgraph.chem.fingerprints import morgan
from molgraph.data.read import read_table
from molgraph.data.splits import Split
from molgraph.data.table import make_table
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.export import export_folds
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.report_data import entered_rows
from molgraph.evaluate.benchmark.report_rows import sentences
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.benchmark.site import page_of, write_site
from molgraph.evaluate.benchmark.submission import submit
from molgraph.evaluate.benchmark.verify import verify_records
from tests.evaluate.bench_tables import go, recipe, small

ASKED = recipe({"name": "ridge", "label": "random_forest"})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one method, and its folds as files."""
    go(run := tmp_path_factory.mktemp("whole") / "run", ASKED)
    export_folds(read_records(run))
    return run


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    """A copy to enter into."""
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "card.toml").write_text('name = "mine"\ncode = "mine.py"\n')
    return tmp_path / "run"


def predicted(out: Path) -> pd.DataFrame:
    """The test files with the predictions of a ridge regression."""
    found = []
    for fold in sorted((out / "folds").glob("*/*/*")):
        train, test = pd.read_csv(fold / "train.csv"), pd.read_csv(fold / "test.csv")
        assert "y" in train and "y" not in test and not set(train.row) & set(test.row)
        model = Ridge().fit(morgan(train.smiles.tolist()).x, train.y)
        found.append(test.assign(y=model.predict(morgan(test.smiles.tolist()).x)))
    return pd.concat(found)


def enter(out: Path, frame: pd.DataFrame, **options: str) -> None:
    frame.to_csv(out.parent / "predictions.csv", index=False)
    submit(read_records(out), out.parent / "predictions.csv", out.parent / "card.toml", **options)


def test_predictions_are_scored_as_computed_ones_are(out: Path) -> None:
    before = score_records(read_records(out))
    frame = predicted(out)
    enter(out, frame.sample(frac=1.0, random_state=0))  # in any order
    records = read_records(out)
    scores = score_records(records).query("method == 'mine' and metric == 'rmse'").set_index("fold")["value"]
    for fold, part in frame.groupby("fold"):
        known = np.sqrt(np.mean((part.y - small().y[part.row, 0]) ** 2))
        assert scores[fold] == pytest.approx(known)
    assert verify_records(out).ok or verify_records(out).faults[0][0] == "scores.csv"
    pd.testing.assert_frame_equal(score_records(records).query("method != 'mine'"), before)
    report = write_bench_report(out, out.parent / "board.html", slices=False)
    (board,) = [b for b in report.boards if b.primary]
    assert set(board.ranking.ranked) == {"mine", "random_forest"}
    assert any("mine was entered by its predictions: self-reported; code mine.py" in said for said in sentences(board))
    write_bench_report(out, None, out.parent / "BOARD.md", slices=False, record=out.parent / "record")
    again = write_bench_report(out.parent / "record", out.parent / "page.html", out.parent / "again.md")
    assert "| mine (self-reported) |" in (out.parent / "again.md").read_text()
    assert "mine.csv --card mine.toml\nmolgraph bench report" in (out.parent / "BOARD.md").read_text()
    assert [b.entered for b in again.boards if b.primary] == [board.entered]
    assert "submitted, self-reported" in (out.parent / "page.html").read_text()
    ran = go(out, ASKED)
    assert (ran.there, ran.stale) == (5, 0) and read_records(out).done[-1].cell.method == "mine", "a run keeps it"


def test_pretraining_data_is_searched_for_test_molecules(out: Path) -> None:
    (out.parent / "corpus.smi").write_text(
        "OCC\nc1ccccc1I\n[Na+].CC(=O)[O-]\n"
    )  # two of the set, one of them as a salt
    path = out.parent / "corpus.smi"
    (out.parent / "card.toml").write_text(f'name = "mine"\npretraining = "{path}"\nlicence = "MIT"\n')
    enter(out, predicted(out), reproduced="by us")
    records = read_records(out)
    line = entered_rows(records, "small", records.recipe.split[0].name)["mine"]
    assert "2 of 60 test molecules are in the pretraining data" in line
    assert "reproduced: by us" in line and "licence MIT" in line
    with pytest.raises(errors.ConflictError, match="'mine'"):
        enter(out, predicted(out))


def test_a_run_of_submissions_alone_has_a_page(tmp_path: Path) -> None:
    out = tmp_path / "run"
    go(out, ASKED, only={"method": ()})
    (tmp_path / "card.toml").write_text('name = "mine"\nseconds = 3.0\n')
    export_folds(read_records(out))
    enter(out, predicted(out))
    report = write_bench_report(out, tmp_path / "board.html", slices=False)
    assert {board.ranking.ranked[0] for board in report.boards} == {"mine"}


def one_fold_less(frame: pd.DataFrame, out: Path) -> pd.DataFrame:
    return frame[frame.fold != 3]


def a_training_row(frame: pd.DataFrame, out: Path) -> pd.DataFrame:
    train = Split.load(file_of_split(out, "small", "random-1x5", 0, 0)).train
    return frame.assign(row=frame.row.where(np.arange(len(frame)) > 0, train[0]))


def labels(frame: pd.DataFrame, out: Path, noise: float = 0.0, share: float = 1.0) -> pd.DataFrame:
    y, rng = small().y[frame.row, 0], np.random.default_rng(0)
    return frame.assign(y=np.where(rng.random(len(y)) <= share, y + noise * rng.normal(size=len(y)), frame.y))


BAD: dict[str, tuple[Callable[[pd.DataFrame, Path], pd.DataFrame], type[errors.DataError], str]] = {
    "a row less": (lambda f, out: f.iloc[1:], errors.RowIdError, "too few"),
    "a row twice": (lambda f, out: pd.concat([f, f.iloc[:1]]), errors.RowIdError, "1 row twice"),
    "a fold less": (one_fold_less, errors.MismatchError, "r0-f3"),
    "a foreign row": (lambda f, out: f.assign(row=f.row.replace(f.row.iloc[0], 999)), errors.RowIdError, "999"),
    "a training row": (a_training_row, errors.RowIdError, "training part"),
    "NaN": (lambda f, out: f.assign(y=f.y.where(f.row % 7 > 0)), errors.CellError, "2 values"),
    "words": (lambda f, out: f.assign(y="high"), errors.CellError, "12 values"),
    "infinity": (lambda f, out: f.assign(y=np.inf), errors.CellError, "12 values"),
    "no column": (lambda f, out: f.drop(columns="y"), errors.MissingColumnError, "'y'"),
    "no fold": (lambda f, out: f.drop(columns="fold"), errors.MissingColumnError, "'fold'"),
    "half a row": (lambda f, out: f.assign(row=f.row + 0.5), errors.CellError, "row '1.5'"),
    "another split": (lambda f, out: f.assign(split_hash="0" * 16), errors.MismatchError, "0000000000000000"),
    "an unknown dataset": (lambda f, out: f.assign(dataset="esol"), errors.MismatchError, "esol"),
    "other ids": (lambda f, out: f.assign(id="x"), errors.RowIdError, "ids"),
    "labels": (labels, errors.DataError, "measured values themselves"),
    "most labels": (partial(labels, share=0.9), errors.DataError, "measured values themselves"),
    "labels and a little noise": (partial(labels, noise=1e-3), errors.DataError, "R² above"),
    "too large": (lambda f, out: f.assign(y=1e39), errors.CellError, "12 values"),
    "no rows": (lambda f, out: f.iloc[:0], errors.EmptyError, "predictions.csv"),
    "a column twice": (lambda f, out: pd.concat([f, f.y], axis=1), errors.AmbiguousColumnError, "'y'"),
    "truth values": (lambda f, out: f.assign(y=f.y > 0), errors.FormatError, "'y'"),
    "a row beyond all": (lambda f, out: f.assign(row=1e25), errors.CellError, "'1e\\+25'"),
    "a line without end": (lambda f, out: f.assign(note="x" * 400_000), errors.TooLargeError, "24 MB"),
    "too many rows": (lambda f, out: pd.concat([f] * 40), errors.TooLargeError, "120 rows"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_predictions_are_refused_and_nothing_is_written(
    out: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("molgraph.evaluate.label_check.LEAST", 10)  # folds of this table have 12 rows
    spoil, kind, word = BAD[name]
    before = sorted(out.rglob("*"))
    with pytest.raises(kind, match=word):
        enter(out, spoil(predicted(out), out))
    assert sorted(out.rglob("*")) == before


def test_labels_of_folds_that_are_small_are_found_in_all_of_them_together(out: Path) -> None:
    before = sorted(out.rglob("*"))
    with pytest.raises(errors.DataError, match=r"random-1x5: .* 'y'"):
        enter(out, labels(predicted(out), out))  # 12 rows a fold, where a fold by itself takes 20
    assert sorted(out.rglob("*")) == before


@pytest.mark.parametrize(
    ("card", "kind", "word"),
    [
        ('name = "random_forest"', errors.ConflictError, "'random_forest'"),
        ('name = "a/b"', errors.BadValueError, "'a/b'"),
        ('name = "mine"\nlicense = "MIT"', errors.UnknownNameError, "'license'"),
        ("code = 3", errors.MissingOptionError, "'name'"),
    ],
)
def test_a_bad_card_is_refused(out: Path, card: str, kind: type[errors.UsageError], word: str) -> None:
    (out.parent / "card.toml").write_text(card)
    with pytest.raises(kind, match=word):
        enter(out, predicted(out))
    assert not (out / "submitted").exists()


def test_a_method_and_a_submission_cannot_share_a_name(out: Path) -> None:
    enter(out, predicted(out))
    with pytest.raises(errors.ConflictError, match="'mine'"):
        go(out, recipe({"name": "ridge", "label": "random_forest"}, {"name": "ridge", "label": "mine"}))


def test_ids_that_a_program_read_as_numbers_or_as_nothing_are_known(tmp_path: Path) -> None:
    frame = pd.DataFrame({"smiles": small().smiles, "y": small().y[:, 0], "key": [f"{i:05d}" for i in range(60)]})
    frame.loc[7, "key"] = "NA"
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", targets=["y"], id="key")
    go(tmp_path / "run", ASKED, {"small": table})
    export_folds(read_records(tmp_path / "run"))
    (tmp_path / "card.toml").write_text('name = "mine"\npretraining = "ZINC, 250k"\n')
    frame = predicted(tmp_path / "run")
    with pytest.raises(errors.RowIdError, match="ids"):
        enter(tmp_path / "run", frame.assign(id=""))
    assert frame["id"].dtype.kind == "f" and frame["split_hash"].str.startswith("h").all()
    with pytest.raises(errors.RowIdError, match="ids"):
        enter(tmp_path / "run", frame.assign(id=frame.id + 1))
    (tmp_path / "wrong.toml").write_text('name = "mine"\npretraining = "zink.smi"\n')
    with pytest.raises(errors.MissingFileError, match=r"zink\.smi"):
        submit(read_records(tmp_path / "run"), tmp_path / "predictions.csv", tmp_path / "wrong.toml")
    enter(tmp_path / "run", frame)
    records = read_records(tmp_path / "run")
    said = entered_rows(records, "small", records.recipe.split[0].name)["mine"]
    assert "pretraining ZINC, 250k" in said and "no test molecules were looked for" in said


def test_classes_go_out_by_name_and_come_back_as_probabilities(tmp_path: Path) -> None:
    kind = Target("k", "multiclass", classes=("high", "low", "mid"))
    table = make_table([*small().smiles], targets=(kind,), y=np.arange(60.0) % 3)
    asked = recipe("mean", split=[{"recipe": "random", "folds": 2}])
    go(tmp_path / "run", asked, {"small": table}, factory="molgraph.train.make_method:make_method")
    folders = export_folds(read_records(tmp_path / "run"))
    assert set(pd.read_csv(folders[0] / "train.csv")["k"]) == set(kind.classes)
    (tmp_path / "card.toml").write_text('name = "mine"\n')
    tests = pd.concat([pd.read_csv(folder / "test.csv") for folder in folders])
    with pytest.raises(errors.CellError, match="'k'"):
        enter(tmp_path / "run", tests.assign(**dict.fromkeys(kind.columns, 1.0)))
    enter(tmp_path / "run", tests.assign(**dict(zip(kind.columns, (0.5, 0.25, 0.25), strict=True))))


def test_an_export_of_another_recipe_leaves_no_old_folds(out: Path) -> None:
    go(out, recipe("ridge", split=[{"splitter": "random", "folds": 3}]))
    assert len(export_folds(read_records(out))) == len(list((out / "folds").glob("*/*/*"))) == 3


def test_columns_that_the_files_need_are_refused(tmp_path: Path) -> None:
    table = make_table([*small().smiles], targets=(Target("fold"),), y=np.arange(60.0))
    go(tmp_path, ASKED, {"small": table})
    with pytest.raises(errors.ConflictError, match="'fold'"):
        export_folds(read_records(tmp_path))


def test_a_run_that_was_copied_without_its_tables_says_so(out: Path) -> None:
    frame = predicted(out)
    shutil.rmtree(out / ".work")
    with pytest.raises(errors.DataError, match="'small' are gone"):
        enter(out, frame)
    assert ("small", "the rows of the table 'small' are gone") in verify_records(out).faults


def test_pages_mark_a_submission_and_keep_names_apart(out: Path) -> None:
    names = ("knn+rdkit", "knn-rdkit")
    go(out, recipe({"name": "ridge", "label": "random_forest"}, *({"name": "ridge", "label": n} for n in names)))
    (out.parent / "card.toml").write_text('name = "mine"\nhardware = "a GPU"\nseconds = 3.0\n')
    enter(out, predicted(out))
    made = write_site([write_bench_report(out, slices=False)], out.parent / "site")
    pages = {path.name: path.read_text() for path in made}
    assert all(f"<h1>{name}</h1>" in pages[page_of(name)] for name in names)
    assert "submitted, self-reported" in pages["index.html"] and "hardware a GPU; seconds 3.0" in pages[page_of("mine")]


def test_predictions_for_other_labels_are_another_split(tmp_path: Path) -> None:
    for n, seed in (("old", 0), ("new", 1)):
        go(tmp_path / n, ASKED, {"small": small(seed=seed)})
        export_folds(read_records(tmp_path / n))
    (tmp_path / "card.toml").write_text('name = "mine"\n')
    with pytest.raises(errors.MismatchError, match="random-1x5 r0-f0"):
        enter(tmp_path / "new", predicted(tmp_path / "old"))
    enter(tmp_path / "new", predicted(tmp_path / "new"))
    line = entered_rows(read_records(tmp_path / "new"), "small", ASKED.split[0].name)["mine"]
    assert "not told: code, commit, licence, tuning, pretraining, hardware" in line
    go(tmp_path / "new", ASKED, {"small": small(seed=2)})
    assert "mine" not in {cell.method for cell, _ in read_records(tmp_path / "new").done}, "made for other labels"
