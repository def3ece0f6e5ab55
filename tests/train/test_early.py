"""The encoder so far, which a pretraining writes while it goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import molgraph
from tests.tiny import same_bits, series, weights_of


def test_an_encoder_can_be_used_while_its_training_goes_on(tmp_path: Path) -> None:
    plain = molgraph.pretrain(series(40), model="dmpnn", params={"d_hidden": 8}, epochs=3, threads=1)
    kept = molgraph.pretrain(series(40), model="dmpnn", params={"d_hidden": 8}, epochs=3, threads=1, workdir=tmp_path)
    assert same_bits(weights_of(plain.method), weights_of(kept.method))
    early = molgraph.load(tmp_path / "early.mgm")
    assert early.method.best_epoch in (1, 2) and len(early.method.curves) < 3
    assert np.isfinite(molgraph.embed(early, ["CCO"]).value).all()
