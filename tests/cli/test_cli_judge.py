"""Judging generated molecules and sweeping temperatures at the shell."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from molgraph.cli.main import app
from tests.tiny import series


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
        (("temperature-sweep", "g.mgm", "--quality", "snm"), "no metric of generators is named 'snm'"),
    ],
)
def test_words_for_what_cannot_be_done(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = run(*words)
    assert code in (2, 5) and said in out, out
