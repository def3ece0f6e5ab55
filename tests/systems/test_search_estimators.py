"""Estimators of the policy gradient: unbiased by enumeration, their variance, and what they gain at equal calls."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from molgraph.generate.estimators.estimator import Estimator
from molgraph.generate.estimators.reinforce import Reinforce
from tests.episodes import of_outcomes
from tests.systems.effect import Effect


class WithOwn(Reinforce):
    """The baseline is the mean of all k rewards, the text's own among them."""

    def advantage(self, reward: Tensor) -> Tensor:
        return reward - reward.mean()


def bandit(seed: int, n: int = 6) -> tuple[Tensor, Tensor]:
    """Scores of n outcomes, and their rewards with the mean 5 and the deviation 1."""
    rng = torch.Generator().manual_seed(seed)
    f = torch.randn(n, generator=rng, dtype=torch.float64)
    return torch.randn(n, generator=rng, dtype=torch.float64), 5 + (f - f.mean()) / f.std(unbiased=False)


def exact_gradient(logits: Tensor, f: Tensor) -> Tensor:
    """float [n], of the expected reward by the scores."""
    p = logits.softmax(0)
    return p * (f - p @ f)


def all_estimates(estimator: Estimator, logits: Tensor, f: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The probability of each sample of k independent outcomes, and the gradient that is estimated from it."""
    leaf, p, chances, slopes = logits.clone().requires_grad_(), logits.softmax(0), [], []
    for sample in product(range(len(f)), repeat=k):
        rows = torch.tensor(sample)
        loss = estimator(of_outcomes(leaf.log_softmax(0), rows, f[rows]))
        slopes.append(-torch.autograd.grad(loss, leaf)[0])
        chances.append(p[rows].prod())
    return torch.stack(chances), torch.stack(slopes)


def variance(chances: Tensor, slopes: Tensor) -> float:
    """The trace of the covariance."""
    return float(chances @ (slopes - chances @ slopes).square().sum(dim=1))


@pytest.mark.system("reinforce-with-baseline", rung="exact")
def test_the_mean_of_all_samples_is_the_gradient(off: str) -> None:
    """Six outcomes, all 216 samples of three; the twin's baseline has the text's own reward in it."""
    logits, f = bandit(0)
    chances, slopes = all_estimates(WithOwn() if off else Reinforce(), logits, f, 3)
    torch.testing.assert_close(chances @ slopes, exact_gradient(logits, f), rtol=1e-9, atol=1e-12)


@pytest.mark.system("reinforce-with-baseline", rung="exact")
def test_its_own_reward_in_the_baseline_shrinks_the_gradient(off: str) -> None:
    """By (k - 1) / k exactly, which the mean of the others does not."""
    logits, f = bandit(1)
    for k in (2, 3):
        chances, slopes = all_estimates(Reinforce() if off else WithOwn(), logits, f, k)
        torch.testing.assert_close(chances @ slopes, exact_gradient(logits, f) * (k - 1) / k, rtol=1e-9, atol=1e-12)


@pytest.mark.system("reinforce-with-baseline", rung="exact")
def test_a_running_mean_is_that_of_the_batches_before(off: str) -> None:
    """The first batch has the baseline 0, the next the mean of the first; a constant shifts no expectation."""
    _, f = bandit(2)
    estimator = Reinforce(baseline="zero" if off else "ema", decay=0.5)
    rows = torch.tensor([0, 1, 2])
    assert torch.equal(estimator.advantage(f[rows]), f[rows])
    torch.testing.assert_close(estimator.advantage(f[3:]), f[3:] - f[:3].mean())
    before = (0.25 * f[:3].mean() + 0.5 * f[3:].mean()) / 0.75
    torch.testing.assert_close(estimator.advantage(f[:2]), f[:2] - before)


@pytest.mark.system("reinforce-with-baseline", rung="works")
def test_the_mean_of_the_others_lowers_the_variance(off: str, effect: Effect) -> None:
    """Rewards of mean 5 and deviation 1: exact variances over all 1,296 samples of four."""
    ratios, own = [], []
    for seed in range(3):
        logits, f = bandit(seed)
        plain = variance(*all_estimates(Reinforce(baseline="zero"), logits, f, 4))
        ratios.append(plain / variance(*all_estimates(Reinforce(baseline="zero" if off else "loo"), logits, f, 4)))
        own.append(plain / variance(*all_estimates(WithOwn(), logits, f, 4)))
    effect("variance without a baseline / with", ratios, at_least=2, beside={"own sample in it, biased": own})
