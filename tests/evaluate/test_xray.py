"""X-rays of splits: figures against their definitions, words that follow from them, whole pages and pictures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

from molgraph.base.contracts import Target
from molgraph.base.errors import (
    AmbiguousColumnError,
    DataError,
    FormatError,
    MismatchError,
    MissingFileError,
    UnknownNameError,
)
from molgraph.chem.fingerprints import morgan
from molgraph.data.datasets import load_dataset
from molgraph.data.sources.builtin import chembl2321810
from molgraph.data.splits import split_table
from molgraph.data.table import Entities, Table, make_table
from molgraph.evaluate import split_report as module
from molgraph.evaluate.split_report import SPLITTERS, Xray, xray
from molgraph.evaluate.split_summary import find_shifts


@pytest.fixture(scope="module")
def table() -> Table:
    few = chembl2321810().take(np.arange(0, 1017, 6))
    y = np.random.default_rng(0).normal(size=len(few))
    hard = np.zeros(len(few))
    hard[:3] = 1
    targets = (Target("y"), Target("easy", "binary"), Target("<b>hard</b>", "binary"))
    return make_table([*few.smiles, "C1CC"], targets=targets, y=np.vstack([np.c_[y, y > 0, hard], [[1, np.nan, 0]]]))


@pytest.fixture(scope="module")
def found(table: Table) -> Xray:
    return xray(table, title="a & b")


def test_every_splitter_asks_its_own_question(found: Xray) -> None:
    frame = found.to_frame()
    assert frame["split"].tolist() == list(SPLITTERS)
    assert (frame["asks"].str.len() > 20).all() and frame["asks"].nunique() >= len(SPLITTERS)
    assert (frame["train"] + frame["valid"] + frame["test"] + frame["left_out"] == found.n_rows).all()


@pytest.mark.slow
def test_what_no_split_can_use_is_said_and_what_one_alone_cannot_too(found: Xray, tmp_path: Path) -> None:
    few = make_table(["CCO", "CCN", "CCC", "CCCC", "C1CC", "", "CCCl", "CCBr"])
    words = ["train", "train", "test", "", "train", "test", "train", "test"]
    both = xray(few, {"random": "random", "mine": split_table(few, "column", column=words)}, fractions=(0.6, 0.2, 0.2))
    assert both.rows.left_out == {"no molecule": 1, "cannot be read": 1}
    frame = both.to_frame().set_index("split")
    assert frame["left_out"].tolist() == [2, 3] and frame.loc["random", "left_out_why"].count("1 ") == 2
    said = [both.unlike(part) for part in both.parts]
    assert said[0] == "" and said[1].startswith("It uses 5 of 8 rows; ")
    page = both.save(tmp_path / "x.html").read_text()
    for text in (repr(both), page):
        assert "6 of 8 rows; 1 no molecule, 1 cannot be read" in text and said[1] in text
    assert f"{found.n_rows - 1} of {found.n_rows} rows; 1 cannot be read" in found._repr_html_()
    assert " \N{MIDDLE DOT} " in found.save(tmp_path / "x.svg").read_text()


def test_distances_are_those_of_the_nearest_training_molecule(table: Table, found: Xray) -> None:
    x = morgan(list(table.smiles)).x.astype(int)
    for part in found.parts:
        common = x[part.split.test] @ x[part.split.train].T
        union = x[part.split.test].sum(1)[:, None] + x[part.split.train].sum(1) - common
        assert part.distance == pytest.approx(1 - (common / union).max(axis=1))
    row = found.to_frame().iloc[0]
    assert row["distance"] == np.median(found.parts[0].distance)
    assert row["near"] == (found.parts[0].distance <= 0.3).mean()


def test_scaffold_splits_lie_further_from_training_than_random_ones(found: Xray) -> None:
    distance = found.to_frame().set_index("split")["distance"]
    assert distance["scaffold/deepchem"] > distance["random"]


def test_shifts_are_scipys_and_numpys(table: Table, found: Xray) -> None:
    frame = found.shifts_frame()
    assert len(frame) == 3 * len(SPLITTERS)
    for part in found.parts:
        train, test = table.y[part.split.train, 0], table.y[part.split.test, 0]
        shift = part.shifts[0]
        assert shift.size == pytest.approx((test.mean() - train.mean()) / train.std())
        assert (shift.ks, shift.p) == pytest.approx(tuple(ks_2samp(train, test, method="asymp")))
        assert part.shifts[1].level["test"] == table.y[part.split.test, 1].mean()
        assert shift.quantiles["test"][2] == np.median(test)


def test_one_class_and_leaks_are_told(table: Table, found: Xray) -> None:
    for part in found.parts:
        alone = len(np.unique(table.y[part.split.test, 2])) == 1
        assert alone == ("<b>hard</b>" in part.one_class.get("test", []))
        assert alone == ("One class alone is tested in <b>hard</b>" in part.verdict())
    twice = make_table([*(["CCO", "OCC"] * 3), "CCN", "CCC"])
    words = ["train", "test"] * 4
    leaky = xray(twice, {"mine": split_table(twice, "column", column=words)}).parts[0]
    assert leaky.leaking == 3 and "3 tested rows hold a molecule that also trains" in leaky.verdict()


def test_a_shift_that_matters_is_said_in_words() -> None:
    chains = make_table(["C" * n for n in range(1, 41)], targets=(Target("y"),), y=np.arange(40.0))
    words = np.array(["train"] * 30 + ["test"] * 10)
    part = xray(chains, [split_table(chains, "column", column=words)]).parts[0]
    assert "The test's mean of y lies +2.3 standard deviations from training's." in part.verdict()
    classes = make_table(["C" * n for n in range(1, 41)], targets=(Target("k", "multiclass", classes=("a", "b")),),
                         y=np.repeat([0.0, 1.0], [30, 10]))  # fmt: skip
    (shift,) = find_shifts(classes, split_table(classes, "column", column=["train"] * 20 + ["test"] * 20))
    assert shift.level["train"] == 1 and shift.level["test"] == 0.5 and np.isnan(shift.size)


def test_a_splitter_that_cannot_divide_a_table_is_a_row_that_says_so() -> None:
    found = xray(make_table(["CCO", "OCC", "CCN", "CCC", "CCCC", "C"]), ["random", "scaffold/deepchem"],
                 fractions=(0.6, 0.0, 0.4))  # fmt: skip
    assert found.parts[0].split is not None and found.parts[1].split is None
    assert "cannot divide this table" in found.parts[1].verdict() and np.isnan(found.to_frame()["distance"][1])
    assert found._repr_html_() and "cannot divide" in repr(found)
    with pytest.raises(DataError, match="'random'"):
        xray(make_table(["CCO", "OCC"]), ["random"])


def test_what_is_read_elsewhere_is_read_here(tmp_path: Path) -> None:
    data = load_dataset("chembl2321810")
    of_dataset = xray(data, ["random"])
    assert of_dataset.title == "chembl2321810" and of_dataset.targets == ("pActivity",)
    assert xray("dataset:chembl2321810", ["random"]).text() == of_dataset.text()
    data.table.take(np.arange(200)).to_frame().to_csv(tmp_path / "a.csv", index=False)
    read = xray(tmp_path / "a.csv", ["random"], smiles="smiles", targets=["pActivity"])
    assert (read.title, read.targets, read.n_rows) == ("a.csv", ("pActivity",), 200)
    assert xray(str(tmp_path / "a.csv"), ["random"], title="mine").title == "mine"
    assert xray(["C" * n for n in range(1, 30)], ["random"]).title == "table"
    with pytest.raises(MissingFileError, match="dataset:chembl2321810"):
        xray("chembl2321810")
    with pytest.raises(FormatError, match="int"):
        xray(5)


def test_wrong_questions_are_refused(table: Table) -> None:
    with pytest.raises(UnknownNameError, match="'randm'"):
        xray(table, ["randm"])
    plain, entity = make_table(["CCO"]), Entities("s", "sequence", np.array(["MKV"], dtype=object))
    proteins = Table(plain.ids, (entity,), plain.status, plain.reason)
    with pytest.raises(AmbiguousColumnError):
        xray(proteins)
    other = split_table(table.take(np.arange(50)), "random")
    with pytest.raises(MismatchError, match="50 rows"):
        xray(table, ["random", other])


def test_many_test_rows_are_sampled_and_that_is_said(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TESTED", 5)
    found = xray(table, ["random"])
    assert found.sampled and len(found.parts[0].distance) == 5
    assert found.parts[0].distance.tolist() == xray(table, ["random"]).parts[0].distance.tolist()


def test_the_page_needs_nothing_else_and_escapes_names(found: Xray, tmp_path: Path) -> None:
    page = found.save(tmp_path / "x.html").read_text()
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", page) and "http://" not in page.replace(
        "http://www.w3", ""
    )
    assert "<b>hard</b>" not in page and "&lt;b&gt;hard" in page and "X-ray of a &amp; b" in page
    assert all(name in page for name in SPLITTERS) and "nan" not in re.sub(r"base64,[^\"]*", "", page)


@pytest.mark.slow
def test_pictures_are_pictures(found: Xray, tmp_path: Path) -> None:
    assert found.save(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    first = found.save(tmp_path / "x.svg").read_text()
    assert first.startswith("<svg") and found.save(tmp_path / "y.svg").read_text() == first
    with pytest.raises(UnknownNameError, match=r"x\.jpg"):
        found.save(tmp_path / "x.jpg")
    few = Xray(found.title, found.n_rows, (), found.parts[:1])
    assert few.save(tmp_path / "f.png").stat().st_size > 1000


@pytest.mark.parametrize("column", [0, 1])
def test_one_target_is_drawn_by_its_kind(table: Table, column: int, tmp_path: Path) -> None:
    one = table.with_targets([table.row_targets[column].name])
    text = xray(one, ["random", "scaffold/tdc"]).save(tmp_path / "x.svg").read_text()
    assert ("percentile" in text or "median, 75%" in text) == (column == 0) and ("share of ones" in text) == bool(
        column
    )
