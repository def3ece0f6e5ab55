"""Texts without replacement: frequencies, weights and distinctness on sixteen texts that are all known."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from molgraph.generate.distinct import DistinctTexts
from molgraph.generate.estimators.reinforce import Reinforce
from molgraph.generate.estimators.unordered import UnorderedSet, set_weights
from molgraph.generate.policy import Policy
from tests.episodes import of_outcomes, tiny_language
from tests.systems.effect import Effect

GROUPS, K = 20_000, 4


@cache
def policy() -> Policy:
    """A language model of two tokens that never ends before four: sixteen texts."""
    model = tiny_language("smiles", seed=3, max_length=4)
    with torch.no_grad():
        model.fitted.network.scores.bias[:] = torch.tensor([-1e4, 0.0, 0.9, -1e4])
        model.fitted.network.scores.weight *= 8
    return Policy(model)


@cache
def chances() -> tuple[dict[tuple[int, ...], int], np.ndarray]:
    """The places of the sixteen texts, and their probabilities."""
    texts = [*product((1, 2), repeat=4)]
    with policy().at_work(), torch.no_grad():
        p = policy().tokens([[*text, 1] for text in texts]).log_p[:, :4].sum(dim=1).double().exp().numpy()
    assert p.sum() == pytest.approx(1, abs=1e-5) and p.max() > 20 * p.min()
    return {text: place for place, text in enumerate(texts)}, p / p.sum()


def independent(k: int, groups: int, seed: int) -> list[DistinctTexts]:
    """The twin: the same number of independent draws, each with the same weight."""
    codes = policy().draw(k * groups, seed)
    log_p = np.log(chances()[1])
    rows = [chances()[0][tuple(text)] for text in codes]
    parts = [slice(start, start + k) for start in range(0, k * groups, k)]
    return [DistinctTexts(codes[part], log_p[rows[part]], np.full(k, 1 / k)) for part in parts]


@cache
def samples(off: str) -> tuple[np.ndarray, np.ndarray]:
    """int64 [GROUPS, K], places of the texts; float64, their weights."""
    with policy().at_work():
        drawn = independent(K, GROUPS, 1) if off else policy().draw_distinct(K, 2, GROUPS)
    rows = np.array([[chances()[0][tuple(text)] for text in each.codes] for each in drawn])
    return rows, np.array([each.weight for each in drawn])


def included(k: int) -> np.ndarray:
    """float64 [16], how likely each text is among k without replacement, over all orders."""
    p = chances()[1]
    out = np.zeros(len(p))
    for order in product(range(len(p)), repeat=k):
        if len({*order}) == k:
            left, chance = 1.0, 1.0
            for place in order:
                chance *= p[place] / left
                left -= p[place]
            out[[*order]] += chance
    return out


@pytest.mark.system("gumbel-top-k-stochastic-beam-search", rung="exact")
def test_all_texts_of_a_group_differ_and_all_there_are_come_out(off: str) -> None:
    rows, _ = samples(off)
    assert (np.diff(np.sort(rows, axis=1), axis=1) > 0).all()
    with policy().at_work():
        (whole,) = policy().draw_distinct(20, 5)
    assert len(whole.codes) == 16 and whole.weight.sum() == pytest.approx(1, abs=1e-5)
    assert whole.log_p == pytest.approx(np.log(chances()[1])[[chances()[0][tuple(t)] for t in whole.codes]], abs=1e-4)


@pytest.mark.system("gumbel-top-k-stochastic-beam-search", rung="exact")
def test_texts_are_as_often_among_four_as_without_replacement(off: str) -> None:
    """Beside all 43,680 orders, within 3.5 standard errors (of 16 texts); chi-square of first draws and pairs."""
    rows, _ = samples(off)
    p, q = chances()[1], included(K)
    often = np.bincount(rows.ravel(), minlength=16) / GROUPS
    assert (np.abs(often - q) <= 3.5 * np.sqrt(q * (1 - q) / GROUPS)).all()
    first = np.bincount(rows[:, 0], minlength=16)
    assert chisquare(first, p * GROUPS).pvalue > 0.01
    pair = np.outer(p, p) / (1 - p)[:, None]
    np.fill_diagonal(pair, 0)
    apart = ~np.eye(16, dtype=bool)
    counts = np.bincount(rows[:, 0] * 16 + rows[:, 1], minlength=256).reshape(16, 16)[apart]
    assert chisquare(counts, pair[apart] / pair[apart].sum() * counts.sum()).pvalue > 0.01


@pytest.mark.system("gumbel-top-k-stochastic-beam-search", rung="exact")
def test_the_sum_of_weight_times_value_has_no_bias(off: str) -> None:
    """Beside the exact mean of five random properties, within 3.5 standard errors; the twin has no weights."""
    rows, weights = samples("")
    for seed in range(5):
        f = np.random.default_rng(seed).normal(5, 1, 16)
        made = ((1 / K if off else weights) * f[rows]).sum(axis=1)
        assert abs(made.mean() - chances()[1] @ f) < 3.5 * made.std() / np.sqrt(GROUPS)


@pytest.mark.system("gumbel-top-k-stochastic-beam-search", rung="works")
def test_weighted_means_have_less_spread(off: str, effect: Effect) -> None:
    """Of four values of a random property, divided by the weights' sum, beside those of four independent draws."""
    rows, weights = samples(off)
    other, equal = samples("off")
    p, ratios, biases, unweighted = chances()[1], [], [], []
    for seed in range(5):
        f = np.random.default_rng(seed).normal(5, 1, 16)
        made = (weights * f[rows]).sum(axis=1) / weights.sum(axis=1)
        ratios.append(float((equal * f[other]).sum(axis=1).var() / made.var()))
        biases.append(abs(made.mean() - p @ f))
        unweighted.append(abs(f[rows].mean() - p @ f))
    beside = {"bias in deviations of the property": biases, "without the weights": unweighted}
    effect("variance of independent draws / of distinct ones", ratios, at_least=1.2, beside=beside)


