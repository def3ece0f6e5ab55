"""Searches: the cycle of latent translators and what it gains, and determinants that tell spread from distance."""

from __future__ import annotations

import functools
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.data.sources import builtin
from molgraph.generate.diversity import determinantal_diversity, kernel_matrix, select_diverse
from molgraph.generate.oracles.similarity import Molecules
from molgraph.generate.searches.translation import CycleObjective, LatentCycleGAN, Translators
from molgraph.train.objective import StepState
from molgraph.train.samples import Sample
from tests.generate.test_diversity import clustered
from tests.latent import NearestMolecule, latent_generator
from tests.systems.effect import Effect


def mean_distance(x: np.ndarray, kernel: str = "") -> float:
    """Diversity as a mean distance of pairs."""
    return float(np.mean([np.linalg.norm(a - b) for a, b in combinations(x.astype(float), 2)]))


@pytest.mark.system("dvd", rung="exact")
def test_a_copy_spans_nothing(off: str, rng: np.random.Generator) -> None:
    measure = mean_distance if off else determinantal_diversity
    x = rng.integers(0, 2, (6, 64))
    assert measure(x) == pytest.approx(np.linalg.det(kernel_matrix(x)), rel=1e-9)
    for kernel in ("tanimoto", "rbf"):
        assert measure(np.vstack([x, x[2]]), kernel) < 1e-9


@pytest.mark.system("dvd", rung="exact")
def test_tight_pairs_moved_apart_gain_distance_and_no_volume(off: str) -> None:
    def pairs(apart: float) -> np.ndarray:
        return np.array([[0, 0], [0.02, 0], [apart, apart], [apart + 0.02, apart]])

    measure, (near, far) = mean_distance if off else determinantal_diversity, (pairs(5), pairs(9))
    assert mean_distance(near) == pytest.approx(4.7, abs=0.05) and mean_distance(far) == pytest.approx(8.5, abs=0.05)
    assert measure(near, "rbf") == pytest.approx(1.6e-7, rel=0.01)
    assert measure(far, "rbf") == pytest.approx(1.6e-7, rel=0.01)
    square = np.array([[0, 0], [0, 2], [2, 0], [2, 2]])
    assert measure(square, "rbf") == pytest.approx(0.93, abs=0.005)


@pytest.mark.system("dvd", rung="works")
def test_greedy_volumes_are_near_the_best(off: str, effect: Effect) -> None:
    """Four of twelve fingerprints about four centres, beside those of the best scores."""
    rng, shares, top = np.random.default_rng(0), [], []
    for _ in range(60):
        x, scores = clustered(rng)
        k = kernel_matrix(x)
        det = lambda rows, k=k: float(np.linalg.det(k[np.ix_([*rows], [*rows])]))  # noqa: E731
        chosen, logarithm = select_diverse(scores, k, 4, weight=0.0 if off else 1.0)
        assert np.exp(logarithm) == pytest.approx(det(chosen), rel=1e-6)
        best = max(det(rows) for rows in combinations(range(12), 4))
        shares.append(det(chosen) / best)
        top.append(det(np.argsort(-scores)[:4]) / best)
        assert shares[-1] <= 1 + 1e-9
    beside = {"best scores": [float(np.median(top))]}
    effect("volume / the largest, median of 60", [float(np.median(shares))], at_least=0.95, beside=beside)


@pytest.mark.system("dvd", rung="works")
def test_a_batch_of_half_weight_spans_more_than_the_best_scores(off: str, effect: Effect) -> None:
    rng, gains = np.random.default_rng(1), []
    for _ in range(60):
        x, scores = clustered(rng)
        k = kernel_matrix(x)
        chosen, top = select_diverse(scores, k, 4, weight=0.0 if off else 0.5)[0], np.argsort(-scores)[:4]
        mixed, best = (np.linalg.slogdet(k[np.ix_(rows, rows)])[1] for rows in (chosen, top))
        gains.append(float(mixed - best))
    effect("log volume - that of the best scores", gains, at_least=0.3)


@functools.cache
def space() -> NearestMolecule:
    """Principal components of fingerprints."""
    return latent_generator(builtin.chembl2321810(), d=6)


@pytest.mark.system("cyclegan", rung="exact")
def test_the_losses_of_maps_and_critics_are_the_papers(off: str) -> None:
    """Zhu et al. 2017, equations 1 to 3, with least squares."""
    torch.manual_seed(0)
    maps, objective = Translators(4, 8), CycleObjective(4, cycle=0.0 if off else 10.0, identity=0.5)
    z, of_y = torch.randn(9, 4), torch.tensor([0, 1, 1, 0, 0, 1, 0, 0, 1]).bool()
    batch = Sample((), z, of_y.float().unsqueeze(1), None)
    x, y = z[~of_y], z[of_y]
    g, f, one = maps.to_y(x), maps.to_x(y), torch.ones(())
    fool = F.mse_loss(maps.critic_y(g), one.expand(5, 1)) + F.mse_loss(maps.critic_x(f), one.expand(4, 1))
    cycle = F.l1_loss(maps.to_x(g), x) + F.l1_loss(maps.to_y(f), y)
    same = F.l1_loss(maps.to_y(y), y) + F.l1_loss(maps.to_x(x), x)
    found = objective(maps, batch, StepState(0, 1, 0))
    torch.testing.assert_close(found.total / found.count, fool + 10 * cycle + 0.5 * same)
    judged = objective(maps, batch, StepState(0, 1, 0, turn=1))  # its history is empty: fakes of this step
    pairs = ((maps.critic_x, x, f), (maps.critic_y, y, g))
    known = sum((critic(true) - 1).square().mean() + critic(fake).square().mean() for critic, true, fake in pairs)
    torch.testing.assert_close(judged.total / judged.count, 0.5 * known)


