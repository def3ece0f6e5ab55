"""The paper's experiments of optimisation run on a tiny generator, stop and go on, and write their page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import molgraph
from molgraph.base.registry import register
from molgraph.train.model import Model
from pipelines.jtvae import optimise as experiments
from tests.latent import NearestMolecule, latent_generator


@pytest.mark.data
@pytest.mark.slow
def test_the_experiments_write_a_page_and_do_nothing_twice(tmp_path: Path, data_dir: Path) -> None:
    register("generator", NearestMolecule.name, summary="the nearest molecule of a list")(NearestMolecule)
    table = molgraph.read_table(data_dir / "zinc250k" / "zinc250k_properties.csv.gz", smiles="smiles")
    Model(latent_generator(table.take(range(0, 40_000, 100)), d=4), targets=()).save(tmp_path / "near.mgm")
    words = [str(tmp_path / "near.mgm"), "--calls", "20", "--batch", "10", "--starts", "3", "--head", "60"]
    words += ["--out", str(tmp_path / "near.md")]
    page = experiments.main(words).read_text("utf-8")
    assert "| qed | bayes |" in page and "| penalized_logp_zinc | sampling |" in page and "paper" in page
    rows = [line for line in page.splitlines() if line.startswith(("| 0 |", "| 0.2 |", "| 0.4 |", "| 0.6 |"))]
    assert len(rows) == 4 and "3 starts were improved from; 0 have no place" in page
    kept = {path: os.stat(path).st_mtime_ns for path in tmp_path.rglob("*.json*")}
    assert len(kept) == 3 and experiments.main(words).read_text("utf-8") == page
    assert kept == {path: os.stat(path).st_mtime_ns for path in kept}
