"""Choices of a batch by scores, by similarities, and what cannot be chosen; determinants stand in tests/systems."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.errors import BadValueError, UnknownNameError
from molgraph.generate.diversity import kernel_matrix, select_diverse


def clustered(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """12 fingerprints about 4 centres, and scores that favour one of the centres."""
    centres = rng.random((4, 128)) < 0.3
    x = np.array([np.where(rng.random(128) < 0.06, ~centres[i % 4], centres[i % 4]) for i in range(12)])
    return x.astype(np.uint8), np.where(np.arange(12) % 4 == 0, 1.0, 0.0) + rng.normal(0, 0.3, 12)


def test_weights_of_none_and_all(rng: np.random.Generator) -> None:
    x, scores = clustered(rng)
    k = kernel_matrix(x)
    assert sorted(select_diverse(scores, k, 5, weight=0.0)[0]) == sorted(np.argsort(-scores)[:5])
    assert len(select_diverse(scores, k, 99)[0]) == 12
    same = np.ones((4, 4))
    assert sorted(select_diverse(np.zeros(4), same, 4)[0]) == [0, 1, 2, 3], "copies are chosen last, each once"
    for wrong in ((scores[:3], k, 2), (np.full(12, np.nan), k, 2), (scores, k, -1)):
        with pytest.raises(BadValueError):
            select_diverse(*wrong)
    with pytest.raises(UnknownNameError, match="'tanimato'"):
        kernel_matrix(x, "tanimato")