def outcomes(seed: int, n: int = 8) -> tuple[Tensor, Tensor]:
    """Scores of n outcomes with unequal chances, and their rewards."""
    rng = torch.Generator().manual_seed(seed)
    return 1.5 * torch.randn(n, generator=rng).double(), torch.randn(n, generator=rng).double() + 2


def all_sets(estimator: UnorderedSet, logits: Tensor, f: Tensor, k: int = 4) -> tuple[Tensor, Tensor]:
    """The probability of each set of k outcomes, over all orders, and the gradient that is estimated from it."""
    leaf, p, chances, slopes = logits.clone().requires_grad_(), logits.softmax(0), [], []
    for some in combinations(range(len(f)), k):
        chance = 0.0
        for order in permutations(some):
            left, one = 1.0, 1.0
            for place in order:
                one *= float(p[place]) / left
                left -= float(p[place])
            chance += one
        loss = estimator(of_outcomes(leaf.log_softmax(0), torch.tensor(some), f[[*some]]))
        chances.append(chance)
        slopes.append(-torch.autograd.grad(loss, leaf)[0])
    return torch.tensor(chances, dtype=torch.float64), torch.stack(slopes)


@pytest.mark.system("unordered-set-estimator", rung="exact")
@pytest.mark.parametrize("baseline", [False, True])
def test_the_mean_of_all_sets_is_the_gradient(off: str, baseline: bool) -> None:
    """Seventy sets of four of eight outcomes; the twin weighs the members by their probabilities alone."""
    logits, f = outcomes(0)
    p = logits.softmax(0)
    chances, slopes = all_sets(UnorderedSet(k=4, baseline=baseline), logits, f)
    assert float(chances.sum()) == pytest.approx(1, abs=1e-9)
    sets = torch.tensor([*combinations(range(8), 4)])
    weight = p[sets] if off else set_weights(p.log()[sets])[0]
    assert float(chances @ (weight * f[sets]).sum(dim=1)) == pytest.approx(float(p @ f), abs=1e-8)
    torch.testing.assert_close(chances @ slopes, p * (f - p @ f), rtol=0, atol=1e-8)


@pytest.mark.system("unordered-set-estimator", rung="exact")
def test_a_set_of_all_outcomes_gives_the_exact_gradient(off: str) -> None:
    """A set of all outcomes gives the exact gradient, and texts of e^-60 each have finite weights that sum to 1."""
    logits, f = outcomes(1, 5)
    p, leaf = logits.softmax(0), logits.clone().requires_grad_()
    rows = torch.arange(5)
    estimator = Reinforce() if off else UnorderedSet(k=5)
    loss = estimator(of_outcomes(leaf.log_softmax(0), rows, f))
    torch.testing.assert_close(-torch.autograd.grad(loss, leaf)[0], p * (f - p @ f), rtol=0, atol=1e-8)
    weight, other = set_weights(torch.tensor([[-60.0, -61, -62, -120]]).double())
    assert weight.sum() == pytest.approx(1) and weight[0] == pytest.approx([0.25] * 4) and other.isfinite().all()


@pytest.mark.system("unordered-set-estimator", rung="works")
def test_its_gradient_has_less_variance_than_that_of_independent_draws(off: str, effect: Effect) -> None:
    """Exact over all sets of four of eight outcomes, beside all 4,096 samples of four with the mean of the others."""
    ratios, without = [], []
    for seed in range(4):
        logits, f = outcomes(seed)
        p, leaf = logits.softmax(0), logits.clone().requires_grad_()
        exact = p * (f - p @ f)
        rows = torch.tensor([*product(range(8), repeat=4)])
        score = torch.eye(8).double() - p  # of each outcome, by the scores
        gain = f[rows] - (f[rows].sum(dim=1, keepdim=True) - f[rows]) / 3
        drawn = (gain[:, :, None] * score[rows]).mean(dim=1)
        plain = float(p[rows].prod(dim=1) @ (drawn - exact).square().sum(dim=1))
        (slope,) = torch.autograd.grad(Reinforce()(of_outcomes(leaf.log_softmax(0), rows[1234], f[rows[1234]])), leaf)
        torch.testing.assert_close(-slope, drawn[1234])
        spread = []
        for baseline in (True, False):
            chances, slopes = all_sets(UnorderedSet(k=4, baseline=baseline), logits, f)
            spread.append(float(chances @ (slopes - exact).square().sum(dim=1)))
        ratios.append(1.0 if off else plain / spread[0])
        without.append(plain / spread[1])
    beside = {"without its baseline": without}
    effect("variance of reinforce / of the estimator, at four rewards", ratios, at_least=1.5, beside=beside)
