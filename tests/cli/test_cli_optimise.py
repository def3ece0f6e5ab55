"""Searching for better molecules at the shell and in Python, from a generator's file to a page."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import BadValueError, EmptyError
from molgraph.base.registry import register
from molgraph.chem.quality import measure
from molgraph.cli.main import app
from molgraph.data.sources import builtin
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.oracle import FunctionOracle
from molgraph.generate.oracles.similarity import Molecules
from molgraph.train.model import Model
from molgraph.train.training_molecules import distinct, molecule_hashes
from tests.latent import NearestMolecule, latent_generator

QUICK = ("-s", "initial=20", "-s", "paths=6", "--batch", "10")


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator, a property model and its table."""
    register("generator", NearestMolecule.name, summary="the nearest molecule of a list")(NearestMolecule)
    path, table = tmp_path_factory.mktemp("optimise"), builtin.chembl2321810()
    seen = distinct(molecule_hashes(table.take(np.arange(100))))
    Model(latent_generator(table, d=6, broken=5), targets=(), trained_on=seen).save(path / "gen.mgm")
    molgraph.train(table.take(np.arange(200)), model="knn", split="random", baseline=False).model.save(
        path / "assay.mgm"
    )
    frame = pd.DataFrame({"smiles": table.smiles, "pActivity": table.y[:, 0]})
    frame.iloc[:300].to_csv(path / "assay.csv", index=False)
    return path


