"""Weights along the data's directions: misalignment in closed form, and draws of the covariance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group

from molgraph.nn.covariance_init import covariance_weights, misalignment, transfer, weight_covariance


@pytest.mark.system("weight-data-covariance-alignment", rung="exact")
def test_a_shared_basis_has_no_misalignment_and_a_turned_one_that_of_the_equation(off: str) -> None:
    """Off: the inverse is left out, so that only the diagonal counts."""
    v = ortho_group.rvs(5, random_state=0)
    data = (v * np.arange(1.0, 6)) @ v.T
    shared = (v * np.array([4.0, 0.1, 9, 2, 1])) @ v.T
    assert abs(misalignment(shared, data)) < 1e-10
    other = np.cov(np.random.default_rng(0).normal(size=(5, 40)))
    e = np.linalg.eigh(data)[1]
    by_hand = (
        sum(np.sqrt((e[:, i] @ other @ e[:, i]) * (e[:, i] @ np.linalg.inv(other) @ e[:, i])) for i in range(5)) - 5
    )
    assert misalignment(shared if off else other, data) == pytest.approx(by_hand, abs=1e-10) and by_hand > 0.1


@pytest.mark.system("weight-data-covariance-alignment", rung="exact")
def test_drawn_weights_have_the_covariance_that_was_asked_for(off: str) -> None:
    """200,000 draws, against ``V f^2 V'``; off: the eigenvectors are left out."""
    v = ortho_group.rvs(4, random_state=1)
    data, scale = (v * np.array([1.0, 2, 3, 4])) @ v.T, np.array([2.0, 0.5, 1.0, 0.1])
    w = covariance_weights(200_000, data, scale, 100.0, 0)
    assert np.linalg.norm(w) == pytest.approx(100)
    e = np.eye(4) if off else np.linalg.eigh(data)[1]
    wanted = (e * scale**2) @ e.T
    np.testing.assert_allclose(
        weight_covariance(w) / np.trace(weight_covariance(w)), wanted / np.trace(wanted), atol=0.01
    )
    deviations = transfer(w, data)
    np.testing.assert_allclose(deviations / deviations.max(), scale / scale.max(), atol=0.02)
