"""The demo does what the README promises of it, on data that comes with RDKit."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import molgraph as mg
from molgraph.auxiliary.random_forest import RandomForest
from tests.end_to_end.conftest import Done, molgraph

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """The demo's words and its folder, with a shorter training and a smaller forest."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RandomForest.__init__, "__defaults__", (20, *RandomForest.__init__.__defaults__[1:]))
        done = molgraph("demo", "--out", "demo", "--epochs", "1", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done, folder / "demo"


def test_it_tells_the_whole_story(told: tuple[Done, Path]) -> None:
    done, folder = told
    assert "1,017 molecules" in done.stdout and "pActivity" in done.stdout
    sizes = re.search(r"split scaffold/balanced: (\d+) train, (\d+) valid, (\d+) test", done.stderr)
    assert sizes is not None and sum(map(int, sizes.groups())) == 1017, done.stderr
    rows = {
        line.split()[0]: line for line in done.stdout.splitlines() if re.match(r"(dmpnn|random_forest|mean) ", line)
    }
    assert set(rows) == {"dmpnn", "random_forest", "mean"}
    assert all(re.search(r"\d\.\d{3}", line) for line in rows.values())
    assert "molgraph train builtin:chembl2321810" in done.stdout and "molgraph predict" in done.stdout
    assert {p.name for p in folder.iterdir()} == {"model.mgm", "new.csv", "predicted.csv", "report.html"}


def test_its_model_file_is_sound(told: tuple[Done, Path]) -> None:
    model = mg.load(told[1] / "model.mgm")
    assert model.name == "dmpnn" and model.card.split == "scaffold/balanced"
    assert molgraph("verify", told[1] / "model.mgm", cwd=told[1]).returncode == 0


def test_five_new_molecules_are_five_rows_one_of_them_with_a_reason(told: tuple[Done, Path]) -> None:
    frame = pd.read_csv(told[1] / "predicted.csv", dtype={"id": str}, keep_default_na=False)
    assert frame["id"].tolist() == [f"new-{i}" for i in range(1, 6)]
    assert frame["status"].tolist() == ["ok"] * 4 + ["unreadable"]
    assert [bool(reason) for reason in frame["reason"]] == [False] * 4 + [True]
    assert [bool(value) for value in frame["pActivity"]] == [True] * 4 + [False]


def test_its_report_has_plot_errors_and_manifest(told: tuple[Done, Path]) -> None:
    page = (told[1] / "report.html").read_text()
    assert re.search(r"pActivity: predicted and measured</h2>\s*<figure[^>]*><svg ", page), "the parity plot"
    worst = page.partition("Worst errors of ")[2].partition("</ul>")[0]
    assert worst.count("<li><") >= 4 and worst.count("<svg") + worst.count("<img") >= 4, "drawn as structures"
    for words in ("What a repeat of this run needs", "New molecules", "new-5", "random_forest", "scaffold/balanced"):
        assert words in page, words
    assert not re.search(r"(src|href)=[\"']https?://", page)


@pytest.mark.parametrize("name", ["model.mgm", "new.csv", "predicted.csv", "report.html"])
def test_it_writes_over_files_of_an_earlier_demo_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    done = molgraph("demo", "--out", ".", cwd=tmp_path)
    assert done.returncode == 5 and f"{name} is no file of an earlier demo" in done.stderr
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {name: "mine"}
