"""What a training leaves on the terminal and on the disk, where there is little room on either."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import CannotWriteError
from molgraph.cli import show
from molgraph.cli.show import show_result
from molgraph.cli.train import save
from molgraph.run.result import TrainingResult


@pytest.fixture(scope="module")
def result() -> TrainingResult:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"smiles": ["C" * n + "O" for n in range(1, 41)]})
    for name in ("log solubility", "logP", "toxic"):
        frame[name] = rng.normal(size=40) if name != "toxic" else rng.integers(0, 2, 40)
    targets = list(frame.columns[1:])
    return molgraph.train(frame, targets=targets, model="random_forest", params={"n_estimators": 5}, split="random")


def test_many_targets_fit_a_narrow_terminal(
    result: TrainingResult, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    monkeypatch.setattr(show, "console", lambda err=False: Console(width=60, highlight=False, soft_wrap=True))
    show_result(result)
    lines = capsys.readouterr().out.splitlines()
    for (target, metric), column in result.scores.items():
        (line,) = [line for line in lines if line.startswith(f"{target} {metric} ")]
        shown = [f"{value:.3f}" if np.isfinite(value) else "-" for value in column]
        assert [word for word in line.removeprefix(f"{target} {metric}").split() if word != "*"] == shown
        assert line.count("*") == int(column.notna().any())
        assert len(line) <= 60


def test_several_kinds_of_targets_show_their_own_metrics_alone(
    result: TrainingResult, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, labels = ("rmse", "mae", "r2", "spearman"), ("roc_auc", "prc_auc", "mcc", "brier")
    expected = [(name, metric) for name in ("log solubility", "logP") for metric in numbers]
    expected += [("toxic", metric) for metric in labels]
    assert list(result.scores.columns) == expected
    assert list(result.scores.index) == ["random_forest", "mean"]
    show_result(result)
    shown = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("log solubility ", "logP ", "toxic ")) for line in shown) == len(expected)
    page = result._repr_html_()
    assert page.partition("<tbody>")[2].count("<tr>") == len(expected) + 2, "and the two means over the two numbers"
    assert "roc_auc" in page and "NaN" not in page
    both = result.scores.xs("r2", axis=1, level="metric").mean(axis=1)
    (line,) = [line for line in shown if line.startswith("mean of 2 targets r2 ")]
    assert [word for word in line.split()[5:] if word != "*"] == [f"{value:.3f}" for value in both]
    assert not any(line.startswith("mean of 2 targets rmse") for line in shown), "in the targets' own units"


def test_rows_of_each_class_stand_beside_the_scores(
    result: TrainingResult, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    y = result.table.y[:, 2]
    counts = [
        f"{part} {(y[rows] == 0).sum()} | {(y[rows] == 1).sum()}"
        for part, rows in vars(result.split).items()
        if part in ("train", "valid", "test")
    ]
    line = f"rows of toxic 0 | 1: {', '.join(counts)}"
    show_result(result)
    assert line in capsys.readouterr().out
    assert line in repr(result) and line in result._repr_html_()
    assert line in result.report(tmp_path / "report.html").read_text()
    loaded = molgraph.load(result.save(tmp_path / "m.mgm"))
    assert loaded.summary()["classes"] == line and line in loaded._repr_html_()
    assert "no verdict" in result.verdicts[2].sentence, "four test rows"


def test_a_score_that_the_rows_cannot_give_is_a_dash_with_its_note(
    result: TrainingResult, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = result.score_rows.copy()
    lost = (rows["target"] == "toxic") & rows["metric"].isin(["roc_auc", "prc_auc"])
    rows.loc[lost, ["value", "note"]] = [np.nan, "only one class"]
    poor = replace(result, score_rows=rows)
    assert list(poor.scores.columns) == list(result.scores.columns)
    assert poor.notes == ("toxic: no roc_auc, prc_auc of random_forest (only one class)",)
    show_result(poor)
    out = capsys.readouterr().out
    assert poor.notes[0] in out and poor.notes[0] in poor._repr_html_() and poor.notes[0] in repr(poor)
    (line,) = [line for line in out.splitlines() if line.startswith("toxic roc_auc")]
    assert line.split() == ["toxic", "roc_auc", "-", "-"]


def test_without_a_test_part_there_are_no_scores(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"smiles": ["C" * n + "O" for n in range(1, 11)], "y": np.arange(10.0)})
    result = molgraph.train(frame, targets=["y"], model="mean", split="random", fractions=(0.9, 0.1, 0))
    assert result.scores.empty and result.notes == () and "<table" not in result._repr_html_()
    show_result(result)
    assert "There is no test part" in capsys.readouterr().out


def test_the_way_to_the_better_one_is_told_unless_it_was_taken(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = SimpleNamespace(sentence="y: random_forest beats dmpnn", detail="", tone="clear")
    forest, graph = SimpleNamespace(name="random_forest"), SimpleNamespace(kind="dmpnn")
    won = SimpleNamespace(
        test=[],
        scores=[],
        verdicts=[verdict],
        baseline=forest,
        model=graph,
        best={"y": "random_forest"},
        cv=None,
        gaps=(),
        reliability=(),
    )
    for keep in ("all", "model", "best", "baseline"):
        show_result(won, keep)
        assert ("--keep best chooses" in capsys.readouterr().out) == (keep in ("all", "model")), keep


def test_a_model_that_finds_no_room_is_kept_elsewhere(
    result: TrainingResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, roomy, real = tmp_path / "full", tmp_path / "roomy", TrainingResult.save

    def write(self: TrainingResult, path: Path) -> Path:
        if path.parent == full:
            raise CannotWriteError(f"cannot write {path}: no space left", hint="the disk is full")
        return real(self, path)

    for folder in (full, roomy):
        folder.mkdir()
    monkeypatch.setattr(TrainingResult, "save", write)
    monkeypatch.chdir(roomy)
    with pytest.raises(CannotWriteError, match=r"mv .*roomy") as caught:
        save(result, full / "model.mgm")
    (kept,) = roomy.iterdir()
    assert str(kept) in caught.value.hint
    assert molgraph.load(kept).predict(["CCO"]).status.tolist() == ["ok"]
    monkeypatch.setattr(TrainingResult, "save", lambda self, path: write(self, full / path.name))
    with pytest.raises(CannotWriteError, match="disk"):
        save(result, full / "model.mgm")
