"""Objectives that own their step: several optimisers, moving copies, corruption, fast weights, exact resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.base.errors import MolgraphError
from molgraph.base.recipe_keys import GradientDescent
from molgraph.base.registry import names
from molgraph.train import engine
from molgraph.train.checkpoint import CURVES
from molgraph.train.engine import Fit, Learner, TrainingConfig
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.runtime import Interrupted, make_fabric
from tests.train.adversary import Adversary


class Line(nn.Module):
    """``y = w x + b``."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(1, 1)

    def prepare(self, batch: Any) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class Points:
    """Points of a line as a table of samples; a batch is its own ``Sample``."""

    views = ()

    def __init__(self, n: int = 64) -> None:
        self.x = torch.linspace(-1, 1, n).unsqueeze(1)

    def __len__(self) -> int:
        return len(self.x)

    def sample(self, rows: np.ndarray, views: None = None) -> Batch:
        return Batch(self.x[torch.from_numpy(rows)])


class Batch:
    def __init__(self, x: Tensor) -> None:
        self.x = x

    def to(self, device: torch.device) -> Batch:
        return self


class Teacher(Objective):
    """Noise on the input, a teacher that follows the network, and a second optimiser for a scale of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("teacher", torch.zeros(2))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.seen: list[tuple[int, int]] = []

    def turns(self, network: nn.Module) -> list[list[nn.Parameter]]:
        return [list(network.parameters()), [self.scale]]

    def corrupt(self, batch: Batch, rng: np.random.Generator) -> Batch:
        noise = torch.from_numpy(rng.normal(size=tuple(batch.x.shape)).astype(np.float32))
        return Batch(batch.x + 0.01 * noise)

    def forward(self, network: Any, batch: Batch, state: StepState) -> Loss:
        self.seen.append((state.step, state.turn))
        out = network(batch.x) * self.scale
        near = (out - (3 * batch.x + 1)).square().sum()
        drift = state.progress * (network.layer.weight.squeeze() - self.teacher[0]).square()
        return Loss(near + drift, len(batch.x), {"drift": drift})

    def after_step(self, network: Any, state: StepState) -> None:
        now = torch.stack([network.layer.weight.detach().squeeze(), network.layer.bias.detach().squeeze()])
        self.teacher.lerp_(now, 0.1)
        self.steps += 1


class FastWeights(Objective):
    """One step of gradient descent inside the loss: gradients of gradients, in validation too."""

    grad_in_validation = True

    def forward(self, network: Any, batch: Batch, state: StepState) -> Loss:
        def loss(weights: dict[str, Tensor]) -> Tensor:
            out = torch.func.functional_call(network, weights, (batch.x,))
            return (out - (3 * batch.x + 1)).square().mean()

        weights = dict(network.named_parameters())
        inner = torch.autograd.grad(loss(weights), list(weights.values()), create_graph=True)
        fast = {name: value - 0.1 * g for (name, value), g in zip(weights.items(), inner, strict=True)}
        return Loss(loss(fast) * len(batch.x), len(batch.x))


def plan(folder: Path | None = None, epochs: int = 6, **changes: Any) -> TrainingConfig:
    settings = {"epochs": epochs, "batch_size": 16, "learning_rate": 0.05, "warmup_epochs": 1.0, "patience": None}
    how = GradientDescent(**settings | changes)
    return TrainingConfig(how, seed=0, checkpoint_seconds=0.0, folder=folder, prints={"a": "b"})


def fit(objective: Objective, how: TrainingConfig) -> engine.Learned:
    return Fit(Points(), Points(32), how)(make_fabric("cpu", "float32"), Learner(Line(), objective))  # type: ignore[arg-type]


def test_every_turn_steps_its_own_optimiser_and_the_teacher_follows() -> None:
    objective = Teacher()
    learned = fit(objective, plan())
    training = [each for each in objective.seen if each[1] < 2]
    assert training[:4] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert objective.steps == 6 * 4 and float(objective.scale) != 1.0
    assert abs(float(objective.teacher[0])) > 0
    assert learned.curves[-1]["train_loss"] < learned.curves[0]["train_loss"]


@pytest.mark.parametrize("make", [Teacher, FastWeights, Adversary])
@pytest.mark.parametrize("stop_after", [1, 3, 9])
def test_a_killed_fit_goes_on_exactly(make: type[Objective], stop_after: int, tmp_path: Path) -> None:
    """Weights, curves, the objective's own parameters and buffers, and both optimisers are as without the stop."""
    whole = make()
    expected = fit(whole, plan(tmp_path / "whole"))
    (tmp_path / "cut").mkdir()
    steps = []

    class Stopping(make):  # type: ignore[misc, valid-type]
        def after_step(self, network: Any, state: StepState) -> None:
            super().after_step(network, state)
            steps.append(state.step)
            if len(steps) == stop_after + 1:
                raise Interrupted("killed")

    with pytest.raises(Interrupted):
        fit(Stopping(), plan(tmp_path / "cut"))
    again = make()
    found = fit(again, plan(tmp_path / "cut"))
    assert all(np.array_equal(found.weights[name], expected.weights[name]) for name in expected.weights)
    for one, other in zip(found.curves, expected.curves, strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}
    for name, value in whole.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_parts_of_every_turn_are_columns_of_the_curves() -> None:
    """Means over labels, as the losses are, which are those of the first turn; it alone is judged in validation."""
    objective = Adversary()
    first, *_, last = fit(objective, plan()).curves
    assert [*first] == [*CURVES, "train_near", "train_size", "train_discriminator", "valid_near", "valid_size"]
    for row in (first, last):
        for part in ("train", "valid"):
            assert row[f"{part}_near"] + row[f"{part}_size"] == pytest.approx(row[f"{part}_loss"])
    assert last["train_near"] < first["train_near"] and 0 < last["train_discriminator"] < 1


