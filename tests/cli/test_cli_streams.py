"""Standard streams in any encoding, and file names that are no text: sentences and results, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from molgraph.api import predict_file, train
from molgraph.cli.main import app
from tests.evaluate.bench_tables import go, recipe

ROWS = "".join(f"{'C' * (i % 9 + 1)}O{'N' * (i // 9)},{i}\n" for i in range(30))


def molgraph(folder: Path, *words: str | bytes, **environment: str) -> tuple[int, bytes, str]:
    """Exit code, standard output and standard error of a process in a folder."""
    call = [sys.executable, "-m", "molgraph", *words]
    root = str(Path(__file__).parents[2])
    set_ = {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
    done = subprocess.run(call, cwd=folder, env=os.environ | set_ | environment, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="backslashreplace")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_output_in_an_encoding_that_lacks_characters(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_text(f"smiles,yµ\n{ROWS}", encoding="utf-8")
    code, out, err = molgraph(tmp_path, "data", "audit", "t.csv", "-t", "yµ", PYTHONIOENCODING=encoding)
    assert code == 0, err
    assert "y\\xb5" in out.decode(encoding) if encoding == "ascii" else "yµ" in out.decode(encoding)
    assert "\\u258" in out.decode(encoding)  # the histogram's bars


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table whose name is not UTF-8, in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / os.fsdecode(b"\xff.csv")
    try:
        path.write_text(f"smiles,y\n{ROWS}")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes UTF-8 alone")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("train", "", "-t", "y", "-m", "mean", "--split", "random", "-o", "m.mgm", "--save-recipe", "r.toml"),
        ("bench", "xray", "", "--split", "random", "-o", "x.html"),
    ],
    ids=["train", "xray"],
)
def test_a_file_name_that_is_not_utf8(words: tuple[str, ...], odd: Path) -> None:
    done = CliRunner().invoke(app, [word or odd.name for word in words], prog_name="molgraph")
    assert done.exit_code == 0, done.output
    if words[0] == "train":
        assert r'path = "\\udcff.csv"' in Path("r.toml").read_text()


def test_parquet_whose_name_is_not_utf8(odd: Path) -> None:
    result = train(odd.name, targets=["y"], model="mean", split="random")
    plain = predict_file(result.model, odd.name, odd.with_suffix(".parquet"))
    again = predict_file(result.model, odd.with_suffix(".parquet"), "again.parquet")
    assert plain.rows == again.rows == 30


def test_a_benchmark_in_a_folder_whose_name_is_not_utf8(odd: Path) -> None:
    assert go(odd.with_suffix(""), recipe("ridge")).made == {"ok": 5}
