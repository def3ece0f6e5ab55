"""Contrastive pretraining: settings that exclude each other, and a model that starts from what classes taught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import molgraph
from molgraph.base.errors import ConflictError, UsageError
from molgraph.data.table import Target, make_table
from tests.systems.contrasts import made
from tests.tiny import series

SIZE: dict[str, Any] = {"params": {"d_hidden": 8, "depth": 2}, "epochs": 1, "threads": 1, "batch_size": 16}


@pytest.mark.parametrize(
    "words", ["loss=barlow, debias=0.1", "loss=whitening, adversarial=1", "loss=barlow, bound=wpc"]
)
def test_what_is_done_to_negatives_needs_them(words: str) -> None:
    with pytest.raises(ConflictError, match="has no negatives"):
        made(f"contrast({words})")


def test_a_changed_positive_needs_a_change() -> None:
    with pytest.raises(ConflictError, match="no molecule is changed"):
        made("contrast(positive=true)")


def test_whitening_has_a_least_batch_and_judges_few_rows(tmp_path: Path) -> None:
    how: dict[str, Any] = {"model": "gin", "objective": "contrast(loss=whitening, width=8)", **SIZE}
    model = molgraph.pretrain(series(48).smiles.tolist(), **how)
    assert np.isfinite(model.method.curves["valid_loss"]).all()  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="a batch has 4"):
        molgraph.pretrain(series(48).smiles.tolist(), **{**how, "batch_size": 4})


def test_a_model_starts_from_the_encoder_that_classes_taught(tmp_path: Path) -> None:
    few = series(48)
    size = np.array([[len(text), text.count("C")] for text in few.smiles])
    y = (size > np.median(size, axis=0)).astype(float)
    y[::5, 1] = np.nan
    table = make_table(few.smiles.tolist(), targets=(Target("a", "binary"), Target("b", "binary")), y=y)
    model = molgraph.pretrain(table, objective="supcon(cliffs=2, width=8)", **SIZE)
    path = model.save(tmp_path / "encoder.mgm")
    assert molgraph.embed(path, ["CCO"]).value.shape == (1, 8) and model.card.what.startswith("an encoder pretrained")
    started = molgraph.finetune(path, few, epochs=1, baseline=False, split="random").model
    assert any("the encoder dmpnn started from" in note for note in started.card.notes)