def test_a_part_that_is_called_loss_leaves_the_loss_as_it_is() -> None:
    class Named(FastWeights):
        def forward(self, network: Any, batch: Batch, state: StepState) -> Loss:
            found = super().forward(network, batch, state)
            return found._replace(parts={"loss": 0 * found.total})

    assert [row["train_loss"] for row in fit(Named(), plan()).curves] == [
        row["train_loss"] for row in fit(FastWeights(), plan()).curves
    ]


def test_a_later_turn_that_is_no_number_is_an_error() -> None:
    class Broken(Adversary):
        def forward(self, network: Any, batch: Batch, state: StepState) -> Loss:
            found = super().forward(network, batch, state)
            return found._replace(total=found.total * float("nan")) if state.turn else found

    with pytest.raises(MolgraphError, match="loss is nan"):
        fit(Broken(), plan())


@pytest.mark.parametrize(("make", "unused"), [(Adversary, True), (Teacher, True), (FastWeights, False)])
def test_several_turns_alone_look_for_unused_parameters(
    make: type[Objective], unused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes of DDP would end in an error without, and all others would pay for it."""
    real, made = make_fabric, []

    def note(*args: Any, **options: Any) -> Any:
        made.append(real("cpu", "float32", 2, "auto", **options).strategy)
        return real(*args, **options)

    monkeypatch.setattr(engine, "make_fabric", note)
    params = {**plan().how.model_dump(), "epochs": 1, "seed": 0, "device": "cpu", "precision": "float32"}
    params |= {"checkpoint_seconds": 0.0}
    engine.fit_network(Line(), make(), Points(), None, params, {}, workdir=None, label="training")  # type: ignore[arg-type]
    (strategy,) = made
    assert strategy._ddp_kwargs.get("find_unused_parameters", False) == unused
    assert strategy._start_method == "spawn"


def test_fast_weights_learn() -> None:
    learned = fit(FastWeights(), plan(epochs=30))
    assert learned.curves[-1]["valid_loss"] < 0.2 * learned.curves[0]["valid_loss"]


@pytest.mark.parametrize("optimizer", names("optimizer"))
@pytest.mark.parametrize("schedule", names("schedule"))
def test_optimisers_and_schedules_by_name(optimizer: str, schedule: str) -> None:
    learned = fit(FastWeights(), plan(optimizer=optimizer, schedule=schedule, learning_rate=0.01))
    assert learned.curves[-1]["train_loss"] < learned.curves[0]["train_loss"]


def test_an_objective_that_is_no_number_is_an_error() -> None:
    class Broken(FastWeights):
        def forward(self, network: Any, batch: Batch, state: StepState) -> Loss:
            return Loss(network(batch.x).sum() * float("nan"), 1)

    with pytest.raises(MolgraphError, match="loss is nan"):
        fit(Broken(), plan())
