"""Estimators of the policy gradient: unbiased by enumeration, their variance, and what they gain at equal calls."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.auxiliary.study.policy_gradient import agreement, bandit_agreement
from molgraph.generate.estimators.estimator import Estimator
from molgraph.generate.estimators.ppo import PPO, divergence
from molgraph.generate.estimators.reinforce import Reinforce
from tests.episodes import of_outcomes, of_texts
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


@pytest.mark.system("trpo-surrogate-objective", rung="exact")
def test_the_surrogates_gradient_at_the_old_policy_is_reinforces(off: str) -> None:
    """The twin's ratio is to another policy than the one that drew."""
    episodes = of_texts(12)
    mu = episodes.log_mu if off else episodes.log_pi.detach()
    plain, surrogate = (
        torch.autograd.grad(estimator(episodes._replace(log_mu=mu)), episodes.log_pi)[0]
        for estimator in (Reinforce(), PPO())
    )
    torch.testing.assert_close(surrogate * episodes.mask, plain * episodes.mask, rtol=1e-6, atol=1e-9)


@pytest.mark.system("trpo-surrogate-objective", rung="exact")
def test_a_ratio_outside_the_clip_has_a_gradient_only_back(off: str) -> None:
    """By hand, of one token each: rewards 1, 1, 0, 0, ratios above, within, below and within."""
    ratio = torch.tensor([1.3, 1.1, 0.7, 1.1]).double()
    leaf = ratio.log().requires_grad_()
    episodes = of_outcomes(leaf, torch.arange(4), torch.tensor([1.0, 1, 0, 0]).double(), log_mu=torch.zeros(4))
    (slope,) = torch.autograd.grad(PPO(clip=0.9 if off else 0.2)(episodes), leaf)
    torch.testing.assert_close(slope, -torch.tensor([0.0, 1.1, 0.0, -1.1]).double() * (4 / 3) * 0.5 / 4)
    mu, pi = torch.tensor([0.1, 0.6, 0.3]).double(), torch.tensor([0.2, 0.5, 0.3]).double()
    rows = torch.repeat_interleave(torch.arange(3), torch.tensor([1, 6, 3]))
    exact = float((mu * (mu / pi).log()).sum())
    assert divergence(of_outcomes(pi.log(), rows, rows.double(), log_mu=mu.log()[rows])) == pytest.approx(exact)


def trained(estimator: Estimator, seed: int, batches: int = 20, rate: float = 0.3) -> tuple[float, float]:
    """The expected reward after some batches of 32 draws from 50 outcomes, and the mean exact divergence of a batch."""
    logits, f = bandit(seed, 50)
    leaf, rng = (0 * logits).requires_grad_(), torch.Generator().manual_seed(seed)
    optimizer, moved = torch.optim.SGD([leaf], rate), []
    for _ in range(batches):
        before = leaf.detach().log_softmax(0)
        rows = torch.multinomial(before.exp(), 32, replacement=True, generator=rng)
        for turn in range(estimator.passes):
            episodes = of_outcomes(leaf.log_softmax(0), rows, f[rows], log_mu=before[rows])
            if turn and estimator.enough(episodes):
                break
            optimizer.zero_grad()
            estimator(episodes).backward()
            optimizer.step()
        moved.append(float(before.exp() @ (before - leaf.detach().log_softmax(0))))
    return float(leaf.detach().softmax(0) @ f), sum(moved) / batches


@pytest.mark.system("trpo-surrogate-objective", rung="works")
def test_passes_gain_more_of_the_same_calls(off: str, effect: Effect) -> None:
    """Expected rewards after 640 draws, 5.0 at first, at most 7 to 8; the mean of five step sizes, and the best one."""
    rates = (0.3, 1.0, 3.0, 10.0, 30.0)
    plain = torch.tensor([[trained(Reinforce(), seed, rate=rate)[0] for rate in rates] for seed in range(5)])
    new = torch.tensor([[trained(PPO(passes=8), seed, rate=rate)[0] for rate in rates] for seed in range(5)])
    gains = (0 * plain if off else new - plain).mean(dim=1).tolist()
    beside = {"reinforce": plain.mean(dim=1).tolist(), "reinforce, best size": [float(plain.mean(dim=0).max())],
              "ppo, best size": [float(new.mean(dim=0).max())]}  # fmt: skip
    effect("expected reward - reinforce's, mean of step sizes", gains, at_least=0.1, beside=beside)


@pytest.mark.system("trpo-surrogate-objective", rung="works")
def test_the_divergence_of_a_batch_stays_near_its_limit(off: str, effect: Effect) -> None:
    """Steps that are ten times as long, and a limit of 0.02 nats; the twin has neither limit nor clip."""
    free = [trained(PPO(passes=8, kl=1e9, clip=1.0), seed, rate=1.0)[1] for seed in range(5)]
    kept = [trained(PPO(passes=8, kl=0.02), seed, rate=1.0)[1] for seed in range(5)]
    share = [value / 0.02 for value in (free if off else kept)]
    effect("mean divergence / its limit", share, at_most=1.5, beside={"without": [value / 0.02 for value in free]})


@pytest.mark.system("policy-gradient-diagnostics", rung="exact")
@pytest.mark.parametrize("n", [10, 100, 1000])
def test_cosines_of_a_known_gradient_are_those_of_theory(off: str, n: int) -> None:
    """Two estimates from n draws have the cosine |g|^2 / (|g|^2 + tr S / n); the twin takes the noise of one draw."""
    for seed in range(3):
        measured, known = bandit_agreement(n, seed)
        assert measured.pairwise == pytest.approx(known, abs=0.05)
        signal, noise = measured.signal, measured.noise * (n if off else 1)
        assert signal / (signal + noise) == pytest.approx(known, abs=0.05)


@pytest.mark.system("policy-gradient-diagnostics", rung="works")
def test_the_exact_value_as_a_baseline_lowers_the_noise_and_a_random_constant_does_not(
    off: str, effect: Effect
) -> None:
    """Variances of 400 estimates from 20 draws each, as the study measures them, over that without a baseline."""
    ratios, constant = [], []
    for seed in range(5):
        logits, f = bandit(seed, 50)
        p, rng = logits.softmax(0), np.random.default_rng(seed)
        f = f - 4  # as far above 0 as they vary
        rows = rng.choice(50, size=(400, 20), p=p.numpy())
        score = np.eye(50)[rows] - p.numpy()

        def noise(baseline: float, rows: Any = rows, score: Any = score, f: Tensor = f, p: Tensor = p) -> float:
            made = ((f.numpy()[rows] - baseline)[:, :, None] * score).mean(axis=1)
            return agreement(made, (p * (f - p @ f)).numpy()).noise

        value, other = float(p @ f), 4 * float(rng.choice([-1, 1]))
        ratios.append(noise(other if off else value) / noise(0.0))
        constant.append(noise(other) / noise(0.0))
    effect("noise with the value as the baseline / without", ratios, at_most=0.9, beside={"a constant": constant})
