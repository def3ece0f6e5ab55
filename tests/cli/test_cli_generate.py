"""Training a generator and proposing molecules at the shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.api import generating
from molgraph.cli.main import app
from molgraph.generate.jtvae import JTVAE
from molgraph.generate.language import LanguageGenerator
from tests.tiny import series

SMALL = ("-s", "params.d_hidden=16", "-s", "params.d_embedding=8", "--epochs", "2", "--threads", "1")


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a generator that learned from it."""
    folder = tmp_path_factory.mktemp("generator")
    (folder / "corpus.smi").write_text("\n".join([*series(60).smiles, "xx"]) + "\n")
    code, out = run("train-generator", folder / "corpus.smi", *SMALL, "--batch-size", 16, "-o", folder / "g")
    assert code == 0 and "a generator of molecules: 2 epochs, the best" in out and "molgraph generate" in out, out
    assert sorted(path.name for path in folder.iterdir()) == ["corpus.smi", "g.mgm"], "no working folder is left"
    return folder


def test_from_a_corpus_to_molecules(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = trained / "g.mgm"
    assert molgraph.load(model).card.recipe["model"]["params"] == {"d_hidden": 16, "d_embedding": 8}
    code, out = run("verify", model)
    assert code == 0 and "ok: 25 samples drawn again (0% differ" in out, out
    for name in ("a.csv", "b.csv"):
        code, out = run("generate", model, "-n", 40, "--seed", 3, "-o", name)
        assert code == 0 and "40 drawn: " in out and "valid" in out and "novel" in out and name in out, out
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    frame = pd.read_csv("a.csv", keep_default_na=False)
    assert len(frame) == 40 and list(frame.columns) == ["smiles", "valid", "novel", "reason"]
    assert list(frame["smiles"]) == molgraph.load(model).method.sample(40, 3)  # type: ignore[attr-defined]
    code, out = run("generate", model, "-n", 40, "--seed", 3, "-o", "a.smi")
    assert code == 0 and Path("a.smi").read_text().splitlines() == list(frame["smiles"][frame["valid"]])
    code, out = run("generate", model, "-n", 3)
    assert code == 0 and "smiles,valid,novel,reason\n" in out
    assert run("generate", model, "-n", 40, "--seed", 3, "--temperature", 0.2, "-o", "cold.csv")[0] == 0
    assert Path("cold.csv").read_bytes() != Path("a.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("predict", "g.mgm", "CCO"), "a generator of molecules, which predicts no target"),
        (("embed", "g.mgm", "CCO"), "has no encoder"),
        (("evaluate", "g.mgm", "corpus.smi"), "molgraph generate"),
        (("train", "corpus.smi", "-t", "y", "-m", "gru"), "molgraph train-generator CORPUS -m gru"),
        (("train", "corpus.smi", "-t", "y", "--init", "g.mgm"), "g.mgm holds a language, which has no encoder"),
        (("pretrain", "corpus.smi", "-m", "gru"), "gru is a generator"),
        (("train-generator", "corpus.smi", "-m", "languag"), "did you mean 'language'"),
        (("train-generator", "corpus.smi", "-s", "params.d_hiden=4"), "d_hidden"),
        (("train-generator", "corpus.smi", "-s", "training.ensemble=2"), "one generator"),
        (("train-generator", "none.smi", "-m", "jtvae", "-s", "params.d_latent=7"), "give an even number"),
        (("train-generator", "corpus.smi", "-o", "g.csv"), "model files end in .mgm"),
        (("generate", "g.mgm", "-n", "0"), "-n is 0, expected 1 or more"),
        (("generate", "g.mgm", "--temperature", "0"), "temperature is 0"),
        (("generate", "g.mgm", "-o", "a.parquet"), "name a file that ends in .csv or .smi"),
        (("generate", "g.mgm", "-o", "g.mgm"), "ends in .csv"),
        (("generate", "mean.mgm"), "mean predicts molecules and proposes none"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(
    trained: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(trained)
    if "mean.mgm" in words:
        table = molgraph.read_table("builtin:chembl2321810")
        molgraph.train(table, model="mean", split="random").model.save("mean.mgm")
    code, out = run(*words)
    assert code == 2 and said in out, out


def test_what_is_drawn_before_ctrl_c_is_kept(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, drawn = molgraph.load(trained / "g.mgm").method.sample(256), list[list[str]]()  # type: ignore[attr-defined]

    def stopped(self: LanguageGenerator, n: int, seed: int = 0) -> Iterator[list[str]]:
        for piece in pieces(self, n, seed):
            if len(drawn) == 2:
                raise KeyboardInterrupt
            drawn.append(piece)
            yield piece

    pieces = LanguageGenerator.pieces
    monkeypatch.setattr(LanguageGenerator, "pieces", stopped)
    monkeypatch.setattr(generating, "TOGETHER", 0.0)
    code, out = run("generate", trained / "g.mgm", "-n", 1000, "-o", tmp_path / "new.csv")
    assert code == 130 and "stopped by Ctrl-C after 256 of 1,000" in out and "written to" in out, out
    frame = pd.read_csv(tmp_path / "new.csv", keep_default_na=False)
    assert list(frame["smiles"]) == first
    code, out = run("generate", trained / "g.mgm", "-n", 1000, "-o", tmp_path / "none.csv")
    assert code == 130 and not (tmp_path / "none.csv").exists(), "nothing was drawn"


def test_rows_that_are_not_learned_from_are_told_and_not_counted(tmp_path: Path) -> None:
    rows = [*series(30).smiles, "C*", "CC*", "xx", "C1CC"]
    (tmp_path / "dirty.smi").write_text("\n".join(rows))
    small = [f"-sparams.{name}={value}" for name, value in JTVAE.small.items() if name.startswith("d_")]
    code, out = run(
        "train-generator", tmp_path / "dirty.smi", "-m", "jtvae", *small, "--epochs", 1, "-o", tmp_path / "g.mgm"
    )
    card = molgraph.load(tmp_path / "g.mgm").card
    assert code == 0 and (card.n_train, card.n_valid) == (28, 0), (out, card)
    for note in (
        "rows that are left out: 2 (SMILES Parse Error)",
        "of the validation part that are not learned from: 2",
    ):
        assert note in out and any(note in each for each in card.notes), out
    (tmp_path / "none.smi").write_text("xx\n[Na+].[Cl-]\n")
    code, out = run("train-generator", tmp_path / "none.smi", "-o", tmp_path / "n.mgm")
    assert code == 3 and ": 1 usable rows" in out and "'random'" not in out.partition("\n")[2], out


@pytest.mark.parametrize("name", ["ngram", "language", "jtvae"])
def test_the_smallest_corpora_are_told_how_to_be_learned_from(tmp_path: Path, name: str) -> None:
    (tmp_path / "one.smi").write_text("CCO\nOCC\n" * 10)
    small = () if name == "ngram" else ("-s", "params.d_hidden=8", "--epochs", 1, "--threads", 1)
    words = ("train-generator", tmp_path / "one.smi", "-m", name, *small, "-o", tmp_path / "g.mgm")
    code, out = run(*words)
    assert code == 3 and "leave valid empty" in out and "at least 11 distinct molecules" in out, out
    assert "go without a valid part" in out and "--fractions 1,0,0" in out, out
    code, out = run(*words, "--fractions", "1,0,0")
    assert code == 0, out


def test_the_help_tells_the_split_of_a_corpus() -> None:
    for verb in ("train-generator", "pretrain"):
        code, out = run(verb, "--help")
        assert code == 0 and "(random)" in out and "(0.95,0.05,0.0)" in out and "scaffold/balanced" not in out, out


def test_generators_are_listed() -> None:
    code, out = run("models", "--kind", "generator")
    assert code == 0 and "language" in out and "Segler 2018" in out
    code, out = run("models", "language")
    assert code == 0 and "temperature" in out and "d_hidden" in out, out
