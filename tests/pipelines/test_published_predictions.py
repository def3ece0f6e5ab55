"""Published predictions of a data set's own authors enter a benchmark through the same door as anybody's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import molgraph

SCRIPT = Path(__file__).resolve().parents[2] / "pipelines" / "boards" / "published.py"


@pytest.mark.slow
@pytest.mark.data
def test_simulated_free_energies_stand_on_the_board_of_freesolv(data_dir: Path, tmp_path: Path) -> None:
    split = {"splitter": "scaffold/balanced", "folds": 3}
    recipe = {"name": "free", "datasets": ["freesolv@c1"], "split": [split], "method": [{"name": "mean"}]}
    molgraph.benchmark(recipe, tmp_path / "run")
    subprocess.run([sys.executable, SCRIPT, tmp_path / "run"], check=True, capture_output=True)
    (board, *_) = molgraph.benchmark(tmp_path / "run" / "recipe.toml", tmp_path / "run").boards
    # Mobley and Guthrie 2014 report a root mean square error of 1.5 kcal/mol over the whole set
    assert board.methods == ["simulation", "mean"] and board.ranking.table["mean"]["simulation"] == pytest.approx(
        1.5, abs=0.1
    )
    assert board.entered["simulation"].startswith("self-reported")
