"""``molgraph tune``: its table, its page, the command that it prints, and a search that is killed."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("tune", "a.csv", "-t", "y", "-m", "knn", "--split", "random", "--seed", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = ["C" * (1 + i % 9) + "ON"[i % 2] + "C" * (i // 9 % 8) for i in range(90)]
    lines = [f"{smiles},{len(smiles) + i % 5 / 10}" for i, smiles in enumerate(rows)]
    (tmp_path / "a.csv").write_text("smiles,y\n" + "\n".join([*lines, "not a molecule,1"]) + "\n")
    return tmp_path


def call(folder: Path, *words: str) -> tuple[int, str, str]:
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, list(words), prog_name="molgraph", env={"COLUMNS": "120"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_the_printed_command_trains_the_same_model(folder: Path) -> None:
    code, out, said = call(folder, *WORDS, "--trials", "4", "-o", "tuned.mgm", "--report", "r.html")
    assert code == 0, said
    assert "The best 4 of 4 trials, out of fold" in out and "trial 4 of 4:" in said and (folder / "r.html").exists()
    assert not (folder / "tuned.mgm.work").exists(), "the journal goes with the end"
    words = shlex.split(out.strip().splitlines()[-1])
    assert words[:2] == ["molgraph", "train"]
    assert call(folder, *words[1:], "-o", "typed.mgm")[0] == 0
    a, b = (molgraph.load(folder / name).predict(["CCO", "CCCCN"]).value for name in ("tuned.mgm", "typed.mgm"))
    assert a.tobytes() == b.tobytes()


def test_odd_words_are_refused_with_a_sentence(folder: Path) -> None:
    for words, text in (
        (("--trials", "0"), "--trials is 0"),
        (("--folds", "1"), "--folds is 1"),
        (("--budget", "soon"), "the budget is 'soon'"),
        (("-m", "mean"), "mean has no parameters to search"),
    ):
        code, _, said = call(folder, *WORDS, *words, "-o", "x.mgm")
        assert code == 2 and text in said and "Traceback" not in said
    assert not list(folder.glob("x.mgm*"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_search_that_is_killed_goes_on(folder: Path) -> None:
    command = [sys.executable, "-m", "molgraph", *WORDS, "--trials", "12", "-o", "k.mgm"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    journal = folder / "k.mgm.work" / "tuning.jsonl"
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 3):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.stderr is not None
        process.stderr.read()
    assert process.returncode == -signal.SIGKILL and not (folder / "k.mgm").exists()
    code, out, said = call(folder, *WORDS, "--trials", "12", "-o", "k.mgm")
    assert code == 0 and "going on after" in said, said
    code, whole, said = call(folder, *WORDS, "--trials", "12", "-o", "w.mgm")
    assert code == 0 and out.strip().splitlines()[-1] == whole.strip().splitlines()[-1]
