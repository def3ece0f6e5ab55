"""Modes of few-label learners: closed forms of gradient descent and of Bayes' weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from molgraph.auxiliary.study.modes import descent_errors, descent_gap, half_life, posterior_mean

S = np.array([1.0, 0.5, 0.25])


@pytest.mark.system("mode-wise-learning-dynamics-of-meta-lear", rung="exact")
def test_gradient_descent_learns_modes_by_their_singular_values(off: str) -> None:
    """Closed form within 1e-6, half-lives as ``(s_1 / s_k)^2``; off: all modes of one singular value."""
    assert descent_gap(S, 0) < 1e-6
    lives = half_life(descent_errors(np.full(3, 0.5) if off else S, 0.01, 4000))
    np.testing.assert_allclose(lives / lives[0], (S[0] / S) ** 2, rtol=0.1)
    assert half_life(np.array([[1.0], [0.9]]))[0] == np.inf


@pytest.mark.system("mode-wise-learning-dynamics-of-meta-lear", rung="exact")
def test_bayes_weights_are_a_ridge_regression(off: str) -> None:
    """With ``lambda = sigma^2 / tau^2``; off: ``lambda = sigma``."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 3)) * S
    y = x @ rng.normal(size=3) + 0.3 * rng.normal(size=12)
    ridge = Ridge(alpha=0.3 if off else 0.3**2, fit_intercept=False, solver="cholesky").fit(x, y)
    np.testing.assert_allclose(posterior_mean(x, y, 0.3), ridge.coef_, atol=1e-8)
