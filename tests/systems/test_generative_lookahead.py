"""Gradients through the steps of an adversary: by finite differences, and in a repeated dilemma."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.generate.searches.translation import RATE, CycleObjective, Translators
from molgraph.train.lookahead import looked_ahead
from molgraph.train.objective import StepState
from molgraph.train.samples import Sample
from tests.systems.effect import Effect

STATE = StepState(0, 10, 0)


def points() -> Sample:
    """Four points of each set in two dimensions."""
    x = torch.randn(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return Sample((), x, torch.tensor([[0.0], [1.0]] * 4), None)


def translators() -> Translators:
    torch.manual_seed(0)
    return Translators(2, 4).double()


def finite_differences(loss: Any, parameter: Tensor, step: float = 1e-5) -> Tensor:
    """The gradient of a loss in a parameter, one number after the other."""
    slope = torch.zeros_like(parameter)
    with torch.no_grad():
        for place in np.ndindex(*parameter.shape):
            ends = []
            for sign in (1, -1):
                parameter[place] += sign * step
                ends.append(float(loss()))
                parameter[place] -= sign * step
            slope[place] = (ends[0] - ends[1]) / (2 * step)
    return slope


@pytest.mark.system("unrolled-gan", rung="exact")
def test_the_gradient_of_a_map_goes_through_the_steps_of_its_critic(off: str) -> None:
    """The critic is trained by torch's SGD; without steps it is the plain gradient."""
    network, batch = translators(), points()
    parameter = network.to_y.change.layers[-1].weight

    def of_objective(unroll: int) -> Tensor:
        objective = CycleObjective(2, cycle=0.0, identity=0.0, unroll=unroll).double()
        return objective(network, batch, STATE).total

    def by_hand(unroll: int) -> Tensor:
        """The map's loss against critics that were trained by torch's SGD."""
        total: Any = 0.0
        of_y = batch.y[:, 0] > 0.5
        x, y = batch.extra[~of_y], batch.extra[of_y]
        games = ((network.critic_y, y, network.to_y(x)), (network.critic_x, x, network.to_x(y)))
        for critic, true, fake in games:
            later = translators().critic_x
            later.load_state_dict(critic.state_dict())
            sgd = torch.optim.SGD(later.parameters(), lr=RATE)
            with torch.enable_grad():
                for _ in range(unroll):
                    sgd.zero_grad()
                    loss = (later(true) - 1).square().mean() + later(fake.detach()).square().mean()
                    (0.5 * loss).backward()
                    sgd.step()
            total = total + (later(fake) - 1).square().mean()
        return 8 * total

    for unroll in (0, 1, 4):
        used = 0 if off else unroll
        torch.testing.assert_close(of_objective(used), by_hand(unroll), rtol=1e-8, atol=1e-8)
        expected = finite_differences(lambda unroll=unroll: by_hand(unroll), parameter)
        (slope,) = torch.autograd.grad(of_objective(used), parameter)
        torch.testing.assert_close(slope, expected, rtol=1e-3, atol=1e-5)
    before = [weight.detach().clone() for weight in network.critic_y.parameters()]
    assert all(a.equal(b) for a, b in zip(before, network.critic_y.parameters(), strict=True))
    assert all(weight.grad is None for weight in network.critic_y.parameters())


@pytest.mark.system("lola", rung="exact")
def test_both_players_of_a_bilinear_game_anticipate_each_other(off: str) -> None:
    """``min_x max_y x y``: the gradients are ``y + 2 eta x`` and ``-x + 2 eta y``, and play ends at the solution."""
    eta, steps = 0.3, 0 if off else 1
    x, y = torch.tensor(1.0, requires_grad=True), torch.tensor(0.5, requires_grad=True)

    def slopes() -> tuple[Tensor, Tensor]:
        later_y = looked_ahead(lambda w: -x * w["y"], {"y": y}, steps, eta)["y"]
        later_x = looked_ahead(lambda w: w["x"] * y, {"x": x}, steps, eta)["x"]
        return torch.autograd.grad(x * later_y, x)[0], torch.autograd.grad(-later_x * y, y)[0]

    of_x, of_y = slopes()
    torch.testing.assert_close(of_x, (y + 2 * eta * x).detach())
    torch.testing.assert_close(of_y, (-x + 2 * eta * y).detach())
    for _ in range(300):
        of_x, of_y = slopes()
        with torch.no_grad():
            x -= 0.1 * of_x
            y -= 0.1 * of_y
    assert max(abs(float(x)), abs(float(y))) < 1e-2


