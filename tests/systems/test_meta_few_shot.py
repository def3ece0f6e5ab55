"""MAML: its gradient by differences, and sinusoids from ten points."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.base.contracts import Target
from molgraph.base.recipe_keys import GradientDescent
from molgraph.train.engine import Fit, Learner, TrainingConfig
from molgraph.train.episodes import Episodes
from molgraph.train.objective import StepState
from molgraph.train.objectives.maml import MAML
from molgraph.train.objectives.reptile import Reptile
from molgraph.train.outputs import Outputs
from molgraph.train.runtime import make_fabric
from tests.systems.effect import Effect
from tests.train.test_maml import divided, gradient, tiny

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
        self.head = SimpleNamespace(losses=lambda raw, y: (raw - y).square())

    def prepare(self, batch: Batch) -> None:
        pass

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        return self.layers(batch.x), {}


class Steps:
    """A table of as many rows as there are steps; what a step learns from is drawn in ``corrupt``."""

    views = ()

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def sample(self, rows: np.ndarray, views: None = None) -> Batch:
        return Batch(*[torch.zeros(1, 1)] * 3)


def sinusoids(rng: np.random.Generator, tasks: int, points: int) -> Batch:
    """Amplitudes 0.1 to 5, phases 0 to pi, points -5 to 5."""
    x = rng.uniform(-5, 5, (points, 1))
    y = rng.uniform(0.1, 5, tasks) * np.sin(x - rng.uniform(0, np.pi, tasks))
    return Batch(*[torch.from_numpy(np.float32(each)) for each in (x, y, np.ones_like(y))])


ASKED = Episodes(4, SHOTS, 100)


class Sines:
    """Draws sinusoids in the place of rows."""

    def __init__(self, *args: Any, **params: Any) -> None:
        super().__init__(*args, **params)
        self.episodes = None

    def corrupt(self, batch: Any, rng: np.random.Generator) -> Any:
        return divided(ASKED, sinusoids(rng, 4, 2 * SHOTS), rng)  # type: ignore[arg-type]


class SineMAML(Sines, MAML): ...


class SineReptile(Sines, Reptile): ...


def learned(n_steps: int, seed: int, make: Any = SineMAML, rate: float = 1e-2, **params: Any) -> Wave:
    """A network that was trained for so many steps; no inner step is joint training."""
    torch.manual_seed(seed)
    network = Wave()
    objective = make(network, (), ONE, **params)
    how = GradientDescent(epochs=1, batch_size=1, learning_rate=rate, warmup_epochs=0.0, patience=None)
    plan = TrainingConfig(how, seed=seed, checkpoint_seconds=1e9, folder=None, prints={})
    found = Fit(Steps(n_steps), None, plan)(make_fabric("cpu", "float32"), Learner(network, objective))  # type: ignore[arg-type]
    network.load_state_dict(found.weights)
    return network


def fine_tuned(network: Wave, rate: float) -> float:
    """Mean squared error on 40 new sinusoids after 5 steps on 10 points of each; infinite where the steps diverge."""
    objective = MAML(network, (), ONE, inner_rate=rate, inner_steps=5)  # type: ignore[arg-type]
    rng, errors = np.random.default_rng(7), []
    for _ in range(40):
        batch: Any = divided(ASKED, sinusoids(rng, 1, SHOTS + 100), rng)  # type: ignore[arg-type]
        fast = objective.adapt(network, dict(network.named_parameters()), batch, 0)
        errors.append(objective.loss(network, fast, batch, 0, 1).item())
    return float(np.nan_to_num(np.mean(errors), nan=np.inf))


def by_differences(loss: Any, network: nn.Module, step: float = 1e-5) -> Tensor:
    """The gradient of ``loss()`` by central finite differences."""
    found = []
    with torch.no_grad():
        for flat in [p.data.view(-1) for p in network.parameters()]:
            for i in range(len(flat)):
                ends = []
                for sign in (1, -2):
                    flat[i] += sign * step
                    with torch.enable_grad():
                        ends.append(loss().item())
                flat[i] += step
                found.append((ends[0] - ends[1]) / (2 * step))
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("inner_steps", [1, 3])
@pytest.mark.system("maml", rung="exact", twins=("off", "first order"))
def test_the_gradient_goes_through_the_inner_steps(inner_steps: int, off: str) -> None:
    """Full MAML against central differences; first order against the gradient where the steps arrive."""
    how: dict[str, Any] = {"inner_rate": 0.1, "shots": 4}
    objective, network, batch = tiny(inner_steps=inner_steps, **how)
    used = tiny(inner_steps=0 if off == "off" else inner_steps, first_order=bool(off), **how)[0]
    full = gradient(used, network, batch)
    expected = by_differences(lambda: objective(network, batch, StepState(0, 1, 0)).total, network)
    assert float((full - expected).norm() / expected.norm()) < 1e-4

    first = gradient(tiny(inner_steps=inner_steps, first_order=True, **how)[0], network, batch)
    arrived, start = torch.zeros_like(first), dict(network.named_parameters())
    for task in range(3):
        fast = objective.adapt(network, start, batch, task)
        end = {name: value.detach().requires_grad_() for name, value in fast.items()}
        pieces = torch.autograd.grad(objective.loss(network, end, batch, task, 1), list(end.values()))
        arrived += torch.cat([piece.flatten() for piece in pieces])
    torch.testing.assert_close(first, arrived)


@pytest.mark.system("maml", rung="works")
def test_five_steps_on_ten_points_go_further_than_from_joint_training(off: str, effect: Effect) -> None:
    """Finn et al. 2017, figure 2; each start at its best step size; joint training is MAML without inner steps."""

    def error(seed: int, **params: Any) -> float:
        network = learned(1000, seed, inner_rate=0.02, **params)
        return min(fine_tuned(network, rate) for rate in (0.01, 0.02))

    seeds = range(3)
    joint = [error(seed, inner_steps=0) for seed in seeds]
    own = joint if off else [error(seed) for seed in seeds]
    first = [] if off else [error(seed, first_order=True) for seed in seeds]
    shares = [a / b for a, b in zip(own, joint, strict=True)]
    beside = {"joint training, error": joint, "maml, error": own} | ({"first order, error": first} if first else {})
    effect("squared error of new sinusoids / from joint training", shares, at_most=0.5, beside=beside)


@pytest.mark.system("reptile", rung="exact")
def test_one_step_is_joint_training_and_several_lead_where_plain_descent_does(off: str) -> None:
    """The gradient of one inner step is that of the support's loss; of three, the way of three steps of SGD."""
    plain, network, batch = tiny(inner_rate=0.1, shots=4)
    for steps in (1, 3):
        objective = Reptile(network, (), ONE, inner_rate=0.1, inner_steps=1 if off else steps)  # type: ignore[arg-type]
        moved = torch.zeros(sum(p.numel() for p in network.parameters()), dtype=torch.float64)
        for task in range(3):
            twin = deepcopy(network)
            descent = torch.optim.SGD(twin.parameters(), 0.1)
            for step in range(steps):
                descent.zero_grad()
                plain.loss(twin, dict(twin.named_parameters()), batch, task, step % 2).backward()
                descent.step()
            pairs = zip(network.parameters(), twin.parameters(), strict=True)
            moved += torch.cat([((a - b) / 0.1).flatten() for a, b in pairs]).detach()
        torch.testing.assert_close(gradient(objective, network, batch), moved, atol=1e-6, rtol=1e-6)


@pytest.mark.system("reptile", rung="works")
def test_reptile_goes_further_than_joint_training_too(off: str, effect: Effect) -> None:
    """Nichol et al. 2018, section 4: sinusoids, of which joint training learns the mean alone."""

    def error(seed: int, **params: Any) -> float:
        network = learned(1000, seed, **params)
        return min(fine_tuned(network, rate) for rate in (0.01, 0.02))

    seeds = range(3)
    how: dict[str, Any] = {"make": SineReptile, "inner_rate": 0.02}
    joint = [error(seed, inner_steps=1, **how) for seed in seeds]
    own = joint if off else [error(seed, inner_steps=5, **how) for seed in seeds]
    maml = [] if off else [error(seed, inner_rate=0.02) for seed in seeds]
    shares = [a / b for a, b in zip(own, joint, strict=True)]
    beside = {"joint training, error": joint, "reptile, error": own} | ({"maml, error": maml} if maml else {})
    effect("squared error of new sinusoids / from joint training", shares, at_most=0.5, beside=beside)