class Scores(nn.Module):
    """A critic that scores each of a few points freely."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self.scores = nn.Parameter(scores)

    def forward(self, z: Tensor) -> Tensor:
        return self.scores[z[:, :1].long()]


def judged(of_y: Tensor, of_x: Tensor) -> tuple[Any, Any]:
    """Critics with these scores of three points, and their loss; p and q are how often Y and X have each."""
    points = torch.tensor([0.0] * 1 + [1] * 2 + [2] * 5 + [0] * 4 + [1] * 3 + [2] * 1).unsqueeze(1)
    batch = Sample((), points, torch.tensor([1.0] * 8 + [0.0] * 8).unsqueeze(1), None)
    network: Any = SimpleNamespace(to_y=nn.Identity(), to_x=nn.Identity(), critic_y=Scores(of_y), critic_x=Scores(of_x))
    return network, CycleObjective(1)(network, batch, StepState(0, 1, 0, turn=1))


P, Q = torch.tensor([1.0, 2.0, 5.0]) / 8, torch.tensor([4.0, 3.0, 1.0]) / 8


@pytest.mark.system("gan", rung="exact")
def test_the_best_critic_tells_the_share_of_true_points(off: str) -> None:
    """Goodfellow et al. 2014, proposition 1: ``p / (p + q)``; the twin's critic knows the true points alone."""
    best = (P, Q) if off else (P / (P + Q), Q / (P + Q))
    network, loss = judged(*best)
    for critic in (network.critic_y, network.critic_x):
        (slope,) = torch.autograd.grad(loss.total, critic.scores, retain_graph=True)
        assert slope.abs().max() < 1e-5


@pytest.mark.system("lsgan", rung="exact")
def test_the_best_critics_loss_is_a_chi_square_and_far_points_keep_their_slope(off: str) -> None:
    """Mao et al. 2017, with labels 0 and 1: ``sum p q / (p + q)``; the twin's critic learned the log loss."""
    best = ((P / Q).log(), (Q / P).log()) if off else (P / (P + Q), Q / (P + Q))
    loss = judged(*best)[1]
    chi = ((P - Q).square() / (P + Q)).sum()
    torch.testing.assert_close(loss.total / loss.count, (2 - chi) / 4)


@functools.cache
def translated(cycle: float, identity: float) -> tuple[LatentCycleGAN, np.ndarray, np.ndarray, LogisticRegression]:
    """Maps from the lower two fifths of a line through the space to the upper, held-out points, and a judge apart."""
    points, rng = space().points, np.random.default_rng(0)
    side = points[:, 0] + 0.5 * points[:, 1]
    low, high = np.flatnonzero(side < np.quantile(side, 0.4)), np.flatnonzero(side > np.quantile(side, 0.6))
    order = rng.permutation(min(len(low), len(high)))
    learn, held = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]
    made = LatentCycleGAN(steps=600, seed=1, cycle=cycle, identity=identity).fit(
        points[low[learn]], points[high[learn]]
    )
    both = np.vstack([points[low], points[high]])
    judge = LogisticRegression().fit(both, np.repeat([0, 1], [len(low), len(high)]))
    return made, points[low[held]], points[high[held]], judge


@pytest.mark.system("cyclegan", rung="works")
def test_a_point_comes_back(off: str, effect: Effect) -> None:
    made, x, y, _ = translated(0.0 if off else 10.0, 0.0 if off else 1.0)
    g = made.translate(x)
    kept = np.linalg.norm(made.translate(y) - y, axis=1).mean() / np.linalg.norm(g - x, axis=1).mean()
    error = np.abs(made.back(g) - x).mean() / np.abs(x - x.mean(axis=0)).mean()
    assert kept < 1, "a point that has the property moves less than one that lacks it"
    effect("error of F(G(x)) / deviation of x", [float(error)], at_most=0.1, beside={"|G(y) - y| / |G(x) - x|": [kept]})


@pytest.mark.system("cyclegan", rung="works")
def test_translated_points_have_the_property_and_stay_near_their_starts(off: str, effect: Effect) -> None:
    made, x, y, judge = translated(10.0, 1.0)
    rng, g = np.random.default_rng(1), made.translate(x)
    direction = rng.normal(size=x.shape)
    step = np.linalg.norm(g - x, axis=1, keepdims=True)
    random = x + step * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    g = random if off else g

    def likeness(results: list[str]) -> float:
        pairs = zip(space().decode(x), results, strict=True)
        return float(np.mean([Molecules([a]).nearest([b]).similarity[0] for a, b in pairs]))

    near, other = likeness(space().decode(g)), likeness(space().decode(y[rng.permutation(len(y))[: len(x)]]))
    assert near > other
    shares = {"of a random step": [float(judge.predict(random).mean())], "Tanimoto to the start": [near],
              "of a random molecule with the property": [other]}  # fmt: skip
    effect("share of G(x) that a judge takes for Y", [float(judge.predict(g).mean())], at_least=0.5, beside=shares)
