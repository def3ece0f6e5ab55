"""A training that starts from a model of other labels says which of its rows that model had learnt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import molgraph
from molgraph.train import modelfile
from molgraph.train.method import GraphMethod
from tests.tiny import series


def test_rows_whose_values_the_start_had_learnt_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"epochs": 1, "split": "random", "baseline": False}
    first = molgraph.train(series(60), model="dmpnn", params={"d_hidden": 8}, **options).model
    path = first.save(tmp_path / "first.mgm")
    second = molgraph.train(series(60), init=str(path), seed=1, **options)
    assert "test rows hold molecules whose values" in caplog.text
    assert any("flatter the model that starts from it" in note for note in second.model.card.notes)
    assert set(first.trained_on.tolist()) < set(second.model.trained_on.tolist())
    caplog.clear()
    encoder = molgraph.pretrain(series(60), params={"d_hidden": 8}, epochs=1).save(tmp_path / "encoder.mgm")
    molgraph.train(series(60), init=str(encoder), **options)  # which has seen no values
    assert "flatter" not in caplog.text


def test_a_fine_tuning_reads_its_file_once_and_makes_its_method_once(tmp_path: Path, monkeypatch) -> None:
    """Beside the method that the file holds."""
    file = molgraph.pretrain(series(60), epochs=1, params={"d_hidden": 8}).save(tmp_path / "encoder.mgm")
    counts = {"files": 0, "methods": 0}
    load, keep = modelfile._load, GraphMethod.check

    def counted(*args, **kwargs):
        counts["files"] += 1
        return load(*args, **kwargs)

    def made(self) -> None:
        counts["methods"] += not hasattr(self, "counted")
        self.counted = True
        keep(self)

    monkeypatch.setattr(modelfile, "_load", counted)
    monkeypatch.setattr(GraphMethod, "check", made)
    molgraph.finetune(file, series(60), epochs=1, baseline=False)
    assert counts == {"files": 1, "methods": 2}


def test_a_model_of_the_same_target_goes_on_with_its_head_and_its_scale(tmp_path: Path) -> None:
    """At a step size of next to nothing it predicts what the file does; of another target the head is new."""
    still: dict[str, Any] = {"learning_rate": 1e-12, "epochs": 1, "split": "random", "baseline": False}
    first = molgraph.train(
        series(60), model="dmpnn", params={"d_hidden": 8, "head_width": 16}, **{**still, "learning_rate": 1e-3}
    ).model
    path = str(first.save(tmp_path / "first.mgm"))
    later = series(40, 200)
    second = molgraph.finetune(path, later, **still).model
    assert np.allclose(second.method.predict(later).value, first.method.predict(later).value, atol=1e-4)
    assert any("the encoder dmpnn and the head started from first.mgm" in note for note in second.card.notes)
    renamed = replace(later, targets=(replace(later.targets[0], name="other"),))
    third = molgraph.finetune(path, renamed, **still).model
    assert any("the encoder dmpnn started from first.mgm" in note for note in third.card.notes)
