"""What a training leaves on the terminal and on the disk, where there is little room on either."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import StorageError
from molgraph.cli import show
from molgraph.cli.scores import show_result
from molgraph.cli.train import save
from molgraph.results import TrainingResult


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


def test_a_model_that_finds_no_room_is_kept_elsewhere(
    result: TrainingResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, roomy, real = tmp_path / "full", tmp_path / "roomy", TrainingResult.save

    def write(self: TrainingResult, path: Path) -> Path:
        if path.parent == full:
            raise StorageError(f"cannot write {path}: no space left", hint="the disk is full")
        return real(self, path)

    for folder in (full, roomy):
        folder.mkdir()
    monkeypatch.setattr(TrainingResult, "save", write)
    monkeypatch.chdir(roomy)
    with pytest.raises(
        StorageError, match=r"no space left\n  the model is kept: make room, then: mv .*roomy"
    ) as caught:
        save(result, full / "model.mgm")
    (kept,) = roomy.iterdir()
    assert str(kept) in caught.value.hint
    assert molgraph.load(kept).predict(["CCO"]).status.tolist() == ["ok"]
    monkeypatch.setattr(TrainingResult, "save", lambda self, path: write(self, full / path.name))
    with pytest.raises(StorageError, match="the disk is full"):
        save(result, full / "model.mgm")
