"""A discriminator of texts as a reward: its gradient, its mixture with the score, and what it makes a model write."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from molgraph.chem.identity import canonical_smiles
from molgraph.generate.estimators.estimator import Episodes
from molgraph.generate.estimators.reinforce import Reinforce
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.network_generator import Fitted
from molgraph.generate.policy import Policy
from molgraph.generate.rewards.discriminator import Discriminator
from molgraph.generate.rewards.repeats import Repeats
from molgraph.generate.rewards.reward import make_rewards
from molgraph.generate.searches.search import make_search
from tests.systems.effect import Effect
from tests.systems.toy_library import LIBRARY, trained, written

ATOMS = ("C", "N", "O")


def chains() -> Policy:
    """A policy that writes the 27 texts of three atoms, and never ends before."""
    made = LanguageGenerator(d_embedding=4, d_hidden=6, n_layers=1, max_length=3, threads=1)
    torch.manual_seed(0)
    network = made.build(ATOMS)
    with torch.no_grad():
        network.scores.bias[0] = -1e9
    made.fitted = Fitted(network, ATOMS)
    return Policy(made)


@pytest.mark.system("seqgan", rung="exact")
def test_the_gradient_of_samples_is_that_of_all_texts(off: str) -> None:
    """Yu et al. 2017, equation 6, on 27 texts: 20,000 samples within 3 standard errors of the sum over all."""
    policy, weights = chains(), [*product((1, 2, 3), repeat=3)]
    judge = Discriminator(1.0, width=8, steps=20)
    judge.begin(None, examples=["".join(ATOMS[i - 1] for i in row) for row in weights if row[0] == 1] * 2)
    every = policy.texts(weights)
    for _ in range(5):
        judge.adjust(every, np.zeros(27))
    judge.steps, judge.weight = 0, 0.0 if off else 1.0
    reward = torch.tensor(judge.chance(every), dtype=torch.float32)
    assert reward.std() > 0.2, "the discriminator tells the texts apart"
    directions = torch.randn(8, policy.network.scores.weight.numel())

    def slope(loss: torch.Tensor) -> np.ndarray:
        (gradient,) = torch.autograd.grad(loss, policy.network.scores.weight)
        return (directions @ gradient.flatten()).numpy()

    exact = slope((policy.tokens(weights).log_p[:, :3].sum(dim=1).exp() * reward).sum())
    found = []
    for batch in range(200):
        codes = policy.draw(100, seed=batch)
        tokens = policy.tokens(codes)
        scores = torch.from_numpy(judge.adjust(policy.texts(codes), np.full(100, 0.5))).float()
        log_p = tokens.log_p[:, :3]
        found.append(-slope(Reinforce(baseline="none")(
            Episodes(log_p, log_p.detach(), log_p.detach(), tokens.mask[:, :3], scores, tokens.states.detach()[:, :3])
        )))  # fmt: skip
    error = np.std(found, axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(np.mean(found, axis=0) - exact) <= 3 * error).all()
    assert np.linalg.norm(exact) > 10 * np.linalg.norm(error), "the gradient is more than its error"


@pytest.mark.system("seqgan", rung="works")
def test_a_model_learns_to_write_what_the_discriminator_takes_for_real(off: str, effect: Effect) -> None:
    """Real are the library's amides; judged by a discriminator apart, of these against the model before the search."""
    real = [text for text in LIBRARY if "C(=O)" in text and "OC(=O)" not in text]
    gains, valid, start_d, end_d = [], [], [], []
    for seed in range(2):
        search, before = (make_search("policy(learning_rate=0.002)") for _ in range(2))
        trained(before, steps=0)
        start = [each.smiles for each in canonical_smiles(written(before)) if not each.reason]
        judge = Discriminator(1.0)
        judge.begin(None, seed=100 + seed, examples=real)
        for i in range(0, len(start), 20):
            judge.adjust(start[i : i + 20], np.zeros(len(start[i : i + 20])))
        first = judge.chance(start)
        rewards = () if off else make_rewards("discriminator(1)")
        trained(search, rewards, steps=100, seed=seed, examples=real, plain=0.0)
        texts = [each.smiles for each in canonical_smiles(written(search)) if not each.reason]
        after = judge.chance(texts)
        error = np.sqrt(first.var() / len(first) + after.var() / len(after))
        gains.append(float((after.mean() - first.mean()) / error))
        valid.append(len(texts) / len(start))
        start_d.append(float(first.mean()))
        end_d.append(float(after.mean()))
    assert np.mean(valid) >= 0.8
    beside = {"mean D before": start_d, "after": end_d, "molecules / those before": valid}
    effect("gain of mean D in standard errors", gains, at_least=2, beside=beside)


@pytest.mark.system("organ-organ", rung="exact")
def test_lambda_mixes_and_repeats_divide(off: str) -> None:
    """Guimaraes et al. 2017, equation 6 and the penalty of section 3."""
    smiles, score = LIBRARY[::7], np.linspace(0.1, 1, len(LIBRARY[::7]))
    made = {}
    for weight in (0.0, 0.3, 1.0):
        reward = Discriminator(weight, width=8)
        reward.begin(None, scale=0.5, examples=LIBRARY[:50])
        chance = reward.chance(smiles)
        made[weight] = reward.adjust(smiles, score)
    assert made[0.0].tobytes() == score.tobytes()
    assert made[1.0].tobytes() == (0.5 * chance).tobytes()
    np.testing.assert_allclose(made[0.3], 0.3 * 0.5 * chance + 0.7 * score, rtol=1e-12)
    penalty = Repeats()
    penalty.begin(None)
    texts, scores = ["CCO"] * 4 + ["CCN", "CCCl"] + ["CO"] * 2, np.array([0.8] * 4 + [0.6, np.nan] + [0.5] * 2)
    adjusted = scores if off else penalty.adjust(texts, scores)
    assert np.array_equal(adjusted, [0.2] * 4 + [0.6, np.nan] + [0.25] * 2, equal_nan=True)
    assert penalty.adjust(["C", "C", "CC"], np.array([-2.0, -2.0, 1.0])).tolist() == [-2, -2, 1]
    assert penalty.adjust(["N", "N"], np.array([2.0, 2.0])).tolist() == [0, 0], "halfway to the lowest so far"


@pytest.mark.system("organ-organ", rung="works")
def test_the_penalty_keeps_texts_distinct(off: str, effect: Effect) -> None:
    """Distinct molecules among 500 texts after training on a discriminator and the score, equally weighed."""
    ratios, shares = [], []
    for seed in range(3):
        kept = []
        for term in ("discriminator(0.5)", "discriminator(0.5)" + "+repeats" * (not off)):
            search = make_search("policy(learning_rate=0.005)")
            trained(search, make_rewards(term), steps=60, seed=seed)
            texts = {each.smiles for each in canonical_smiles(written(search, 500)) if not each.reason}
            kept.append(len(texts) / 500)
        ratios.append(kept[1] / kept[0])
        shares.append(kept[0])
    effect("share distinct / that without the penalty", ratios, at_least=1.2, beside={"without": shares})
