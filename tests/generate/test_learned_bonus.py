"""The file of the learned bonus: read as it was written, and refused where it is another thing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from molgraph.base.errors import DamagedModelError
from molgraph.generate.rewards.learned import LearnedBonus

SMILES, SCORE = ["CCO", "CCN", "c1ccccc1O", "CC(=O)O"], np.array([0.1, np.nan, 0.7, 0.3])


def scores(**how: int | str) -> np.ndarray:
    """Of two batches."""
    reward = LearnedBonus(steps=2, **{"width": 8, **how})  # type: ignore[arg-type]
    reward.begin(None)
    return np.array([reward.adjust(SMILES, SCORE) for _ in range(2)])


def test_a_file_gives_the_network_that_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "bonus.safetensors"
    first = scores(file=str(path))
    before = path.read_bytes()
    assert scores(file=str(path)).tobytes() == scores().tobytes() == first.tobytes()
    assert path.read_bytes() == before and (first[0] != first[1])[[0, 2, 3]].all(), "the history counts"


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bonus.safetensors"
    scores(file=str(path))
    with pytest.raises(DamagedModelError, match="shape"):
        scores(file=str(path), width=16)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DamagedModelError, match="unlike"):
        scores(file=str(path))
