"""What is learned beside the weights that tasks start from: step sizes, noise, and layers that warp the gradient."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.base.contracts import Target
from molgraph.nn.head import Head
from molgraph.train.objective import StepState
from molgraph.train.objectives.maml import MAML
from molgraph.train.objectives.meta_sgd import MetaSGD
from molgraph.train.objectives.warpgrad import WARPS, WarpGrad
from molgraph.train.outputs import Outputs
from tests.systems.effect import Effect
from tests.systems.test_few_labels import states
from tests.systems.test_meta_few_shot import ONE, by_differences
from tests.train.test_maml import tiny


class Headed(nn.Module):
    """A head on numbers that are given, with the parts of an objective."""

    def __init__(self, d: int, n_layers: int, objective: Any = None, width: int = 16, kind: Any = "regression") -> None:
        super().__init__()
        self.d_state, self.has_head = d, True
        self.head = Head(d, (Target("task", kind),), width, n_layers)
        self.parts = nn.ModuleDict({} if objective is None else objective.network_parts(self))

    def forward(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        return self.head(batch.x), {}


def batch_of(x: np.ndarray, y: np.ndarray, shots: int) -> Any:
    """Rows that all tasks share, the first of them in the support; single precision."""
    weights = torch.zeros(2, *y.shape)
    weights[0, :shots], weights[1, shots:] = 1, 1
    return SimpleNamespace(x=torch.from_numpy(np.float32(x)), y=torch.from_numpy(np.float32(y)), weights=weights)


def learned(network: nn.Module, objective: Any, draw: Any, steps: int, rate: float) -> None:
    """Train on batches that ``draw`` gives."""
    own = [each for each in [*network.parameters(), *objective.parameters()] if each.requires_grad]
    optimiser = torch.optim.Adam(own, rate)
    for step in range(steps):
        loss = objective(network, draw(), StepState(step, steps, 0))
        optimiser.zero_grad()
        (loss.total / loss.count).backward()
        optimiser.step()


@pytest.mark.system("lpg", rung="exact")
def test_equal_rates_are_gradient_descent_and_their_gradient_is_that_of_differences(off: str) -> None:
    """Two steps on each task by ``torch.optim.SGD``; then the gradient by the logarithms of the rates."""
    plain, network, batch = tiny(inner_steps=2, inner_rate=0.1, shots=4)
    objective = MetaSGD(network, (), ONE, inner_steps=2, inner_rate=0.1).double()  # type: ignore[arg-type]
    start = {name: value.clone() for name, value in network.state_dict().items()}
    fast = objective.adapt(network, dict(network.named_parameters()), batch, 0)
    descent = torch.optim.SGD(network.parameters(), 0.1)
    for _ in range(2):
        descent.zero_grad()
        plain.loss(network, dict(network.named_parameters()), batch, 0, 0).backward()
        descent.step()
    for name, value in network.named_parameters():
        torch.testing.assert_close(fast[name], value)
    network.load_state_dict(start)
    objective.zero_grad()
    if not off:  # else the rates stay as they are
        objective(network, batch, StepState(0, 1, 0)).total.backward()
    expected = by_differences(lambda: objective(network, batch, StepState(0, 1, 0)).total, objective)
    gradient = objective.log_rates.grad if objective.log_rates.grad is not None else 0 * expected
    assert float((gradient - expected).norm() / expected.norm()) < 1e-3


class TwoScales(nn.Module):
    """``a x + b z``, where z is a twentieth of x in size: each layer needs a step size of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 1), nn.Linear(4, 1, bias=False)
        self.head = SimpleNamespace(losses=lambda raw, y: (raw - y).square())

    def forward(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        return self.a(batch.x[:, :4]) + self.b(batch.x[:, 4:]), {}


def two_scales(rng: np.random.Generator, n_tasks: int) -> Any:
    """Linear tasks without noise, twenty molecules in the support."""
    x = rng.normal(size=(40, 8))
    return batch_of(x * np.repeat([1, 0.05], 4), x @ rng.normal(size=(8, n_tasks)), 20)


def rated(make: Any, seed: int, steps: int, rate: float, *, learns: bool = True) -> tuple[float, float]:
    """Squared errors of tasks of the training, and of others, after three steps from what was learned."""
    torch.manual_seed(seed)
    network, rng = TwoScales(), np.random.default_rng(seed)
    objective = make(network, (), ONE, inner_steps=3, inner_rate=rate)
    for each in objective.parameters():
        each.requires_grad_(learns)
    learned(network, objective, lambda: two_scales(rng, 2), steps, 0.02)
    batches = [two_scales(np.random.default_rng(each), 20) for each in (100 + seed, 200 + seed)]
    state = StepState(0, 1, 0, training=False)
    known, held = (float(objective(network, each, state).total) / 20 for each in batches)
    return float(np.nan_to_num(known, nan=1e9)), float(np.nan_to_num(held, nan=1e9))


@cache
def best_single(seed: int) -> float:
    """The error of the step size that is the best on tasks of the training."""
    return min(rated(MAML, seed, 60, rate) for rate in (0.03, 0.1, 0.2, 0.4))[1]


@pytest.mark.system("lpg", rung="works")
def test_learned_rates_go_further_in_three_steps_than_the_best_rate_of_all(off: str, effect: Effect) -> None:
    """The best rate is chosen among MAMLs of four rates by tasks of the training; both are judged on others."""
    single = [best_single(seed) for seed in range(3)]
    own = [rated(MetaSGD, seed, 150, 0.1, learns=not off)[1] for seed in range(3)]
    shares = [a / b for a, b in zip(own, single, strict=True)]
    beside = {"learned rates, error": own, "best single rate, error": single}
    effect("squared error of new tasks / by the best single rate", shares, at_most=0.8, beside=beside)


@pytest.mark.system("meta-dropout", rung="exact")
def test_tasks_do_not_move_the_noise_and_without_it_the_steps_are_mamls(off: str) -> None:
    torch.manual_seed(0)
    network = Headed(3, 2).eval()
    plain, noisy = (MAML(network, (), ONE, inner_steps=2, meta_dropout=each) for each in (False, not off))  # type: ignore[arg-type]
    batch = batch_of(states(12, 3).numpy(), states(12, 2, 1).numpy(), 6)
    weights = dict(network.named_parameters())
    steps = [objective.adapt(network, weights, batch, 0) for objective in (plain, noisy)]
    for name, value in steps[0].items():  # in evaluation the noise is its mean, which is 1 at first
        torch.testing.assert_close(steps[1][name], value)
    network.train()
    assert noisy.noise is not None, "noise"
    before = {name: value.clone() for name, value in noisy.noise.named_parameters()}
    noisy(network, batch, StepState(0, 1, 0)).total.backward()
    for name, value in noisy.noise.named_parameters():
        assert value.grad is not None and value.grad.norm() > 0 and torch.equal(value, before[name])


def lines(rng: np.random.Generator, n_tasks: int) -> Any:
    """Classes that depend on two of sixteen numbers, by a line of each task's own: ten molecules are in the support."""
    x = rng.normal(size=(40, 16))
    angle = rng.uniform(0, 2 * np.pi, n_tasks)
    return batch_of(x, (x[:, :1] * np.cos(angle) + x[:, 1:2] * np.sin(angle) > 0).astype(float), 10)


@cache
def noisy_maml(seed: int, meta_dropout: bool) -> float:
    """Cross-entropy of new tasks after two steps."""
    torch.manual_seed(seed)
    two = Outputs((Target("y", "binary"),), np.zeros(1), np.ones(1))
    rng, network = np.random.default_rng(seed), Headed(16, 3, width=32, kind="binary")
    objective = MAML(network, (), two, inner_steps=2, inner_rate=0.3, meta_dropout=meta_dropout)  # type: ignore[arg-type]
    learned(network, objective, lambda: lines(rng, 2), 300, 0.003)
    network.eval()
    held = lines(np.random.default_rng(99), 100)
    return float(objective(network, held, StepState(0, 1, 0, training=False)).total) / 100


@pytest.mark.system(
    "meta-dropout", rung="works", null="in a head alone learned noise hurts: 1.34 [1.19, 1.5] of the loss of maml"
)
def test_noise_that_is_learned_helps_maml_on_few_labels(off: str, effect: Effect) -> None:
    plain = [noisy_maml(seed, False) for seed in range(3)]
    own = [noisy_maml(seed, not off) for seed in range(3)]
    shares = [a / b for a, b in zip(own, plain, strict=True)]
    beside = {"meta-dropout, cross-entropy": own, "maml, cross-entropy": plain}
    effect("cross-entropy of new tasks / by maml", shares, at_most=0.98, beside=beside)


@pytest.mark.system("warpgrad", rung="exact")
def test_identity_warps_change_no_bit_and_others_precondition_the_step(off: str) -> None:
    torch.manual_seed(0)
    network = Headed(3, 2, WarpGrad)
    objective = WarpGrad(network, (), ONE, inner_rate=0.1)  # type: ignore[arg-type]
    batch = batch_of(states(12, 3).numpy(), states(12, 2, 1).numpy(), 6)
    weights = objective.adapted(network)
    assert not any(name.startswith("parts.") for name in weights)
    plain = objective.adapt(network, weights, batch, 0)
    warps = network.parts[WARPS]
    if off:
        nn.init.constant_(warps.layers[0].bias, 0.1)  # type: ignore[index,union-attr,arg-type]
    hooks = warps.attach(network.head)  # type: ignore[operator]
    warped = objective.adapt(network, weights, batch, 0)
    assert all(torch.equal(warped[name], value) for name, value in plain.items())
    for hook in hooks:
        hook.remove()
    linear = Headed(3, 1, WarpGrad)
    w = torch.randn(3, 3)
    linear.parts[WARPS].layers[0].weight.data.copy_(w)  # type: ignore[index,union-attr,operator]
    linear.parts[WARPS].attach(linear.head)  # type: ignore[operator]
    start = {name: value for name, value in objective.adapted(linear).items() if "head" in name}
    one = WarpGrad(linear, (), ONE, inner_rate=0.1, inner_steps=1)  # type: ignore[arg-type]
    moved = one.adapt(linear, start, batch, 0)["head.layers.0.weight"] - start["head.layers.0.weight"]
    x, y = batch.x[:6], batch.y[:6, :1]
    residual = x @ w.T @ linear.head.layers[0].weight.T + linear.head.layers[0].bias - y
    slope = 2 * (residual * x).mean(dim=0)  # by the weights of x, which are theta w
    torch.testing.assert_close(moved[0] @ w, -0.1 * slope @ (w.T @ w))


WARP_NULL = (
    "after 250 steps over tasks the warps took 1.5 [-0.3, 3.3] times the steps of plain descent: learned too little"
)


@pytest.mark.system("warpgrad", rung="works", null=WARP_NULL)
def test_warps_of_other_tasks_reach_a_small_error_in_a_third_of_the_steps(off: str, effect: Effect) -> None:
    """Least squares of condition number 100 with axes that tasks share; both at their best of the same step sizes."""
    shares, counts = list[float](), dict[str, list[float]]()
    for seed in range(3):
        torch.manual_seed(seed)
        rng, network = np.random.default_rng(seed), Headed(6, 1, WarpGrad)
        axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]

        def draw(n_tasks: int = 2, rng: np.random.Generator = rng, axes: np.ndarray = axes) -> Any:
            x = (rng.normal(size=(128, 6)) * np.geomspace(0.1, 1, 6)) @ axes.T
            return batch_of(x, x @ axes @ (rng.normal(size=(6, n_tasks)) / np.geomspace(0.1, 1, 6)[:, None]), 64)

        objective = WarpGrad(network, (), ONE, inner_rate=0.3, inner_steps=4)  # type: ignore[arg-type]
        learned(network, objective, draw, 0 if off else 250, 0.01)
        held = draw(3)
        for name in ("gradient descent", "warped"):
            hooks = network.parts[WARPS].attach(network.head) if name == "warped" else []  # type: ignore[operator]
            start = {each: torch.zeros_like(value) for each, value in objective.adapted(network).items()}
            counts.setdefault(name, []).append(min(steps(objective, network, start, held, r) for r in RATES))
            for hook in hooks:
                hook.remove()
        shares.append(counts["warped"][-1] / counts["gradient descent"][-1])
    effect("steps to an error of 0.001 of the first / without warps", shares, at_most=1 / 3, beside=counts)


RATES, MOST = (0.1, 0.3, 0.8), 500


def steps(objective: Any, network: Any, start: dict[str, Tensor], batch: Any, rate: float) -> float:
    """Mean number of steps on a task's support until its loss is a thousandth of the first one; 500 at most."""
    counts = list[float]()
    for task in range(batch.y.shape[1]):
        weights, first = {name: value.clone().requires_grad_() for name, value in start.items()}, None
        count, loss = 0, torch.tensor(0.0)
        while count < MOST:
            loss = objective.loss(network, weights, batch, task, 0)
            first = loss.item() if first is None else first
            if not loss.item() > 1e-3 * first:
                break
            gradients = torch.autograd.grad(loss, [*weights.values()])
            pairs = zip(weights.items(), gradients, strict=True)
            weights = {name: (value - rate * slope).detach().requires_grad_() for (name, value), slope in pairs}
            count += 1
        counts.append(count if np.isfinite(loss.item()) else MOST)
    return float(np.mean(counts))
