"""MAML on sinusoids: from its weights a few steps on ten points go further than from weights of joint training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.base.contracts import Target
from molgraph.base.recipe_keys import GradientDescent
from molgraph.train.engine import Fit, Learner, TrainingConfig
from molgraph.train.objectives.maml import MAML
from molgraph.train.outputs import Outputs
from molgraph.train.runtime import make_fabric

SHOTS = 10
ONE = Outputs((Target("y"),), np.zeros(1), np.ones(1))


class Batch:
    """Points that all tasks share, and each task's values."""

    def __init__(self, x: Tensor, y: Tensor, weights: Tensor) -> None:
        self.x, self.y, self.weights = x, y, weights

    def to(self, device: torch.device) -> Batch:
        return self


class Wave(nn.Module):
    """The network of Finn et al. 2017, section 5.1: two hidden layers of 40."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))

    def prepare(self, batch: Batch) -> None:
        pass

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        return self.layers(batch.x), {}


class Steps:
    """A table of as many rows as there are steps; what a step learns from is drawn in ``corrupt``."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def sample(self, rows: np.ndarray) -> Batch:
        return Batch(*[torch.zeros(1, 1)] * 3)


def sinusoids(rng: np.random.Generator, tasks: int, points: int) -> Batch:
    """Amplitudes 0.1 to 5, phases 0 to pi, points -5 to 5."""
    x = rng.uniform(-5, 5, (points, 1))
    y = rng.uniform(0.1, 5, tasks) * np.sin(x - rng.uniform(0, np.pi, tasks))
    return Batch(*[torch.from_numpy(np.float32(each)) for each in (x, y, np.ones_like(y))])


class SineMAML(MAML):
    def corrupt(self, batch: Any, rng: np.random.Generator) -> Any:
        return super().corrupt(sinusoids(rng, 4, 2 * SHOTS), rng)  # type: ignore[arg-type]


def learned(n_steps: int, **params: Any) -> Wave:
    """A network that was trained for so many steps; no inner step is joint training."""
    torch.manual_seed(0)
    network = Wave()
    objective = SineMAML(network, (), ONE, shots=SHOTS, **params)  # type: ignore[arg-type]
    how = GradientDescent(epochs=1, batch_size=1, learning_rate=1e-2, warmup_epochs=0.0, patience=None)
    plan = TrainingConfig(how, seed=0, checkpoint_seconds=1e9, folder=None, prints={})
    found = Fit(Steps(n_steps), None, plan)(make_fabric("cpu", "float32"), Learner(network, objective))  # type: ignore[arg-type]
    network.load_state_dict(found.weights)
    return network


def fine_tuned(network: Wave, rate: float) -> float:
    """Mean squared error on 40 new sinusoids after 5 steps on 10 points of each; infinite where the steps diverge."""
    objective = MAML(network, (), ONE, inner_rate=rate, inner_steps=5, shots=SHOTS)  # type: ignore[arg-type]
    rng, errors = np.random.default_rng(7), []
    for _ in range(40):
        batch: Any = objective.corrupt(sinusoids(rng, 1, SHOTS + 100), rng)  # type: ignore[arg-type]
        fast = objective.adapt(network, dict(network.named_parameters()), batch, 0)
        errors.append(objective.loss(network, fast, batch, 0, 1).item())
    return float(np.nan_to_num(np.mean(errors), nan=np.inf))


@pytest.mark.slow
def test_five_steps_on_ten_points_go_further_than_from_joint_training() -> None:
    """Each starting point at its best step size; joint training is the same objective without inner steps."""
    ways: list[dict[str, Any]] = [{"inner_steps": 0}, {}, {"first_order": True}]
    networks = [learned(500, inner_rate=0.02, **params) for params in ways]
    joint, full, first = (min(fine_tuned(each, rate) for rate in (0.01, 0.02)) for each in networks)
    assert full <= 0.5 * joint, (joint, full, first)
    assert full < first < joint, (joint, full, first)
