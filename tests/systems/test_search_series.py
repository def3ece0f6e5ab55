"""Several series in one run: the discriminator's reward is bounded, and series get scaffolds of their own."""

from __future__ import annotations

import math

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


@pytest.mark.system("diayn", rung="works")
def test_series_have_scaffolds_of_their_own_at_the_same_score(off: str, effect: Effect) -> None:
    """1,000 texts after 160 steps, beside the same search without the discriminator's reward."""
    accuracies, ratios, scores, plain = [], [], [], []
    for seed in range(2):
        kept = []
        for weight in (0.0, 0.0 if off else 0.5):
            search = make_search(f"diayn(series=8, weight={weight}, learning_rate=0.002)")
            trained(search, steps=160, seed=seed)
            z = torch.arange(1000) % 8
            with search.agent.at_work():
                texts = search.agent.texts(search.agent.draw(1000, 5, search.vectors.detach()[z]))
            value = np.nan_to_num(score(texts))
            x, ok = search.describe(texts)
            right = (search.q(x).argmax(dim=1) == z).numpy()[ok].mean()
            good = [text for text, one in zip(texts, value, strict=True) if one > 0.5]
            kept.append((float(right), len({*scaffolds(good).values}), float(value.mean())))
        accuracies.append(kept[1][0])
        plain.append(kept[0][0])
        ratios.append(kept[1][1] / kept[0][1])
        scores.append(kept[1][2] / kept[0][2])
    assert np.mean(scores) >= 0.95 and np.mean(ratios) >= 1.5
    beside = {"without": plain, "scaffolds / those without": ratios, "mean score / that without": scores}
    effect("series told from the scaffold", accuracies, at_least=0.8, beside=beside)
