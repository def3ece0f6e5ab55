"""The generator that comes with molgraph works by its name, anywhere, offline."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import ForeignModelError, MissingFileError
from molgraph.base.resources import model_names, model_path
from molgraph.cli.main import app


def test_it_draws_molecules_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert model_names() == ["jtvae-zinc"]
    done = CliRunner().invoke(app, ["generate", "jtvae-zinc", "-n", "12", "-o", "new.smi"])
    assert done.exit_code == 0 and "12 drawn: 12 valid (100.0%)" in done.output
    assert len((tmp_path / "new.smi").read_text().splitlines()) == 12
    done = CliRunner().invoke(app, ["judge-generation", "jtvae-zinc", "-n", "12"])
    assert done.exit_code == 0 and "jtvae-zinc: 12 drawn, 100.0% valid" in done.output, done.output
    done = CliRunner().invoke(app, ["verify", "jtvae-zinc"])
    assert done.exit_code == 0, done.output


def test_a_file_of_that_name_goes_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jtvae-zinc").write_text("no model")
    assert model_path("jtvae-zinc") == Path("jtvae-zinc")
    with pytest.raises(ForeignModelError, match="jtvae-zinc"):
        molgraph.load("jtvae-zinc")


def test_a_slip_in_its_name_is_answered_with_the_name() -> None:
    with pytest.raises(MissingFileError, match="'jtvae-zinc'"):
        molgraph.load("jtvae-zink")
    assert model_path("mine.mgm") == Path("mine.mgm")


def test_it_is_small_enough_to_ship() -> None:
    assert all(model_path(name).stat().st_size < 25e6 for name in model_names())
