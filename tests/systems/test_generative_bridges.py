"""Brownian bridges in a latent space: their moments, and the molecules on several of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

import molgraph
from molgraph.api.latent_space import linear
from molgraph.generate.brownian_bridge import brownian_bridges
from molgraph.train.model import Model
from tests.systems.effect import Effect
from tests.systems.test_generative import molecules, trained

A, B = np.array([1.0, -2.0, 0.5]), np.array([-1.0, 0.0, 3.0])
SHARE = np.linspace(0, 1, 9)
PATHS, PAIRS = 10, 6


@pytest.mark.system("time-control", rung="exact")
def test_its_points_have_the_moments_of_a_brownian_bridge(off: str) -> None:
    """``N((1 - t) a + t b, s^2 t (1 - t))`` and ``Cov(z_s, z_t) = s^2 s (1 - t)``, each within 4 standard errors."""
    spread, n = 0.7, 10_000
    way = brownian_bridges(A, B, SHARE, n, 0.0 if off else spread)
    np.testing.assert_allclose(way[:, [0, -1]], np.broadcast_to([A, B], (n, 2, 3)), atol=1e-12)
    away = way - linear(A, B, SHARE)
    expected = spread**2 * np.minimum.outer(SHARE, SHARE) * (1 - np.maximum.outer(SHARE, SHARE))
    found = np.einsum("nsd,ntd->dst", away, away) / n
    errors = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / n)
    assert (np.abs(found - expected) <= 4 * errors + 1e-12).all()
    assert (np.abs(away.mean(axis=0)) <= 4 * np.sqrt(np.diag(expected) / n)[:, None] + 1e-12).all()
    np.testing.assert_allclose(brownian_bridges(A, B, SHARE, 2, 0.0), np.stack([linear(A, B, SHARE)] * 2))


@pytest.mark.system("time-control", rung="works")
def test_several_bridges_pass_by_more_molecules_than_the_straight_line(off: str, effect: Effect) -> None:
    """Of both the similarity to the end rises along the way; both are decoded with the same random numbers."""
    model = Model(trained(tokens="selfies", encoder="gru", beta=0.1), targets=())
    held = [str(text) for text in molecules()[1].smiles if "." not in str(text)]
    ratios, rises, straight = [], [], []
    for pair in range(PAIRS):
        a, b = held[2 * pair : 2 * pair + 2]
        counts = []
        for spread in (0.0, 0.0 if off else 1.0):
            ways = molgraph.interpolate(
                model, a, b, path="bridge", paths=PATHS, spread=spread, temperature=0.1, steps=len(SHARE)
            )
            fine = ways[ways["valid"]]
            counts.append(float(fine["smiles"].nunique()))
            (straight if not spread else rises).append(float(spearmanr(fine["share"], fine["like_b"])[0]))
        ratios.append(counts[1] / counts[0])
    assert np.mean(rises or straight) > 0.5
    beside = {"Spearman of share and similarity to the end": rises or straight, "of the straight line": straight}
    effect("different molecules on ten bridges / on the line", ratios, at_least=1.5, beside=beside)
