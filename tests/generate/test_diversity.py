"""Determinantal diversity against numpy, exhaustive search and the paper's pictures."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from molgraph.base.errors import UsageError
from molgraph.generate.diversity import determinantal_diversity, kernel_matrix, select_diverse


def test_a_copy_spans_nothing(rng: np.random.Generator) -> None:
    x = rng.integers(0, 2, (6, 64))
    assert determinantal_diversity(x) == pytest.approx(np.linalg.det(kernel_matrix(x)), rel=1e-9)
    assert determinantal_diversity(np.vstack([x, x[2]])) < 1e-9
    assert determinantal_diversity(np.vstack([x, x[2]]), "rbf") < 1e-9


def test_tight_pairs_moved_apart_gain_distance_and_no_volume() -> None:
    def pairs(apart: float) -> np.ndarray:
        return np.array([[0, 0], [0.02, 0], [apart, apart], [apart + 0.02, apart]])

    def distance(x: np.ndarray) -> float:
        return float(np.mean([np.linalg.norm(a - b) for a, b in combinations(x, 2)]))

    near, far = pairs(5), pairs(9)
    assert distance(near) == pytest.approx(4.7, abs=0.05) and distance(far) == pytest.approx(8.5, abs=0.05)
    assert determinantal_diversity(near, "rbf") == pytest.approx(1.6e-7, rel=0.01)
    assert determinantal_diversity(far, "rbf") == pytest.approx(1.6e-7, rel=0.01)
    square = np.array([[0, 0], [0, 2], [2, 0], [2, 2]])
    assert determinantal_diversity(square, "rbf") == pytest.approx(0.93, abs=0.005)


def clustered(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """12 fingerprints about 4 centres, and scores that favour one of the centres."""
    centres = rng.random((4, 128)) < 0.3
    x = np.array([np.where(rng.random(128) < 0.06, ~centres[i % 4], centres[i % 4]) for i in range(12)])
    return x.astype(np.uint8), np.where(np.arange(12) % 4 == 0, 1.0, 0.0) + rng.normal(0, 0.3, 12)


def test_greedy_volumes_are_near_the_best_and_above_the_top_scores(rng: np.random.Generator) -> None:
    shares, better = [], []
    for _ in range(60):
        x, scores = clustered(rng)
        k = kernel_matrix(x)
        chosen, logarithm = select_diverse(scores, k, 4, weight=1.0)

        def det(rows: object, k: np.ndarray = k) -> float:
            return float(np.linalg.det(k[np.ix_(list(rows), list(rows))]))  # type: ignore[call-overload]

        assert np.exp(logarithm) == pytest.approx(det(chosen), rel=1e-6)
        shares.append(det(chosen) / max(det(rows) for rows in combinations(range(12), 4)))
        mixed, _ = select_diverse(scores, k, 4, weight=0.5)
        better.append(det(mixed) >= det(np.argsort(-scores)[:4]))
    assert np.median(shares) >= 0.95 and max(shares) <= 1 + 1e-9
    assert np.mean(better) >= 0.85


def test_weights_of_none_and_all(rng: np.random.Generator) -> None:
    x, scores = clustered(rng)
    k = kernel_matrix(x)
    assert sorted(select_diverse(scores, k, 5, weight=0.0)[0]) == sorted(np.argsort(-scores)[:5])
    assert len(select_diverse(scores, k, 99)[0]) == 12
    same = np.ones((4, 4))
    assert sorted(select_diverse(np.zeros(4), same, 4)[0]) == [0, 1, 2, 3], "copies are chosen last, each once"
    for wrong in ((scores[:3], k, 2), (np.full(12, np.nan), k, 2), (scores, k, -1)):
        with pytest.raises(UsageError):
            select_diverse(*wrong)
    with pytest.raises(UsageError, match="did you mean 'tanimoto'"):
        kernel_matrix(x, "tanimato")
