"""Policies of several parts of an oracle with one prior: the distributions they end at, and a new part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from molgraph.generate.policy import Policy
from molgraph.generate.searches import policy as policies
from molgraph.generate.searches.search import make_search
from tests.systems.effect import Effect
from tests.systems.toy_language import STRINGS, probabilities, tilted, total_variation, toy_model

TASKS = np.random.default_rng(5).random((3, len(STRINGS)))


class Same(NamedTuple):
    """The strings are no molecules: they are told as they were drawn."""

    values: Sequence[str]


class Tasks:
    """Scores of each string by several tasks, in the place of an oracle's parts."""

    def __init__(self, scores: np.ndarray) -> None:
        self.of = dict(zip(STRINGS, scores.T, strict=True))
        self.labels = tuple(f"task {i}" for i in range(len(scores)))

    def __call__(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        return np.array([self.of[text] for text in smiles]).reshape(len(smiles), len(self.labels))


@pytest.fixture(autouse=True)
def _texts_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "standardise_smiles", lambda texts, preset: Same(texts))


def trained(name: str, scores: np.ndarray, steps: int, *, n: int = 512, model: Any = None, fall: bool = True) -> Any:
    """Ask and tell; the step sizes fall to nothing."""
    search: Any = make_search(name)
    search.terms = Tasks(scores)
    search.begin(model or toy_model())
    for step in range(steps):
        every = [search.optimizer, *(one.optimizer for one in search.policies.values())]
        for group in [group for each in every for group in each.param_groups]:
            rate = group.setdefault("first", group["lr"])
            group["lr"] = rate * (1 - step / steps) if fall else rate
        texts = search.ask(n, step).smiles
        search.tell(texts, np.zeros(len(texts)))
    return search


def ends(search: Any) -> list[np.ndarray]:
    """The distribution of each policy."""
    return [probabilities(search.policies[label].agent) for label in search.labels]


@pytest.mark.system("msol", rung="exact")
def test_each_policy_ends_at_the_prior_times_the_exponential_of_its_part(off: str) -> None:
    """All 64 strings: total variation from ``p exp(r_i / beta) / Z`` below 0.01 (Igl et al. 2020, equation 3)."""
    prior, beta = probabilities(Policy(toy_model())), 0.5
    search = trained(f"shared-prior(beta={0 if off else beta}, learn_prior=false, learning_rate=0.01)", TASKS[:2], 400)
    best = [tilted(prior, scores / beta) for scores in TASKS[:2]]
    assert min(total_variation(prior, best[0]), total_variation(*best)) > 0.15
    apart = [total_variation(q, p) for q, p in zip(ends(search), best, strict=True)]
    print(f"total variation {apart}")
    assert max(apart) < 0.01


@pytest.mark.system("msol", rung="exact")
def test_a_large_beta_gives_the_prior(off: str) -> None:
    search = trained(f"shared-prior(beta={0 if off else 100}, learn_prior=false, learning_rate=0.01)", TASKS[:2], 150)
    apart = [total_variation(q, probabilities(search.prior)) for q in ends(search)]
    print(f"total variation {apart}")
    assert max(apart) < 0.01


@pytest.mark.system("msol", rung="exact")
def test_the_prior_of_policies_that_stay_is_their_mean(off: str) -> None:
    """Total variation below 0.001 from the minimum of ``sum_i KL(q_i | p)``; draws are spread evenly over ``q_i``."""
    learn = "false" if off else "true"
    search = trained(f"shared-prior(learn_prior={learn}, original=0, learning_rate=0.01)", TASKS, 40, n=192, fall=False)
    q = ends(search)
    for each, p in zip(search.policies.values(), q, strict=True):
        each.learn = lambda told, step: None
        edges, codes = np.cumsum(p) / p.sum(), each.agent.encode(STRINGS)

        def draw(n: int, seed: int, edges: np.ndarray = edges, codes: Any = codes) -> list[list[int]]:
            at = (np.arange(n) + np.random.default_rng(seed).random()) / n
            return [codes[min(row, 63)] for row in np.searchsorted(edges, at)]

        each.agent.draw = draw
    steps, mean = 400, np.mean(q, axis=0)
    for step in range(steps):
        search.optimizer.param_groups[0]["lr"] = 0.005 * (1 - step / steps)
        search.ask(768, step)
    apart = total_variation(probabilities(search.agent), mean)
    print(f"total variation {apart}; of the policies {total_variation(q[0], q[1])}")
    assert min(total_variation(q[0], q[1]), total_variation(mean, probabilities(search.prior))) > 0.1
    assert apart < 1e-3


def batches_until(model: Any, scores: np.ndarray) -> float:
    """Batches of 32 until the policy's mean score is nine tenths of the best string's, at most 200."""
    search: Any = make_search("shared-prior(beta=0.02, learn_prior=false, learning_rate=0.005)")
    search.terms = Tasks(scores[None])
    search.begin(model)
    for step in range(200):
        texts = search.ask(32, step).smiles
        if probabilities(search.policies["task 0"].agent) @ scores >= 0.9 * scores.max():
            return float(step)
        search.tell(texts, np.zeros(len(texts)))
    return 200.0


def uniform(seed: int) -> Any:
    """A model that writes all strings alike."""
    made = toy_model(seed)
    for each in (made.fitted.network.scores.weight, made.fitted.network.scores.bias):
        torch.nn.init.zeros_(each)
    return made


@pytest.mark.system("msol", rung="works")
def test_a_new_part_is_learned_in_fewer_batches_from_the_learned_prior(off: str, effect: Effect) -> None:
    """Tasks want the same first and last token, and have random scores of middles; after four comes a fifth one.

    Beside: from a prior that was learned from the same four tasks, each with its scores shuffled.
    """
    begun, learned, shuffled = [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        first, last = rng.choice([*"wxyz"], 2)
        shared = np.array([(s[0] == first) + (s[2] == last) for s in STRINGS]) / 2
        middles = rng.random((5, 4))
        *before, new = 0.8 * shared + 0.2 * middles[:, ["wxyz".index(s[1]) for s in STRINGS]]
        name = f"shared-prior(beta=0.3, learning_rate=0.005, learn_prior={'false' if off else 'true'})"
        begun.append(batches_until(uniform(seed), new))
        for tasks, counts in ((np.array(before), learned), (rng.permuted(before, axis=1), shuffled)):
            search = trained(name, tasks, 100, n=64, model=uniform(seed), fall=False)
            counts.append(batches_until(search.trained_generator(), new))
    beside = {"from the uniform model": begun, "from a prior of shuffled scores": shuffled}
    effect("batches until nine tenths of the best score", learned, at_most=0.67 * float(np.mean(begun)), beside=beside)
