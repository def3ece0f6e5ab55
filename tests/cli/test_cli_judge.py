"""Judging generated molecules and sweeping temperatures at the shell."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import UnknownNameError
from molgraph.cli.main import app
from molgraph.generate.ngram import NgramGenerator
from tests.tiny import series

ACIDS = [f"{'C' * n}C([O-])=O" for n in range(1, 25)]  # charged: `standard` takes the charge away


@pytest.fixture(scope="module")
def charged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of charged molecules and a generator that learned them, neutral, by heart."""
    folder = tmp_path_factory.mktemp("charged")
    (folder / "acids.smi").write_text("\n".join(ACIDS) + "\n")
    assert run("train-generator", folder / "acids.smi", "-m", "ngram", "-o", folder / "g.mgm")[0] == 0
    return folder


def test_draws_and_what_they_are_compared_with_are_standardised_alike(charged: Path) -> None:
    table = ["--train", charged / "acids.smi", "--reference", charged / "acids.smi", "--no-controls"]
    code, out = run("judge-generation", charged / "g.mgm", "-n", 40, *table, "-o", charged / "a.csv")
    frame = pd.read_csv(charged / "a.csv").set_index("metric")["value"]
    drawn = molgraph.generate(charged / "g.mgm", 40)
    assert code == 0 and "all molecules standardised (standard)" in out and "unique@40" in out, out
    assert frame["novel"] == pytest.approx(drawn.n_novel / drawn.n_unique), "as generate has it"
    run("generate", charged / "g.mgm", "-n", 40, "-o", charged / "new.csv")
    new = charged / "new.csv"
    code, out = run("judge-generation", new, *table, "-o", charged / "c.html")
    warned = "charges or salts in 100% of the training molecules and 0% of new"
    assert code == 0 and f"warning: {warned}" in out and "--standardise standard" in out, out
    assert warned in (charged / "c.html").read_text("utf-8") and "of the reference molecules" in out
    found = {}
    for preset in ("none", "standard"):
        asked = ["--standardise", preset, *table, "-o", charged / "b.csv"]
        code, out = run("judge-generation", new, *asked)
        assert code == 0 and ("warning" in out) == (preset == "none"), out
        found[preset] = pd.read_csv(charged / "b.csv").set_index("metric")["value"]
    assert found["none"]["novel"] == frame["novel"], "however they are charged"
    assert found["standard"].drop("kl").equals(frame.drop("kl"))
    with pytest.raises(UnknownNameError, match="standart"):
        molgraph.judge_generation(["CCO"], standardise="standart")


def test_a_sweep_chooses_a_quality_that_tells_something_and_keeps_what_is_done(
    charged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, temperatures = NgramGenerator.sample, []

    def stopped(self: NgramGenerator, n: int, seed: int = 0) -> list[str]:
        temperatures.append(self.temperature)
        if len(temperatures) % 3 == 0:
            raise KeyboardInterrupt
        return sample(self, n, seed)

    sweep = ["temperature-sweep", charged / "g.mgm", "-n", 30]
    code, out = run(*sweep, "--temperatures", "0.5,200")
    assert code == 2 and "temperature is 200" in out and "0.500" not in out, out
    monkeypatch.setattr(NgramGenerator, "sample", stopped)
    kept = tmp_path / "f.csv"
    code, out = run(*sweep, "--temperatures", "0.5,1,1.5", "-r", charged / "acids.smi", "-o", kept)
    assert code == 130 and "stopped by Ctrl-C after 2 of 3 temperatures of g" in out and "frechet" in out, out
    assert pd.read_csv(kept)["temperature"].tolist() == [0.5, 1.0]


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    return done.exit_code, done.output


@pytest.mark.slow
def test_from_a_corpus_to_a_report_and_a_frontier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, start, n in (("train", 0, 60), ("held", 60, 30)):
        Path(f"{name}.smi").write_text("\n".join(series(n, start).smiles) + "\n")
    code, out = run("train-generator", "train.smi", "-m", "ngram", "-o", "g.mgm")
    assert code == 0, out
    code, out = run("generate", "g.mgm", "-n", 50, "-o", "new.csv")
    drawn = pd.read_csv("new.csv", keep_default_na=False)
    asked = ("--train", "train.smi", "--reference", "held.smi", "--embedding", "descriptors")
    code, out = run("judge-generation", "new.csv", *asked, "-o", "a.html")
    share = f"{drawn['valid'].mean():.1%}"
    assert code == 0 and f"new: 50 drawn, {share} valid" in out and "AddCarbon" in out and "written to a.html" in out, (
        out
    )
    code, out = run("judge-generation", "g.mgm", "-n", 50, *asked, "--no-controls", "-o", "a.csv")
    frame = pd.read_csv("a.csv").set_index("metric")
    assert code == 0 and frame.loc["valid", "value"] == pytest.approx(drawn["valid"].mean()), "the same draws"
    code, out = run("temperature-sweep", "g.mgm", "g.mgm", "--temperatures", "0.5,1", "-n", 60, "-o", "f.png")
    assert code == 0 and "a tie" in out and Path("f.png").read_bytes()[:4] == b"\x89PNG", out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("judge-generation", "x.csv", "-o", "a.txt"), "unknown ending"),
        (("judge-generation", "x.csv"), "x.csv"),
        (("temperature-sweep", "g.mgm", "--temperatures", "warm"), "are no numbers"),
        (("temperature-sweep", "g.mgm", "--quality", "snn"), "snn needs --reference"),
        (("temperature-sweep", "g.mgm", "--quality", "valid_unchecked"), "judge-generation draws without the check"),
        (("judge-generation", "jtvae-zink"), "did you mean 'jtvae-zinc'"),
        (("temperature-sweep", "g.mgm", "--quality", "snm"), "no metric of generators is named 'snm'"),
    ],
)
def test_words_for_what_cannot_be_done(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = run(*words)
    assert code in (2, 5) and said in out, out
