"""Trials that every registered estimator meets: on random texts, on four outcomes, and in a search."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.base.registry import entry, names
from molgraph.generate.estimators.estimator import Episodes, Estimator
from molgraph.generate.searches.policy import PolicySearch
from tests.episodes import of_outcomes, of_texts, tiny_language


def made(name: str, d: int = 5) -> Estimator:
    cls = entry("estimator", name).value
    estimator: Estimator = cls(**cls.small)
    estimator.begin(d)
    return estimator.double()


def texts(estimator: Estimator, seed: int = 0) -> Episodes:
    """Two groups, or eight texts."""
    return of_texts(2 * estimator.distinct or 8, seed)


def gradients(name: str, episodes: Episodes) -> tuple[float, Tensor]:
    """The loss and its gradient by each token's log-probability."""
    leaf = episodes.log_pi.detach().requires_grad_()
    loss = made(name)(episodes._replace(log_pi=leaf))
    assert loss.shape == ()
    return float(loss.detach()), torch.autograd.grad(loss, leaf)[0]


@pytest.mark.parametrize("name", names("estimator"))
class TestEveryEstimator:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("estimator", name)
        assert issubclass(found.value, Estimator) and found.summary and found.value.__doc__

    def test_loss_and_gradients_are_finite_and_reach_its_weights(self, name: str) -> None:
        estimator = made(name)
        for seed, value in ((0, None), (1, 0.0), (2, 1.0)):
            episodes = texts(estimator, seed)
            if value is not None:  # rewards that say nothing
                episodes = episodes._replace(reward=torch.full_like(episodes.reward, value))
            estimator.zero_grad()
            loss = estimator(episodes)
            loss.backward()
            assert loss.shape == () and loss.isfinite()
            for tensor in (episodes.log_pi, *estimator.parameters()):
                assert tensor.grad is not None and tensor.grad.isfinite().all()
        assert gradients(name, texts(estimator))[1].abs().sum() > 0

    def test_places_behind_the_ends_do_not_count(self, name: str) -> None:
        episodes = texts(made(name))
        longer = Episodes(*(
            torch.nn.functional.pad(value.detach(), (0, 0) * (value.dim() - 2) + (0, 3)) if value.dim() > 1 else value
            for value in episodes
        ))  # fmt: skip
        (loss, slope), (again, padded) = gradients(name, episodes), gradients(name, longer)
        assert again == pytest.approx(loss, rel=1e-9)
        torch.testing.assert_close(padded[:, :6][episodes.mask], slope[episodes.mask])

    def test_the_order_of_the_texts_does_not_count(self, name: str) -> None:
        estimator = made(name)
        episodes, size = texts(estimator), estimator.distinct or 1
        order = torch.randperm(len(episodes.reward) // size, generator=torch.Generator().manual_seed(3))
        rows = (order[:, None] * size + torch.arange(size).flip(0)).flatten()
        (loss, slope), (again, moved) = (
            gradients(name, each) for each in (episodes, Episodes(*(value.detach()[rows] for value in episodes)))
        )
        assert again == pytest.approx(loss, rel=1e-9)
        torch.testing.assert_close(moved, slope[rows])

    def test_texts_of_higher_reward_become_likelier(self, name: str) -> None:
        reward, rng = torch.tensor([0.1, 0.2, 0.9, 0.1]).double(), torch.Generator().manual_seed(0)
        logits = torch.zeros(4).double().requires_grad_()
        estimator = made(name, 1)
        for _ in range(40):
            p = logits.detach().softmax(0)
            if k := estimator.distinct:
                rows = torch.cat([torch.multinomial(p, min(k, 4), generator=rng) for _ in range(4)])
            else:
                rows = torch.multinomial(p, 16, replacement=True, generator=rng)
            log_mu = p.log()[rows]
            for _ in range(estimator.passes):
                loss = estimator(of_outcomes(logits.log_softmax(0), rows, reward[rows], log_mu=log_mu))
                (slope,) = torch.autograd.grad(loss, logits)
                logits.data -= 0.1 * slope / slope.norm().clamp(min=1.0)
        assert logits.softmax(0)[2] > 0.27

    def test_it_trains_a_language_model_the_same_way_twice(self, name: str) -> None:
        model = tiny_language()
        small = ", ".join(f"{key}={value!r}" for key, value in entry("estimator", name).value.small.items())
        written, weights = [], []
        for _ in range(2):
            search = PolicySearch(estimator=f"{name}({small})", learning_rate=1e-2)
            search.begin(model, seed=1)
            before = search.agent.network.scores.weight.detach().clone()
            for step in range(3):
                asked = search.ask(8, step).smiles
                assert len(asked) >= 8
                search.tell(asked, np.array([len(text) for text in asked], dtype=float))
            written.append(asked)
            weights.append(search.agent.network.scores.weight.detach() - before)
        assert written[0] == written[1] and torch.equal(*weights)
        assert weights[0].isfinite().all() and weights[0].abs().sum() > 0
