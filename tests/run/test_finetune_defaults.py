"""What ``finetune`` does by itself: lp-ft, the encoder's standardiser, and a model from scratch beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import molgraph
from molgraph.base.errors import ConflictError, LabelError, UnsupportedError
from tests.tiny import series


def test_it_learns_the_head_first_and_says_whether_the_start_paid(tmp_path: Path, caplog: Any) -> None:
    caplog.set_level("INFO", logger="molgraph")
    made = molgraph.pretrain(series(40), params={"d_hidden": 8}, epochs=1, threads=1, standardise="desalt")
    encoder = made.save(tmp_path / "encoder.mgm")
    how: dict[str, Any] = {"epochs": 2, "threads": 1, "split": "random", "fractions": (0.6, 0.1, 0.3)}
    result = molgraph.finetune(encoder, series(60), params={"head_width": 8}, **how)
    assert "probe=auto" in result.recipe.training.callback and result.model.method.head_layers == 1
    assert result.model.standardiser == "desalt"
    assert [run.name for run in result.runs] == ["dmpnn", "dmpnn from scratch", "random_forest", "mean"]
    scratch = result.runs[1].method
    assert scratch.init is None and scratch.callback is None and scratch.head_layers == 2
    assert scratch.params["d_hidden"] == 8
    (said,) = result.gaps
    assert (
        "ine-tuning" in said.sentence and "training from scratch" in said.sentence and "random_forest" in said.sentence
    )
    assert said.sentence in result.verdict and any("ine-tuning" in note for note in result.model.card.notes)
    again = molgraph.finetune(result.model.save(tmp_path / "fine.mgm"), series(60), baseline=False, **how)
    assert again.recipe.training.callback == "lp-ft", "of a model with values the head is learnt, too"
    plain = molgraph.finetune(encoder, series(60), callback="none", compare=False, params={"head_width": 8}, **how)
    assert plain.curves is not None and len(plain.runs) == 3
    with pytest.raises(ConflictError, match="standardised by 'desalt'"):
        molgraph.finetune(encoder, series(60), standardise="none", **how)
    with pytest.raises(UnsupportedError, match="no encoder"):
        molgraph.train(series(60), model="random_forest", callback="lp-ft")
    with pytest.raises(UnsupportedError, match="layers"):
        molgraph.finetune(encoder, series(60), callback="scalar-mix", baseline=False, **how)
    assert "from scratch, to see whether the start pays" in caplog.text


def test_it_learns_the_targets_of_its_file_where_the_table_has_them(tmp_path: Path) -> None:
    frame = series(40).to_frame()[["smiles", "pActivity"]].assign(weight=1.5)
    how: dict[str, Any] = {"epochs": 1, "threads": 1, "split": "random", "baseline": False, "compare": False}
    first = molgraph.train(frame, targets=["pActivity"], params={"d_hidden": 8, "head_width": 8}, **how)
    file = first.save(tmp_path / "first.mgm")
    assert [target.name for target in molgraph.finetune(file, frame, **how).model.targets] == ["pActivity"]
    with pytest.raises(LabelError, match="no target was named"):
        molgraph.finetune(file, frame.rename(columns={"pActivity": "other"}), **how)
