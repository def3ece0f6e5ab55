"""Trust under shift: temperature, calibration error and mixtures by definition; a loss that grows far from training.

The inequality for ``Ensemble`` and the calibration curve stand in ``test_uncertainty_ood.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.auxiliary.study.shift import Fits, by_bin
from molgraph.data.datasets import load_dataset
from molgraph.evaluate.measures import roc_auc
from molgraph.evaluate.screening import calibration_error
from molgraph.evaluate.shift_scores import Guess, fit_temperature, mix, nll, scores, with_temperature
from molgraph.study.near_far import divide
from molgraph.study.study import Subject
from molgraph.trust.last_layer import fit_last_layer
from tests.systems.effect import Effect

ID = "uncertainty-under-shift-benchmark"


def drawn(n: int, seed: int, factor: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from probabilities, and those probabilities with logits times a factor."""
    rng = np.random.default_rng(seed)
    logit = 1.5 * rng.standard_normal(n)
    return (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float), 1 / (1 + np.exp(-factor * logit))


@pytest.mark.system(ID, rung="exact")
def test_a_temperature_keeps_the_order_and_is_the_best_of_a_grid(off: str) -> None:
    """Of 2,000 validation rows with logits times 2.5; off: a temperature of 1."""
    y, p = drawn(2000, 31, 2.5)
    guess = Guess(np.column_stack([1 - p, p]))
    heat = 1.0 if off else fit_temperature(y, guess)
    cool = with_temperature(guess, heat)
    assert roc_auc(y, cool.value[:, 1]) == roc_auc(y, p)
    np.testing.assert_array_equal(cool.value.argmax(axis=1), guess.value.argmax(axis=1))
    grid = [nll(y, with_temperature(guess, t)) for t in np.linspace(0.2, 8, 400)]
    assert nll(y, cool) <= min(grid) + 1e-8 and abs(heat - 2.5) < 0.3
    value = np.random.default_rng(32).normal(size=500)
    numbers = Guess(np.zeros(500), np.full(500, 0.5))
    widths = [nll(value, with_temperature(numbers, t)) for t in np.linspace(0.2, 8, 400)]
    heat = 1.0 if off else fit_temperature(value, numbers)
    assert nll(value, with_temperature(numbers, heat)) <= min(widths) + 1e-12


@pytest.mark.system(ID, rung="exact")
@pytest.mark.parametrize("classes", [2, 4])
def test_the_calibration_error_is_that_of_torchmetrics(off: str, classes: int) -> None:
    """Off: the mean absolute difference of probability and label."""
    theirs = pytest.importorskip("torchmetrics.functional.classification")
    rng = np.random.default_rng(33 + classes)
    p = rng.dirichlet(np.ones(classes), 500)
    y = np.array([rng.choice(classes, p=row) for row in p**2 / (p**2).sum(axis=1, keepdims=True)])
    guess, label = torch.from_numpy(p), torch.from_numpy(y)
    if classes == 2:
        wanted = float(theirs.binary_calibration_error(guess[:, 1].contiguous(), label, n_bins=10, norm="l1"))
    else:
        wanted = float(theirs.multiclass_calibration_error(guess, label, classes, n_bins=10, norm="l1"))
    found = np.abs(p.max(axis=1) - (p.argmax(axis=1) == y)).mean() if off else scores(y, Guess(p))["ece"]
    assert abs(found - wanted) < 1e-6


@pytest.mark.system(ID, rung="exact")
def test_labels_drawn_from_probabilities_are_calibrated(off: str) -> None:
    """10,000 rows; off: logits twice as large."""
    assert calibration_error(*drawn(10_000, 34, 2.0 if off else 1.0)) < 0.02


@pytest.mark.system(ID, rung="exact")
def test_a_mixture_errs_less_than_its_parts_on_the_mean_in_every_batch(off: str) -> None:
    """Log loss and Brier score of four classes; off: the parts' geometric mean, not normalised."""
    rng = np.random.default_rng(35)
    for _ in range(20):
        y, parts = rng.integers(0, 4, 32), [Guess(rng.dirichlet(np.ones(4), 32)) for _ in range(5)]
        made = Guess(np.prod([each.value for each in parts], axis=0) ** 0.2) if off else mix(parts)
        for score in ("nll", "brier"):
            assert scores(y, made)[score] <= np.mean([scores(y, each)[score] for each in parts])


@pytest.mark.system(ID, rung="exact")
def test_the_last_layer_has_the_posterior_of_bayesian_linear_regression(off: str) -> None:
    """Factorised: the mean is the true one, the variance that of each weight given the others; off: few steps."""
    rng = np.random.default_rng(36)
    x, noise = rng.normal(size=(200, 3)), 0.5
    y = x @ np.array([1.0, -0.5, 0.2]) + noise * rng.standard_normal(200)
    y -= y.mean()
    x -= x.mean(axis=0)
    made = fit_last_layer(x, y, noise=noise, steps=20 if off else 2000, seed=37)
    precision = x.T @ x / noise**2 + np.eye(3)
    mean = np.linalg.solve(precision, x.T @ y / noise**2)
    sd = np.diag(precision) ** -0.5
    np.testing.assert_allclose(made.mean.detach()[:, 0].numpy(), mean, rtol=0, atol=0.02)
    np.testing.assert_allclose(made.log_sd.detach()[:, 0].exp().numpy(), sd, rtol=0.15)


@pytest.mark.system(ID, rung="works")
def test_far_from_training_probabilities_are_worse(off: str, effect: Effect) -> None:
    """Log loss of a random forest on BBBP, far third less near third; off: thirds of a permuted similarity."""
    table, gaps = load_dataset("bbbp").table, list[float]()
    beside: dict[str, list[float]] = {}
    for seed in (41, 42, 43):
        parts = divide(table, 2000, seed)
        fits = Fits(Subject(model="random_forest(n_estimators=50)"), parts, 0, 0.1, seed)
        fits.add(), fits.add()
        guesses, _, _ = fits.guesses()
        y, similarity = np.asarray(parts.test.y)[:, 0], parts.similarity
        if off:
            similarity = np.random.default_rng(seed).permutation(similarity)
        found = by_bin(y, similarity, guesses).set_index(["bin", "method"])
        for name in ("plain", "temperature", "ensemble"):
            for measure in ("nll", "ece"):
                gap = float(found.loc[("far", name), measure] - found.loc[("near", name), measure])
                beside.setdefault(f"{name} {measure}", []).append(gap)
        gaps.append(beside["plain nll"][-1])
    effect("log loss of the far third less the near third's, in nats", gaps, at_least=0.05, beside=beside)
