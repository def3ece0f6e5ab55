"""Searches that train a language model, with odd oracles, budgets and starts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import molgraph
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.chem.tokens import tokens_of
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.policy import Policy
from molgraph.generate.searches.reinvent import Reinvent
from molgraph.generate.searches.search import make_search
from molgraph.train.model import Model
from tests.episodes import tiny_language
from tests.tiny import series

SEARCHES = ["reinvent", "genetic-gfn", "policy"]


@cache
def model() -> Model:
    """A small language model of SELFIES, each of whose texts is a molecule."""
    generator = LanguageGenerator(**LanguageGenerator.small, tokens="selfies", threads=1).fit(series(48))
    return Model(generator, targets=())


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("value", [0.3, -2.0, 1e6])
def test_constant_oracles_spend_the_budget(search: str, value: float) -> None:
    found = molgraph.optimise(model(), lambda _: value, search=search, budget=24, compare=False, batch=8)
    assert len(found) == 24 and (found.frame.objective == value).all()
    assert any("same score" in note for note in found.notes)


@pytest.mark.parametrize("search", SEARCHES)
def test_adding_a_constant_to_scores_changes_nothing(search: str) -> None:
    """Rewards are scores in the range of all so far, those of replayed texts too: the agents are equal."""
    agents = []
    for offset in (2048.0, -1024.0):
        found = make_search(search)
        found.begin(tiny_language(), seed=1)
        for step in range(4):
            texts = found.ask(8, step).smiles
            found.tell(texts, offset + np.array([len(text) for text in texts]) * 2.0**step)
        found.ask(8, 4)
        agents.append(found.agent.network.state_dict())
        if isinstance(found, Reinvent):
            replayed = found.rewarded([*found.best.best.values()])
            by_score = sorted(replayed, key=lambda one: -one.score)
            assert [one.reward for one in by_score] == sorted((one.reward for one in replayed), reverse=True)
            assert by_score[0].reward == 1 > by_score[-1].reward
    assert all(torch.equal(a, b) for a, b in zip(*(agent.values() for agent in agents), strict=True))


@pytest.mark.parametrize("search", SEARCHES)
def test_scores_outside_0_to_1_are_learned_from(search: str) -> None:
    found = molgraph.optimise(model(), lambda text: -100.0 * len(text), search=search, budget=40, batch=8)
    assert np.isfinite(found.frame.objective).all() and set(found.best_so_far) == {search, "sampling"}


@pytest.mark.parametrize("budget", [1, 5])
def test_budgets_below_a_batch(budget: int) -> None:
    assert len(molgraph.optimise(model(), "qed", search="reinvent", budget=budget)) == budget


def test_an_oracle_without_scores_ends_the_search() -> None:
    asked = list[str]()

    def nothing(smiles: str) -> float:
        asked.append(smiles)
        return float("nan")

    with pytest.raises(EmptyError, match="the score is nan"):
        molgraph.optimise(model(), nothing, search="reinvent", budget=1000, compare=False, batch=10)
    assert 100 <= len(asked) < 120


def test_a_start_that_the_model_cannot_write_is_noted() -> None:
    found = molgraph.optimise(model(), "qed", search="reinvent", budget=6, start="CC[Si](C)(C)C", compare=False)
    assert any("tokens that the model lacks" in note for note in found.notes)
    assert "CC[Si](C)(C)C" in found.frame.smiles.tolist()


def test_a_generator_that_is_no_language_model_is_refused() -> None:
    ngram = molgraph.train_generator(series(48), model="ngram")
    with pytest.raises(UnsupportedError, match="language model"):
        molgraph.optimise(ngram, "qed", search="reinvent", budget=5)


def test_log_probabilities_sum_to_one_over_all_texts_of_a_length() -> None:
    """Of a model of two tokens: all texts of at most three tokens, and those that go on, have probability 1."""
    generator = LanguageGenerator(**LanguageGenerator.small, threads=1).fit(molgraph.read_table(["CCO", "OCC", "CO"]))
    texts = [""]
    for _ in range(4):
        texts += [text + token for text in texts if len(text) == max(map(len, texts)) for token in "CO"]
    policy = Policy(generator)
    with policy.at_work():
        whole = np.exp(policy.log_prob([[policy.code_of[t] for t in tokens_of(text)] for text in texts]))
    shares = [whole[[len(text) == n for text in texts]].sum() for n in range(5)]
    assert sum(shares) < 1 and all(0 < share < 1 for share in shares)
    assert np.log(whole[texts.index("CCO")]) == pytest.approx(generator.log_prob(["CCO"])[0], abs=1e-5)


def test_replayed_texts_keep_the_log_probabilities_of_the_model_that_drew_them() -> None:
    search = make_search("reinvent(estimator=vtrace, learning_rate=0.05)")
    search.begin(tiny_language(), seed=1)
    for step in range(2):
        texts = search.ask(8, step).smiles
        search.tell(texts, np.arange(8.0))
    first = [one for one in search.best.best.values() if len(one.log_mu) == len(one.codes) + 1]
    assert first and len(first) == len(search.best)
    before = [one.log_mu.sum() for one in first]
    now = search.agent.log_prob([one.codes for one in first])
    assert before == pytest.approx(search.prior.log_prob([one.codes for one in first]), abs=1e-4)
    assert np.abs(now - before).max() > 0.01
