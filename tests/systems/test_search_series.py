"""Several series in one run: the discriminator's reward is bounded, and series get scaffolds of their own."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import pytest
import torch

from molgraph.chem.scaffold import scaffolds
from molgraph.generate.policy import Policy
from molgraph.generate.searches.diayn import Diayn
from molgraph.generate.searches.search import make_search
from tests.systems.effect import Effect
from tests.systems.toy_library import LIBRARY, model, score, trained


@pytest.mark.system("diayn", rung="exact")
def test_a_condition_is_of_its_own_text(off: str) -> None:
    """Texts of several conditions, of which some end early, are those of each condition alone."""
    policy, vectors = Policy(model()), 2 * torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    z = torch.arange(60) % 3
    together = policy.draw(60, 1, None if off else vectors[z])
    alone = [policy.draw(60, 1, vectors[k].expand(60, -1)) for k in range(3)]
    assert together == [alone[i % 3][i] for i in range(60)]
    log_p = policy.tokens(together, vectors[z]).total
    parts = torch.cat(
        [policy.tokens([row], vectors[k : k + 1]).total for row, k in zip(together, z.tolist(), strict=True)]
    )
    torch.testing.assert_close(log_p, parts)
    assert policy.draw(60, 1, torch.zeros(60, 16)) == policy.draw(60, 1)


@pytest.mark.system("diayn", rung="exact")
def test_the_reward_is_0_for_a_model_that_is_blind_and_log_k_at_most(off: str) -> None:
    """Eysenbach et al. 2019, equation 3; the twin leaves ``- log p(z)`` out."""
    search = Diayn(series=4)
    search.begin(model())
    x, _ = search.describe(LIBRARY)
    kinds = np.unique(x.numpy(), axis=0, return_inverse=True)[1].ravel()
    rng, lack = np.random.default_rng(0), math.log(4) if off else 0.0
    for blind in (True, False):
        search.begin(model())
        own = kinds % 4  # a scaffold is of one series

        def batch(blind: bool = blind, own: np.ndarray = own) -> tuple[torch.Tensor, torch.Tensor]:
            rows = rng.integers(len(LIBRARY), size=256)
            return x[rows], torch.from_numpy(rng.integers(4, size=256) if blind else own[rows])

        for _ in range(40):
            search.discriminate(*batch())
        found = np.concatenate([search.information(*batch()) for _ in range(8)]) - lack
        assert (found <= math.log(4)).all()
        wanted = 0.0 if blind else math.log(4)
        assert found.mean() == pytest.approx(wanted, abs=0.05), "held-out texts"


class Kept(NamedTuple):
    """Of 1,000 texts: how often the series is told from the scaffold, mean score, scaffolds of good ones."""

    accuracy: float
    score: float
    scaffolds: int


@functools.cache
def kept(weight: float, seed: int, series: int = 4) -> Kept:
    """After 240 steps, the discriminator's reward from the 80th on.

    Settings are of seeds 0 to 2. With earlier ones (kl 0.02, the reward from the 40th step on, or vectors of twice the
    size) some models of seeds 10 to 12 and 20 to 22 never found the score, with the reward or without.
    """
    search = make_search(f"diayn(series={series}, weight={weight}, delay=80, kl=0.05, learning_rate=0.002)")
    trained(search, steps=240, seed=seed)
    z = torch.arange(1000) % series
    with search.agent.at_work():
        texts = search.agent.texts(search.agent.draw(1000, 5, search.vectors.detach()[z]))
    value, (x, ok) = np.nan_to_num(score(texts)), search.describe(texts)
    right = (search.q(x).argmax(dim=1) == z).numpy()[ok].mean()
    good = [text for text, one in zip(texts, value, strict=True) if one > 0.5]
    return Kept(float(right), float(value.mean()), len({*scaffolds(good).values}))


SEEDS = (30, 31, 32)  # others than those that it was written with


@pytest.mark.system(
    "diayn",
    rung="works",
    null="0.83 [0.47, 1.19] on one processor and 0.66 [0.31, 1.01] on another: of three seeds one or two part",
)
def test_series_are_told_from_the_scaffolds_of_new_texts_at_the_same_score(off: str, effect: Effect) -> None:
    """Four series; the mean score stays within 5% of that without the discriminator's reward.

    The bound was 0.8, which one processor passed: at 0.9 neither does.
    """
    runs, plain = [kept(0.0 if off else 2.0, seed) for seed in SEEDS], [kept(0.0, seed) for seed in SEEDS]
    scores = [one.score / other.score for one, other in zip(runs, plain, strict=True)]
    assert np.mean(scores) >= 0.95
    beside = {"without": [one.accuracy for one in plain], "mean score / that without": scores}
    effect("series told from the scaffold", [one.accuracy for one in runs], at_least=0.9, beside=beside)


@pytest.mark.system("diayn", rung="works", null="nearness to the prior keeps as many scaffolds without series")
def test_series_bring_more_scaffolds(off: str, effect: Effect) -> None:
    runs, plain = [kept(0.0 if off else 2.0, seed) for seed in SEEDS], [kept(0.0, seed) for seed in SEEDS]
    ratios = [one.scaffolds / other.scaffolds for one, other in zip(runs, plain, strict=True)]
    beside = {"without": [float(one.scaffolds) for one in plain]}
    effect("distinct scaffolds / those without the reward", ratios, at_least=1.5, beside=beside)
