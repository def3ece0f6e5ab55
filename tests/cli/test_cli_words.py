"""What verbs say: names, counts and reasons as they are, at any width, and nothing left behind in silence."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import molgraph
from molgraph.api.catalogue import model_entries
from molgraph.cli import doctor, show
from molgraph.cli.main import app
from molgraph.cli.models import LINE
from molgraph.train import modelwriter, stream

ROOT = Path(__file__).resolve().parents[2]
ROWS = [("C" * n + "O", n % 7 + n / 10) for n in range(1, 31)]
FOREST = {"model": "random_forest", "params": {"n_estimators": 5, "threads": 1}, "split": "random"}


@pytest.fixture(scope="module")
def result() -> molgraph.run.result.TrainingResult:
    """Two small forests, averaged."""
    frame = {"smiles": [smiles for smiles, _ in ROWS], "y": [y for _, y in ROWS]}
    return molgraph.train(frame, targets=["y"], ensemble=2, fractions=(0.5, 0.1, 0.4), **FOREST)


@pytest.fixture
def folder(tmp_path: Path, result: molgraph.run.result.TrainingResult) -> Path:
    """A model, and a table whose fourth molecule cannot be read."""
    result.save(tmp_path / "m.mgm")
    (tmp_path / "a.csv").write_text("smiles\nCCO\nCCN\nCCC\nC(C\nCC\n")
    return tmp_path


def call(folder: Path, *words: str, width: int = 100) -> tuple[int, str, str]:
    """Exit code, output and messages of a verb that runs in a folder, at some width."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, list(words), prog_name="molgraph", env={"COLUMNS": str(width)})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_an_ensemble_is_called_one(folder: Path, result: molgraph.run.result.TrainingResult) -> None:
    name = "ensemble of 2 random_forest"
    assert list(result.scores.index) == [name, "mean"]
    assert name in result.verdict and name in result._repr_html_() and set(result.predictions) == {name, "mean"}
    result.report(folder / "r.html")
    page = (folder / "r.html").read_text()
    assert f"{name} on y" in page
    assert not re.search(r"(?<!ensemble of 2 )random_forest", page.partition("What a repeat")[0])
    assert f"model         {name}\n" in call(folder, "verify", "m.mgm")[1]


def test_a_model_that_answers_otherwise_is_named(
    folder: Path, result: molgraph.run.result.TrainingResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = modelwriter.make_vectors

    def other(*given: Any) -> dict[str, Any]:
        made = real(*given)
        return made | {"value": [[None if v is None else v + 1 for v in row] for row in made["value"]]}

    monkeypatch.setattr(modelwriter, "make_vectors", other)
    result.save(folder / "other.mgm")
    code, _, said = call(folder, "verify", "./other.mgm")
    assert code == 4
    assert said.startswith("error: other.mgm: the model answers ") and "versions differ too much" not in said
    (folder / "torn.mgm").write_bytes((folder / "m.mgm").read_bytes()[:500])
    code, _, said = call(folder, "verify", "./torn.mgm")
    assert code == 4 and said.count("torn.mgm") == 1, said


def test_predict_that_stops_before_it_wrote_leaves_nothing(folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    code, _, said = call(folder, "predict", "m.mgm", "a.csv", "-o", "out.csv", "--on-error", "stop")
    assert code == 3 and "row 4" in said
    assert sorted(path.name for path in folder.iterdir()) == before
    assert call(folder, "predict", "m.mgm", "a.csv", "-o", "out.csv", "--smiles", "no")[0] == 3
    assert sorted(path.name for path in folder.iterdir()) == before


def test_predict_that_stops_later_says_what_it_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(stream.predict_stream.__kwdefaults__, "chunk_rows", 2)  # type: ignore[arg-type]
    code, _, said = call(folder, "predict", "m.mgm", "a.csv", "-o", "out.csv", "--on-error", "stop")
    assert code == 3
    assert "kept in out.csv.parts; --on-error keep goes on from there" in said
    code, _, said = call(folder, "predict", "m.mgm", "a.csv", "-o", "out.csv")
    assert code == 0 and "5 rows, 2 of them by the run before" in said, said


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "m.mgm", "a.csv", "--threads", "0"),
        ("train", "a.csv", "-t", "y", "--threads", "0"),
        ("data", "featurize", "a.csv", "-o", "store", "--workers", "0"),
    ],
)
def test_no_threads_are_refused(words: tuple[str, ...], folder: Path) -> None:
    code, _, said = call(folder, *words)
    assert code == 2 and "error: " in said


def test_no_word_of_a_models_line_is_cut_where_there_is_little_room(tmp_path: Path) -> None:
    for width in (60, 80, 140):
        page = call(tmp_path, "models", "dmpnn", width=width)[1]
        assert "…" not in page and max(map(len, page.splitlines())) <= width
        for word in ("relation", "message", "readout", "objective", "supervised", "directed"):
            assert re.search(rf"\b{word}\b", page), (width, word)


def test_parameters_that_are_explained_together_are_each_explained(tmp_path: Path) -> None:
    page = call(tmp_path, "models", "random_forest", width=120)[1]
    assert re.search(r"n_bits +2048 +of the fingerprint\.", page)
    assert not re.search(r'"\s*$', page, re.M)


def test_an_audit_keeps_to_a_narrow_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "console", lambda err=False: Console(width=60, soft_wrap=True))
    out = call(folder, "data", "audit", "a.csv")[1]
    assert "unreadable" in out and max(map(len, out.splitlines())) <= 60


def test_one_thread_is_one_thread(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.show(doctor.facts() | {"cores": 1, "threads": 1})
    words = " ".join(capsys.readouterr().out.split())
    assert re.search(r"\b1 core, 1 thread, ", words), words


def test_the_table_of_models_is_the_registrys_and_its_files_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    (head,) = [i for i, row in enumerate(rows) if row == ["model", *LINE]]
    encoders = [each for each in model_entries() if each.line]
    for each, row in zip(encoders, rows[head + 2 :], strict=False):
        file, line = f"[`{each.name}.py`](../molgraph/models/{each.name}.py)", " | ".join(each.line)
        wanted = f"docs/architecture.md needs a row, in the order of molgraph models: | TITLE: {file} | {line} |"
        assert file in row[0] and tuple(row[1:]) == each.line, wanted
    files = rows[head + 2 + len(encoders)]
    assert files[0] == "parts that models share" and len(files) == 1 + len(LINE)
    assert all((ROOT / path).is_file() for path in re.findall(r"\]\(\.\./(molgraph/[\w/.]+)\)", page) if "." in path)


def test_kinds_and_precision_are_explained(tmp_path: Path) -> None:
    page = re.sub(r"[\s│]+", " ", call(tmp_path, "train", "--help")[1])
    assert "NAME:multiclass, NAME:binary or NAME:regression says its kind" in page
    assert "-t class:multiclass" in page and "AMX" in page
    assert "AMX" in call(tmp_path, "predict", "--help")[1]
