"""Heads that a part of the network writes from a few labelled molecules: FiLM from a set, and Hebbian weights."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeCV
from torch import Tensor, nn

from molgraph.base.contracts import Target
from molgraph.nn.closed_form import prototype_head
from molgraph.nn.plastic import PlasticLayer, hebbian
from molgraph.nn.set_film import SetFilm
from molgraph.train.objective import StepState
from molgraph.train.objectives.plastic import Plastic
from molgraph.train.objectives.support_film import SupportFilm
from molgraph.train.outputs import Outputs
from tests.systems.effect import Effect
from tests.systems.test_few_labels import states
from tests.systems.test_support_heads import started


class States(nn.Module):
    """A network whose states are given, with the parts of an objective."""

    def __init__(self, objective: Any, d: int) -> None:
        super().__init__()
        self.d_state = d
        self.parts = nn.ModuleDict(objective.network_parts(self))

    def encode(self, batch: Any) -> list[Any]:
        return [SimpleNamespace(penalties={})]

    def answer(self, encoded: Any, batch: Any) -> Tensor:
        return batch.x


def learned(network: States, objective: Any, draw: Any, steps: int, rate: float = 0.01) -> None:
    """Train on batches that ``draw`` gives."""
    optimiser = torch.optim.Adam([each for each in network.parameters() if each.requires_grad], rate)
    for step in range(steps):
        loss = objective(network, draw(), StepState(step, steps, 0))
        optimiser.zero_grad()
        (loss.total / loss.count).backward()
        optimiser.step()


@pytest.mark.system("few-shot-adain-talking-heads", rung="exact")
def test_the_head_scales_and_shifts_its_input_and_sees_no_order_in_the_support(off: str) -> None:
    torch.manual_seed(0)
    film, h, query = SetFilm(5, 6).double(), states(8, 5), states(3, 5, 1)
    y = states(8, 1, 2)[:, 0]
    weight, bias = film(h, 0 * y if off else y)
    order = torch.randperm(8)
    for each, other in zip(film(h[order], y[order]), film(h, y), strict=True):
        torch.testing.assert_close(each, other, atol=1e-6, rtol=0)
    embeddings = [film.embed(torch.cat([h[i], y[i] * h[i], y[i : i + 1]])[None])[0] for i in range(8)]
    gamma, beta = film.project(sum(embeddings, torch.zeros(6).double()) / 8).split(5)
    expected = [film.base((1 + gamma) * each + beta) for each in query]
    torch.testing.assert_close(query @ weight.T + bias, torch.stack(expected))


@pytest.mark.system("few-shot-adain-talking-heads", rung="exact")
def test_fine_tuning_begins_at_the_head_that_the_set_network_writes(off: str, tmp_path: Path) -> None:
    fitted, start, h, table = started(tmp_path, "support-film", "ridge" if off else "film")
    assert table.y is not None
    weight, bias = start.parts["support-film"].double()(h.double(), 2 * torch.from_numpy(table.y[:, 0]) - 1)
    layer = fitted.ready().network.head.layers[-1]
    torch.testing.assert_close(layer.weight.double(), weight, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(layer.bias.double(), bias, atol=1e-4, rtol=1e-3)


@pytest.mark.system("few-shot-adain-talking-heads", rung="works")
def test_sixteen_measurements_are_read_without_a_step(off: str, effect: Effect) -> None:
    """Linear assays with noise; the same network without its support's embedding, and ridge regression on each."""
    outputs, ratios, errors = Outputs((Target("y"),), np.zeros(1), np.ones(1)), list[float](), dict[str, list[float]]()
    for seed in range(3):
        torch.manual_seed(seed)
        rng, network = np.random.default_rng(seed), States(SupportFilm, 8)
        objective = SupportFilm(network, (), outputs)  # type: ignore[arg-type]

        def draw(n_tasks: int = 8, rng: np.random.Generator = rng) -> Any:
            x = rng.normal(size=(48, 8)).astype(np.float32)
            y = x @ rng.normal(size=(8, n_tasks)) + rng.normal(size=(48, n_tasks))
            weights = torch.zeros(2, 48, n_tasks)
            weights[0, :16], weights[1, 16:] = 1, 1
            return SimpleNamespace(x=torch.from_numpy(x), y=torch.from_numpy(np.float32(y)), weights=weights)

        learned(network, objective, draw, 0 if off else 300)
        batch, film = draw(64), network.parts["support-film"]
        if off:
            nn.init.zeros_(film.project.weight)  # type: ignore[arg-type]
        own = {"FiLM": objective(network, batch, StepState(0, 1, 0)).total.item() / 64}
        nn.init.zeros_(film.project.weight)  # type: ignore[arg-type]
        own["without the support"] = objective(network, batch, StepState(0, 1, 0)).total.item() / 64
        x, y = batch.x.numpy(), batch.y.numpy()
        ridge = RidgeCV(np.logspace(-2, 2, 9)).fit(x[:16], y[:16]).predict(x[16:])
        own["ridge"] = float(np.square(ridge - y[16:]).mean())
        for name, error in own.items():
            errors.setdefault(f"{name}, error", []).append(error**0.5)
        ratios.append((own["FiLM"] / own["without the support"]) ** 0.5)
    effect("root mean squared error / without the support", ratios, at_most=0.8, beside=errors)


