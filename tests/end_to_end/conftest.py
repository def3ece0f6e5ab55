"""A small table and models trained on it by the shell's own verb, once for all end-to-end tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from typer.testing import CliRunner

from molgraph.cli.main import app
from molgraph.data.sources.builtin import chembl2321810

Run = Callable[..., "Done"]


class Done(NamedTuple):
    """What a verb answered."""

    returncode: int
    stdout: str
    stderr: str


def molgraph(*words: object, cwd: Path, stdin: str | None = None) -> Done:
    """Run a verb as the shell does, but in this process: importing torch once is enough."""
    with contextlib.chdir(cwd):
        result = CliRunner().invoke(app, list(map(str, words)), input=stdin, prog_name="molgraph")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a verb in an empty folder."""

    def call(*words: object, stdin: str | None = None) -> Done:
        return molgraph(*words, cwd=tmp_path, stdin=stdin)

    return call


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``assay.csv``: 150 measured molecules, a label, and a class of three."""
    folder = tmp_path_factory.mktemp("home")
    frame = chembl2321810().to_frame()[["id", "smiles", "pActivity"]].head(150)
    frame["active"] = (frame["pActivity"] > 7).astype(int)
    frame["level"] = pd.cut(frame["pActivity"], [0, 6.5, 7.5, 20], labels=["low", "middle", "high"])
    frame.to_csv(folder / "assay.csv", index=False)
    return folder


def _trained(home: Path, name: str, *words: str) -> Path:
    out = home / f"{name}.mgm"
    done = molgraph(
        "train", "assay.csv", *words, "--threads", "1", "--seed", "1", "-o", out.name, cwd=home
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (home / f"{name}.txt").write_text(done.stdout + done.stderr)
    return out


SMALL = ("--epochs", "2", "--set", "params.d_hidden=16", "--no-baseline", "--split", "random")


@pytest.fixture(scope="session")
def graph_model(home: Path) -> Path:
    """A small D-MPNN of two targets, with its report."""
    words = ("-t", "pActivity", "-t", "active", "--epochs", "2", "--set", "params.d_hidden=16")
    return _trained(home, "graph", *words, "--report", "report.html", "--save-recipe", "recipe.toml")


@pytest.fixture(scope="session")
def ensemble_model(home: Path) -> Path:
    """Two small MPNNs."""
    return _trained(home, "ensemble", "-t", "pActivity", "-m", "mpnn", "--ensemble", "2", *SMALL)


@pytest.fixture(scope="session")
def forest_model(home: Path) -> Path:
    """A small forest of three classes."""
    words = ("-t", "level:multiclass", "-m", "random_forest", "--set", "params.n_estimators=20")
    return _trained(home, "forest", *words, "--split", "random")
