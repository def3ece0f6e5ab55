"""Trials that every registered optimiser and learning-rate schedule meets."""

from __future__ import annotations

import math
from copy import deepcopy

import pytest
import torch
from torch import nn

from molgraph.base.registry import entry, get, names
from molgraph.train.optimizers import Steps, learning_rate, make_optimizer


def problem() -> tuple[nn.Parameter, torch.Tensor]:
    return nn.Parameter(torch.tensor([3.0, -2.0, 1.0])), torch.tensor([1.0, 1.0, 1.0])


def step(optimizer: torch.optim.Optimizer, w: nn.Parameter, goal: torch.Tensor) -> float:
    optimizer.zero_grad()
    loss = (w - goal).square().sum()
    loss.backward()
    optimizer.step()
    return float(loss)


@pytest.mark.parametrize("name", names("optimizer"))
class TestEveryOptimizer:
    def test_finds_the_bottom_of_a_bowl(self, name: str) -> None:
        assert entry("optimizer", name).summary
        w, goal = problem()
        optimizer = make_optimizer(name, [w], 0.05, 0.0)
        losses = [step(optimizer, w, goal) for _ in range(300)]
        assert losses[-1] < 1e-2 * losses[0]

    def test_weight_decay_makes_weights_smaller(self, name: str) -> None:
        w, _ = problem()
        optimizer = make_optimizer(name, [w], 0.01, 0.5)
        for _ in range(5):
            step(optimizer, w, w.detach().clone())
        assert w.norm() < problem()[0].norm()

    def test_goes_on_exactly_from_its_state(self, name: str) -> None:
        w, goal = problem()
        optimizer = make_optimizer(name, [w], 0.05, 0.01)
        for _ in range(3):
            step(optimizer, w, goal)
        again = nn.Parameter(w.detach().clone())
        copy = make_optimizer(name, [again], 0.05, 0.01)
        copy.load_state_dict(deepcopy(optimizer.state_dict()))
        for _ in range(3):
            step(optimizer, w, goal)
            step(copy, again, goal)
        assert torch.equal(w, again)

    def test_its_rate_can_be_set_at_every_step(self, name: str) -> None:
        w, goal = problem()
        optimizer = make_optimizer(name, [w], 0.05, 0.0)
        step(optimizer, w, goal)
        for group in optimizer.param_groups:
            group["lr"] = 0.0
        before = w.detach().clone()
        step(optimizer, w, goal)
        assert torch.equal(w, before)


@pytest.mark.parametrize("name", names("schedule"))
class TestEverySchedule:
    def test_stays_between_nothing_and_its_peak(self, name: str) -> None:
        assert entry("schedule", name).summary and get("schedule", name).__doc__
        steps = Steps(1e-3, warmup=10, total=100)
        rates = [learning_rate(name, steps, i) for i in range(300)]
        assert all(math.isfinite(rate) and 0 <= rate <= 1e-3 * (1 + 1e-9) for rate in rates)
        assert rates[10] == pytest.approx(1e-3), "the peak after the warm-up"
        assert rates[100:] == [rates[100]] * 200, "no change after the end"

    def test_grows_with_its_peak(self, name: str) -> None:
        schedule = get("schedule", name)
        for done in (0.0, 0.3, 1.0):
            assert schedule(2e-3, done) == pytest.approx(2 * schedule(1e-3, done))
