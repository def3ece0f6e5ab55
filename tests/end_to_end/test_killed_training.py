"""A training that is killed goes on with the same command, and ends with the model of one that never was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import molgraph as mg
from tests.end_to_end.conftest import molgraph

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("train", "in.csv", "-t", "pActivity", "--split", "random", "--no-baseline", "--seed", "3", "--threads", "1")
SMALL = ("--epochs", "60", "-s", "params.d_hidden=8", "-s", "params.dropout=0.1", "-s", "patience=none")
COMMAND = (*WORDS, *SMALL, "-s", "params.checkpoint_seconds=0", "-o")


def kill_once_a_checkpoint_is_there(folder: Path, out: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "molgraph", *COMMAND, out]
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list(folder.glob(f"{out}.work/*/training.ckpt")):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == -signal.SIGKILL, said
    assert not (folder / out).exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_training_goes_on(home: Path, tmp_path: Path) -> None:
    text = (home / "assay.csv").read_text()
    (tmp_path / "in.csv").write_text(text)
    whole = molgraph(*COMMAND, "whole.mgm", cwd=tmp_path)
    assert whole.returncode == 0 and "going on" not in whole.stderr, whole.stderr
    kill_once_a_checkpoint_is_there(tmp_path, "killed.mgm")

    lines = text.splitlines()
    (tmp_path / "in.csv").write_text("\n".join([lines[0], *(line.replace(",7.", ",8.") for line in lines[1:])]) + "\n")
    other = molgraph(*COMMAND, "killed.mgm", cwd=tmp_path)
    assert other.returncode == 3, other.stderr
    assert "belongs to another fit: different data" in other.stderr and "to begin anew" in other.stderr

    (tmp_path / "in.csv").write_text(text)
    again = molgraph(*COMMAND, "killed.mgm", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "training dmpnn: going on from the checkpoint, epoch" in again.stderr
    assert not list(tmp_path.glob("*.work"))
    smiles = ["CCO", "c1ccccc1C(=O)N", "CC(=O)Oc1ccccc1C(=O)O"]
    a, b = (mg.load(tmp_path / name).predict(smiles).value for name in ("whole.mgm", "killed.mgm"))
    assert np.isfinite(a).all() and a.tobytes() == b.tobytes()
