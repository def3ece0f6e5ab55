"""The generator and the encoder that come with molgraph work by their names, anywhere, offline."""

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
    assert "jtvae-zinc" in model_names()
    done = CliRunner().invoke(app, ["generate", "jtvae-zinc", "-n", "12", "-o", "new.smi"])
    assert done.exit_code == 0 and "12 drawn: 12 valid (100.0%)" in done.output
    assert len((tmp_path / "new.smi").read_text().splitlines()) == 12
    done = CliRunner().invoke(app, ["judge-generation", "jtvae-zinc", "-n", "12"])
    assert done.exit_code == 0 and "jtvae-zinc: 12 drawn, 100.0% valid" in done.output, done.output
    done = CliRunner().invoke(app, ["verify", "jtvae-zinc"])
    assert done.exit_code == 0, done.output


def test_the_encoder_embeds_and_is_finetuned_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "encoder-descriptors" in model_names()
    assert molgraph.embed("encoder-descriptors", ["CCO", "not a molecule", "c1ccccc1"]).value.shape == (3, 900)
    table = ["smiles,y", *(f"{'C' * n}O,{n}" for n in range(1, 25))]
    (tmp_path / "t.csv").write_text("\n".join(table))
    command = ["finetune", "encoder-descriptors", "t.csv", "-t", "y", "-s", "training.epochs=2", "-o", "m.mgm"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and (tmp_path / "m.mgm").is_file(), done.output
    done = CliRunner().invoke(app, ["embed", "encoder-descriptors", "t.csv", "-o", "v.csv"])
    assert done.exit_code == 0 and len((tmp_path / "v.csv").read_text().splitlines()) == 25, done.output


def test_a_search_begins_at_the_prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["optimise", "--oracle", "qed,sa<4", "--budget", "20", "--batch", "10", "--no-compare", "--threads", "1"]
    done = CliRunner().invoke(app, [*words, "-o", "best.csv"])
    assert done.exit_code == 0 and "20 molecules scored" in done.output, done.output


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
