"""Class-conditional likelihoods: n-grams by hand, the share that tells the class, and hybrids."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from molgraph.auxiliary.study.likelihood import class_shares, hybrids, toy_share
from molgraph.generate.smoothed_ngram import SmoothedNgram
from tests.systems.effect import Effect
from tests.systems.small_language import LIBRARY


@pytest.mark.system("generative-classifier-limits-study", rung="exact")
def test_ngrams_are_the_equation_and_their_probabilities_sum_to_one(off: str) -> None:
    """All texts of up to 12 tokens, with what is left after; off: no shorter context."""
    texts = ["ab", "aab", "b", "abb"]
    model = SmoothedNgram(texts, "ab", order=2, alpha=0.0001 if off else 2.0)
    n_a, n_ab, n_b, n = 4, 3, 5, 13  # of the tokens, the ends among them, and of b after a
    p_b = (n_b + 2 / 3) / (n + 2)
    p_a = (n_a + 2 / 3) / (n + 2)
    first, then = (3 + 2 * p_a) / (4 + 2), (n_ab + 2 * p_b) / (4 + 2)
    end = (4 + 2 * ((4 + 2 / 3) / (n + 2))) / (5 + 2)
    assert model.log_prob("ab") == pytest.approx(np.log(first * then * end), abs=1e-12)
    total = sum(np.exp(model.log_prob("".join(t))) for k in range(13) for t in itertools.product("ab", repeat=k))
    assert 0.9 < total <= 1 + 1e-12


@pytest.mark.system("generative-classifier-limits-study", rung="exact")
def test_shares_are_the_equation_and_a_uniform_model_has_none(off: str) -> None:
    """Off: the true class is exchanged."""
    p = np.array([[0.3, 0.1], [0.02, 0.05], [0.2, 0.2]])
    y = np.array([0, 1, 1])
    by_hand = [
        abs(np.log(value / row.mean())) / abs(np.log(value)) for value, row in zip((0.3, 0.05, 0.2), p, strict=True)
    ]
    shares = class_shares(np.log(p), 1 - y if off else y)
    assert shares.share == pytest.approx(np.mean(by_hand), abs=1e-12)
    uniform = SmoothedNgram([], "CNO", order=3)
    mixtures = hybrids(LIBRARY[:60], 20, 0)
    assert len(mixtures) == 20
    for _, a, b in mixtures:
        assert uniform.log_prob("C" * 5) == uniform.log_prob("O" * 5) and a != b


@pytest.mark.system("generative-classifier-limits-study", rung="works")
def test_tokens_that_do_not_tell_the_class_take_its_share_and_not_its_accuracy(off: str, effect: Effect) -> None:
    """The share with k further tokens, times c + k, over that of none; off: the share itself."""
    ratios, accuracies = [], []
    for seed in range(5):
        shares = {k: toy_share(k, seed, n=1500) for k in (0, 10, 40, 160)}
        nats = 4 * 0.47 / np.log(8) + 1  # of the tokens that tell, in tokens of eight
        falls = [shares[a][0] > shares[b][0] for a, b in ((0, 10), (10, 40), (40, 160))]
        assert all(falls)
        at = shares[160][0] / shares[40][0] * (1 if off else (nats + 160) / (nats + 40))
        ratios.append(abs(np.log(at)))
        accuracies.append(max(value[1] for value in shares.values()) - min(value[1] for value in shares.values()))
    effect("log ratio of the share to 1 / (c + k)", ratios, at_most=0.15, beside={"range of accuracy": accuracies})
    assert max(accuracies) <= 0.03
