"""``molgraph predict`` from a shell's point of view: files, typed molecules, kept columns, SD files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.cli.main import app


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and a table with the measured column and others."""
    folder = tmp_path_factory.mktemp("predict")
    text = "smiles,y,note\n" + "".join(f"{'C' * n}O,{n % 7 + n / 10},n{n}\n" for n in range(1, 31))
    (folder / "a.csv").write_text(text)
    molgraph.train(folder / "a.csv", targets=["y"], model="mean", split="random").save(folder / "m.mgm")
    return folder


DOMAIN = ["domain", "distance", "nearest", "nearest_id", "nearest_y"]


def call(home: Path, *words: str) -> tuple[int, str, str]:
    with contextlib.chdir(home):
        done = CliRunner().invoke(app, ["predict", "m.mgm", *words], prog_name="molgraph")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("words", [["CCO"], ["[Na+].[Cl-]"], ["CCO", "c1ccccc1"], ["F/C=C/F", "C1CC", "CC(=O)O.CN"]])
def test_molecules_that_are_typed_are_predicted(home: Path, words: list[str]) -> None:
    code, out, _ = call(home, *words)
    header, *rows = out.splitlines()
    assert (code, header) == (0, ",".join(["id", "smiles", "y", *DOMAIN, "status", "reason"]))
    assert call(home, *words, "--plain")[1].startswith("id,smiles,y,status,reason\n")
    assert [row.split(",")[:2] for row in rows] == [[str(i), text] for i, text in enumerate(words)]
    assert [",ok," in row for row in rows] == [
        text not in ("C1CC", "[Na+].[Cl-]") for text in words
    ]  # no molecule: salt


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["b.csv"], 5, "holds a.csv"),
        (["not-a-molecule"], 5, "there is no file 'not-a-molecule'"),
        (["CCO", "a.csv"], 2, "'a.csv' is one of 2 words"),
        (["CCO", "-o", "o.doc"], 2, ".sdf"),
    ],
)
def test_what_is_neither_is_said(home: Path, words: list[str], code: int, said: str) -> None:
    found, _, err = call(home, *words)
    assert found == code and said in err and "predict([" not in err


def test_a_file_of_a_molecules_name_is_read(home: Path) -> None:
    (home / "CCN").write_text("smiles\nCC\nCCC\n")
    assert len(call(home, "CCN")[1].splitlines()) == 3
    (home / "CCN").unlink()


def test_kept_columns_and_sd_files(home: Path) -> None:
    assert call(home, "a.csv", "--keep-columns", "-o", "o.csv")[0] == 0
    assert list(pd.read_csv(home / "o.csv")) == ["smiles", "y", "note", "y_predicted", *DOMAIN, "status", "reason"]
    assert call(home, "a.csv", "--keep-columns", "-o", "o.sdf")[0] == 0
    assert call(home, "o.sdf", "--keep-columns", "-o", "p.csv")[0] == 0
    frame = pd.read_csv(home / "p.csv", dtype=str)
    assert len(frame) == 30 and {"title", "note", "y", "y_predicted", "y_predicted_predicted"} <= set(frame)
    assert "=cmd()" in call(home, "--help")[1]


@pytest.mark.parametrize("cells", ["CCO,,\nCCN,NA,\n", "C1CC,1,\nC(C,2,\n"])
def test_an_evaluation_that_scores_no_row_says_so_by_its_exit_code(home: Path, cells: str) -> None:
    (home / "none.csv").write_text(f"smiles,y,note\n{cells}")
    with contextlib.chdir(home):
        done = CliRunner().invoke(app, ["evaluate", "m.mgm", "none.csv"], prog_name="molgraph")
    assert done.exit_code == 3 and "no row could be scored" in done.stderr and "rmse" in done.stdout