@pytest.mark.slow
def test_from_a_generator_to_a_page(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("optimise", folder / "gen.mgm", "--oracle", f"{folder}/assay.mgm:1,sa<3.5", "--budget", 60, *QUICK)
    more = ("--control", folder / "assay.csv", "--reference", folder / "assay.csv", "--max-distance", "0.8")
    code, out = run(*words, *more, "-o", "a.csv", "--report", "a.html")
    assert code == 0 and "60 molecules scored" in out and "plain sampling" in out and "control" in out, out
    assert "that the oracle's model learnt from were left out" in out, out
    frame = pd.read_csv("a.csv", keep_default_na=False)
    assert len(frame) == 60 and sorted(frame["call"]) == [*range(1, 61)] and (frame["reason"] == "").all()
    wanted = {"rank", "smiles", "objective", "within_bounds", "assay", "sa", "nearest", "alerts", "known", "novel"}
    assert wanted | {"known_similarity", "control", "assay_learnt_from"} <= {*frame.columns}, frame.columns
    within = frame[frame["within_bounds"]]
    assert (within["sa"] <= 3.5).all() and (within["known_similarity"] >= 0.2).all() and len(within) > 5
    assert within["objective"].is_monotonic_decreasing and [*frame["rank"]] == [*range(1, 61)]
    assert np.allclose(frame["sa"], measure("sa", [*frame["smiles"]]).value)
    assert frame["novel"].nunique() == 2 and frame["assay_learnt_from"].nunique() == 2
    page = Path("a.html").read_text("utf-8")
    assert page.count("<svg") >= 26 and "sampling (control)" in page and "http://www.w3" in page
    assert not list(tmp_path.glob("*.journal"))


def test_a_lead_is_kept_in_sight(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    start = str(builtin.chembl2321810().smiles[3])
    words = ("--oracle", "penalized_logp", "--start", start, "--similarity", 0.4, "--budget", 40, "--no-compare")
    code, out = run("optimise", folder / "gen.mgm", *words, *QUICK, "--report", "a.html")
    assert code == 0, out
    frame = pd.read_csv("optimised.csv")
    near = Molecules([start]).nearest([*frame["smiles"]]).similarity
    assert np.array_equal(frame["within_bounds"], near >= 0.4) and (frame["call"] == 1).sum() == 1
    assert frame.loc[frame["call"] == 1, "similarity"].item() == 1 and ">start<" in Path("a.html").read_text("utf-8")


def test_in_python_with_a_function_that_fails(folder: Path) -> None:
    def moody(text: str) -> float:
        if "F" in text:
            raise ValueError("no fluorine")
        return len(text)

    found = molgraph.optimise(folder / "gen.mgm", moody, search="sampling", budget=30)
    frame = found.to_frame()
    failed = frame["reason"] == "the oracle failed: no fluorine"
    assert 0 < failed.sum() < 30 and failed.to_numpy()[-failed.sum() :].all() and "have no score" in found.sentence
    for wrong in ({"batch": 0}, {"diversity": 3}, {"diversity": float("nan")}):
        with pytest.raises(BadValueError, match="batch is"):
            molgraph.optimise(folder / "gen.mgm", **wrong)
    with pytest.raises(EmptyError, match="10 molecules"):
        molgraph.optimise(folder / "gen.mgm", lambda text: float("nan"), search="sampling", budget=10)


def test_ctrl_c_keeps_what_was_scored_and_the_next_run_goes_on(folder: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # a test of the command line may have left it blocked
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def letters(text: str) -> float:
        asked.append(text)
        if len(asked) == 25:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
            threading.Event().wait(0.3)
        return len(text)

    kept = FunctionOracle(letters, version="1")
    how = {"search": "sampling", "budget": 40, "batch": 10, "journal": tmp_path / "a.journal"}
    try:
        found = molgraph.optimise(folder / "gen.mgm", kept, **how)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.interrupted and len(found) == len(asked) - 1 == 24, "the call at hand is lost"
    found = molgraph.optimise(folder / "gen.mgm", kept, **how)
    assert not found.interrupted and len(found) == 40 and len(asked) == 41


def test_ctrl_c_says_what_is_not_written(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(space: object, calls: OracleCalls, *_: object, **__: object) -> None:
        calls.score(["CCO"])
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("molgraph.api.optimising.run_search", pressed)
    code, out = run("optimise", folder / "gen.mgm", "-o", "a.csv", "--report", "a.html")
    assert code == 130 and "stopped by Ctrl-C after 1 of 1,000 calls; they are in a.csv" in out, out
    assert "alerts, novelty" in out and "--report come with its end" in out and not Path("a.html").exists()
    assert [*pd.read_csv("a.csv")["smiles"]] == ["CCO"] and Path("a.csv.journal").exists()


def test_calls_of_a_stopped_search_survive_other_commands(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    journal, words = Path("a.csv.journal"), ("optimise", folder / "gen.mgm", "--no-compare", "-o", "a.csv")
    code, out = run(*words, "--search", "sampling", "--start", "C(C")
    assert code == 3 and not journal.exists(), "a command that fails leaves nothing behind"
    stopped = {"search": "sampling", "budget": 25, "compare": False, "seed": 3, "journal": journal}
    first = molgraph.optimise(folder / "gen.mgm", "qed", **stopped).to_frame()
    kept = journal.read_bytes()
    for wrong, said in (
        (("-s", "inital=40"), "inital"),
        (("--oracle", "logp"), "keeps 25 calls of a search for another"),
    ):
        code, out = run(*words, *wrong)
        assert code == 2 and said in out and journal.read_bytes() == kept, out
    code, out = run(*words, "--search", "sampling", "--budget", 25, "--seed", 4)
    left = int(out.split(" calls of a search that did not end")[0].split()[-1])
    assert code == 0 and 0 < left <= 25 and journal.exists(), out
    code, out = run(*words, "--search", "sampling", "--budget", 25, "--seed", 3)
    again = pd.read_csv("a.csv", keep_default_na=False)
    assert code == 0 and [*again["smiles"]] == [*first["smiles"]] and [*again["call"]] == [*first["call"]], out


def test_a_search_without_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def letters(smiles):\n    return len(smiles)\n")
    words = ("optimise", "--search", "graph-ga(population=10)", "--budget", 25, "--batch", 5, "-o", "a.csv")
    for oracle in (("--oracle", "mine.py:letters"), ("--objective", "qed")):
        code, out = run(*words, *oracle)
        assert code == 0 and "25 molecules scored" in out and "plain sampling" in out, out
        frame = pd.read_csv("a.csv", keep_default_na=False)
        assert len(frame) == 25 and frame["objective"].is_monotonic_decreasing
    code, out = run("optimise", "--budget", 5)
    assert code == 0 and "5 molecules scored" in out, out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--oracle", "qedd"), "did you mean 'qed'"),
        (("--search", "bays"), "did you mean 'bayes'"),
        (("-s", "initail=4"), "initail"),
        (("--budget", "0"), "--budget is 0"),
        (("--diversity", "2"), "--diversity is 2"),
        (("--similarity", "0.4"), "name one with --start"),
        (("--start", "CCO", "--similarity", "4"), "similarity is 4"),
        (("--max-distance", "0.4"), "--reference TABLE"),
        (("--oracle", "sa<4"), "nothing to make better"),
        (("--oracle", "gen.mgm"), "proposes molecules"),
        (("-o", "a.xlsx"), "ends in .csv"),
        (("--control", "plain.smi"), "asks no property model"),
        (("--oracle", ""), "the oracle is empty"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(folder)
    Path("plain.smi").write_text("CCO\nCCC\n")
    code, out = run("optimise", "gen.mgm", *words)
    assert code == 2 and said in out, out
    code, out = run("optimise", "gen.mgm", "--start", "C(C")
    assert code == 3 and "the start 'C(C' cannot be read" in out, out
    code, out = run("optimise", "assay.mgm")
    assert code == 2 and "predicts molecules and proposes none" in out, out