@pytest.mark.system("lola", rung="exact")
def test_the_critic_s_gradient_goes_through_a_step_of_its_map(off: str) -> None:
    """The critics' loss by finite differences, of maps that take a step of gradient descent by torch's SGD."""
    network, batch = translators(), points()
    parameter = network.critic_y.layers[-1].weight
    of_y = batch.y[:, 0] > 0.5
    x, y = batch.extra[~of_y], batch.extra[of_y]

    def by_hand() -> Tensor:
        total: Any = 0.0
        games = ((network.critic_y, y, network.to_y, x), (network.critic_x, x, network.to_x, y))
        for critic, true, translator, start in games:
            later = translators().to_x
            later.load_state_dict(translator.state_dict())
            sgd = torch.optim.SGD(later.parameters(), lr=RATE)
            with torch.enable_grad():
                sgd.zero_grad()
                (critic(later(start)) - 1).square().mean().backward(inputs=[*later.parameters()])
            sgd.step()
            total = total + (critic(true) - 1).square().mean() + critic(later(start)).square().mean()
        return 0.5 * 8 * total

    objective = CycleObjective(2, unroll=1, lookahead="maps" if off else "both").double()
    loss = objective(network, batch, STATE._replace(turn=1)).total
    torch.testing.assert_close(loss, by_hand(), rtol=1e-8, atol=1e-8)
    (slope,) = torch.autograd.grad(loss, parameter)
    torch.testing.assert_close(slope, finite_differences(by_hand, parameter), rtol=1e-3, atol=1e-5)


GAMMA, LR, ETA, ROUNDS = 0.96, 0.05, 1.0, 150


def returns(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Exact discounted returns of both players of the repeated prisoner's dilemma, from policies of one round's memory.

    Five logits of cooperation each: at first, and after CC, CD, DC, DD as the player sees them.
    """
    a, b = torch.sigmoid(one), torch.sigmoid(other)[[0, 1, 3, 2, 4]]
    chance = torch.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)], dim=1)
    occupied = torch.linalg.solve((torch.eye(4) - GAMMA * chance[1:]).T, chance[0])
    return occupied @ torch.tensor([-1.0, -3.0, 0.0, -2.0]), occupied @ torch.tensor([-1.0, 0.0, -3.0, -2.0])


@functools.cache
def reward(steps: int, seed: int) -> float:
    """Per round, of the mean of both players after they learned."""
    torch.manual_seed(seed)
    one, other = (torch.randn(5, requires_grad=True) for _ in range(2))
    for _ in range(ROUNDS):
        slopes = []
        for mine, theirs in ((one, other), (other, one)):
            later = looked_ahead(lambda w, mine=mine: -returns(w["it"], mine)[0], {"it": theirs}, steps, ETA)["it"]
            slopes.append(torch.autograd.grad(returns(mine, later)[0], mine)[0])
        with torch.no_grad():
            one += LR * slopes[0]
            other += LR * slopes[1]
    with torch.no_grad():
        return float(sum(returns(one, other)) / 2 * (1 - GAMMA))


@pytest.mark.system(
    "lola",
    rung="works",
    null="after 150 rounds 0.7 of pairs, not 0.8, have more than -1.5 a round; the mean is -1.46 beside -1.98",
)
def test_players_that_look_ahead_cooperate_in_the_repeated_dilemma(off: str, effect: Effect) -> None:
    """Foerster et al. 2018, table 3: -1.98 of naive players and -1.06 of LOLA's."""
    naive = [reward(0, seed) for seed in range(10)]
    values = naive if off else [reward(1, seed) for seed in range(10)]
    share = [float(value > -1.5) for value in values]
    beside = {"reward a round": values, "of naive players": naive}
    assert np.mean(naive) < -1.9
    effect("share of pairs with more than -1.5 a round", [float(np.mean(share))], at_least=0.8, beside=beside)