@pytest.mark.system("differentiable-plasticity", rung="exact")
def test_examples_write_the_hebbian_weights_in_turn(off: str) -> None:
    h, y = states(9, 5), states(9, 3, 1)
    trace = torch.zeros(3, 5).double()
    for x, label in zip(h, y, strict=True):
        trace = 0.3 * label[:, None] * x + (1 if off else 0.7) * trace
    torch.testing.assert_close(hebbian(h, y, torch.tensor(0.3)), trace)
    one_hot = nn.functional.one_hot(torch.arange(9) % 3, 3).double()
    sums = torch.stack([h[torch.arange(9) % 3 == k].sum(dim=0) for k in range(3)])
    torch.testing.assert_close(hebbian(h, one_hot), sums / 9, atol=1e-6, rtol=0)
    shown = torch.linalg.qr(states(8, 8))[0][:5]
    for eta in (None, torch.tensor(0.2)):
        assert ((shown @ hebbian(shown, torch.eye(5).double(), eta).T).argmax(dim=1) == torch.arange(5)).all()
    layer = PlasticLayer(5).double()
    nn.init.zeros_(layer.alpha)
    weight, bias = layer(h, y[:, 0])
    torch.testing.assert_close(h @ weight.T + bias, layer.base(h), atol=0, rtol=0)


@pytest.mark.system("differentiable-plasticity", rung="works")
def test_clusters_whose_labels_are_drawn_anew_are_told_from_five_examples(off: str, effect: Effect) -> None:
    """Twenty clusters; each task calls one of two 1 and the other 0, at random: fixed weights cannot know which."""
    outputs, right = Outputs((Target("y", "binary"),), np.zeros(1), np.ones(1)), dict[str, list[float]]()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(40, 16))

        def draw(
            n_tasks: int = 4, first: int = 0, rng: np.random.Generator = rng, centres: np.ndarray = centres
        ) -> Any:
            x, y = np.zeros((n_tasks, 30, 16)), np.tile(np.arange(30) % 2, (n_tasks, 1)).astype(float)
            weights = torch.zeros(2, n_tasks * 30, n_tasks)
            for t in range(n_tasks):
                pair = first + rng.choice(20, 2, replace=False)
                x[t] = centres[pair[y[t].astype(int)]] + rng.normal(size=(30, 16))
                weights[0, 30 * t : 30 * t + 10, t] = weights[1, 30 * t + 10 : 30 * t + 30, t] = 1
            labels = np.broadcast_to(y.reshape(-1, 1), (n_tasks * 30, n_tasks)).copy()
            return SimpleNamespace(
                x=torch.from_numpy(np.float32(x.reshape(-1, 16))),
                y=torch.from_numpy(np.float32(labels)),
                weights=weights,
            )

        held = draw(50, first=20)
        for name in ("plastic", "without plasticity"):
            torch.manual_seed(seed)
            network = States(Plastic, 16)
            objective = Plastic(network, (), outputs)  # type: ignore[arg-type]
            if off or name != "plastic":
                nn.init.zeros_(network.parts["plastic"].alpha.requires_grad_(False))  # type: ignore[operator,union-attr]
            learned(network, objective, draw, 20 if off else 150)
            loss = objective(network, held, StepState(0, 1, 0))
            right.setdefault(name, []).append(float(loss.parts["accuracy"]) / 50)
        scores = []
        for t in range(50):
            support, query = (held.weights[part, :, t] > 0 for part in (0, 1))
            one_hot = nn.functional.one_hot(held.y[support, t].long(), 2).float()
            w, b = prototype_head(held.x[support], one_hot)
            guess = (held.x[query] @ w.T + b).argmax(dim=1)
            scores.append(float((guess == held.y[query, t]).float().mean()))
        right.setdefault("prototypes", []).append(float(np.mean(scores)))
    effect("accuracy on clusters that were held out", right["plastic"], at_least=0.75, beside=right)
