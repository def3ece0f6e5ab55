"""MAML: its gradient, support and query, what starts from its file, what it refuses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import (
    BadValueError,
    ConflictError,
    LabelError,
    MolgraphError,
    UnknownNameError,
    UnsupportedError,
    UnusedSettingError,
)
from molgraph.cli.main import app
from molgraph.data.table import Table, make_table
from molgraph.train import archive
from molgraph.train.episodes import Episodes
from molgraph.train.method import GraphMethod
from molgraph.train.modelfile import load_model, verify
from molgraph.train.objective import StepState
from molgraph.train.objectives.maml import MAML
from molgraph.train.outputs import Outputs
from tests.tiny import series, weights_of

SIZE: dict[str, Any] = {"d_hidden": 8, "depth": 2}
RUN: dict[str, Any] = {"epochs": 2, "batch_size": 16}


class Batch:
    """Rows of numbers with labels of several tasks."""

    def __init__(self, x: Tensor, y: Tensor, weights: Tensor) -> None:
        self.x, self.y, self.weights = x, y, weights

    def to(self, device: torch.device) -> Batch:
        return self


class Tiny(nn.Module):
    """A perceptron in double precision, with a penalty on its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
        self.head = SimpleNamespace(losses=lambda raw, y: (raw - y).square())  # molgraph's is of single precision

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        return self.layers(batch.x), {"norm": 0.01 * self.layers[0].weight.square().sum()}


def tiny(seed: int = 0, n: int = 12, tasks: int = 3, **params: Any) -> tuple[MAML, Tiny, Any]:
    """An objective, a network and a batch, a third of whose labels are missing."""
    torch.manual_seed(seed)
    rng, network = np.random.default_rng(seed), Tiny()
    objective = MAML(network, (), outputs("regression"), **params)  # type: ignore[arg-type]
    weights = torch.from_numpy((rng.random((n, tasks)) < 0.7).astype(float))
    x, y = torch.from_numpy(rng.normal(size=(n, 3))), torch.from_numpy(rng.normal(size=(n, tasks)))
    return objective, network, divided(objective.episodes, Batch(x, y, weights), rng)


def divided(episodes: Episodes, batch: Batch, rng: np.random.Generator) -> Batch:
    """Support and query of all tasks that have two labels in a batch."""
    known = batch.weights.numpy() > 0
    if not len(tasks := np.flatnonzero(known.sum(axis=0) > 1)):
        return Batch(batch.x, batch.y, batch.weights.new_zeros(2, *known.shape))
    rows, parts = episodes.divide(batch.y.numpy(), known, tasks, rng)
    return Batch(batch.x[rows], batch.y[rows], batch.weights[rows] * torch.from_numpy(parts))


def outputs(*kinds: Any, **more: Any) -> Outputs:
    return Outputs(tuple(Target(f"t{i}", kind, **more) for i, kind in enumerate(kinds)), np.zeros(1), np.ones(1))


def gradient(objective: MAML, network: nn.Module, batch: Any) -> Tensor:
    """The gradient of all weights, side by side."""
    network.zero_grad()
    objective(network, batch, StepState(0, 1, 0)).total.backward()
    return torch.cat([p.grad.flatten() for p in network.parameters()])  # type: ignore[union-attr]


class Flat(nn.Module):
    """A linear layer in double precision."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1).double()

    def forward(self, batch: Batch) -> Tensor:
        return self.layer(batch.x)


class LinearSupport(MAML):
    """The support's loss is linear in the weights of ``Flat``, so that its second derivative is 0."""

    def loss(self, network: Any, weights: Any, batch: Any, task: int, part: int) -> Tensor:
        raw, y = torch.func.functional_call(network, weights, (batch,)), batch.y[:, task : task + 1]
        return (raw - y).square().mean() if part else (raw * y).mean()


def test_first_order_is_exact_where_there_is_nothing_of_second_order() -> None:
    _, network, batch = tiny()
    for make, net, steps in ((MAML, network, 0), (LinearSupport, Flat(), 3)):
        found = []
        for first_order in (True, False):
            objective = make(net, (), outputs("regression"), inner_steps=steps, first_order=first_order)  # type: ignore[arg-type]
            found.append(gradient(objective, net, batch))
        torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-12)
        assert found[0].norm() > 0


def test_a_batch_without_a_task_teaches_nothing() -> None:
    objective, network, batch = tiny(n=1)
    assert objective(network, batch, StepState(0, 1, 0)).count == 0
    assert not gradient(objective, network, batch).any()


def assays(n: int = 60) -> Table:
    """Three assays of two classes, and molecules that no assay or nothing can read."""
    smiles = [*series(n).smiles, "not a molecule"]
    rng = np.random.default_rng(0)
    y = (rng.random((n + 1, 3)) < 0.5).astype(float)
    y[rng.random((n + 1, 3)) < 0.2] = np.nan
    return make_table(smiles, targets=[Target(name, "binary") for name in "abc"], y=y)


@pytest.fixture(scope="module")
def init(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an initialisation."""
    params = {**SIZE, "head_width": 8, "objective.inner_rate": 0.1}
    model = molgraph.pretrain(assays(), targets=["a", "b"], objective="maml", params=params, **RUN)
    return model.save(tmp_path_factory.mktemp("maml") / "init.mgm")


def test_the_file_has_encoder_and_head_and_predicts_no_target(init: Path) -> None:
    assert verify(init).largest_gap == 0
    model = load_model(init)
    assert "an encoder and head pretrained by maml" in repr(model)
    with pytest.raises(UnsupportedError, match="maml"):
        model.predict(["CCO"])
    assert molgraph.embed(init, ["CCO", "xx"]).value.shape == (2, 8)
    parts, arrays = archive.read_archive(init)
    assert [t["name"] for t in parts["method.json"]["meta"]["targets"]] == ["task"]
    assert arrays["network.head.layers.1.weight"].shape == (1, 8)


def test_training_starts_from_encoder_and_head(init: Path) -> None:
    """At a step size of next to nothing all weights stay the file's; its one output is repeated for each target."""
    theirs = weights_of(load_model(init).method)  # type: ignore[arg-type]
    method = GraphMethod(init=str(init), epochs=1, learning_rate=1e-30, batch_size=16).fit(assays())
    for name, value in weights_of(method).items():
        np.testing.assert_allclose(value, np.broadcast_to(theirs[name], value.shape), atol=1e-25, rtol=0)
    assert len(weights_of(method)["head.layers.1.bias"]) == 3 and method.head_width == 8
    (note,) = (note for note in method.notes if "started from" in note)
    assert note.startswith("the encoder dmpnn and the head started from init.mgm (an encoder and head pretrained by")
    numbers = GraphMethod(init=str(init), epochs=1).fit(series(20))
    assert any(note.startswith("the encoder dmpnn started from") for note in numbers.notes), "its head is of classes"
    with pytest.raises(ConflictError, match="head_width is 9"):
        GraphMethod(init=str(init), head_width=9).fit(assays())


def table(*kinds: str) -> Table:
    """A column of each kind."""
    values = {"binary": [0.0, 1.0], "regression": [1.5, 2.5], "multiclass": [0.0, 2.0]}
    targets = [Target(f"t{i}", k, classes=tuple("xyz" * (k == "multiclass"))) for i, k in enumerate(kinds)]  # type: ignore[arg-type]
    return make_table(["C" * i for i in range(1, 21)], targets=targets, y=np.array([values[k] * 10 for k in kinds]).T)


@pytest.mark.parametrize(
    ("data", "options", "error", "words"),
    [
        (table("binary", "regression"), {}, LabelError, r"t0 \(binary\), t1"),
        (table("multiclass"), {}, LabelError, r"t0 \(multiclass\)"),
        (table("binary"), {"model": "gin"}, UnsupportedError, "norm=layer"),
        (table("binary"), {"params": {"objective.inner_rate": 0.0}}, BadValueError, "inner_rate is 0"),
        (table("binary"), {"params": {"objective.rate": 0.1}}, UnknownNameError, "'rate'"),
        (["CCO"] * 20, {}, LabelError, "target"),
        (table("binary"), {"objective": "masked-atoms", "targets": ["t0"]}, UnusedSettingError, "masked-atoms"),
    ],
)
def test_what_cannot_be_a_task_is_one_sentence(
    data: Any, options: dict[str, Any], error: type[MolgraphError], words: str
) -> None:
    with pytest.raises(error, match=words):
        molgraph.pretrain(data, **{"objective": "maml", "epochs": 1, **options})


def test_gin_learns_to_adapt_with_another_norm() -> None:
    params = {"d_hidden": 8, "depth": 2, "norm": "layer"}
    model = molgraph.pretrain(assays(), objective="maml", model="gin", params=params, **RUN)
    assert np.isfinite(model.method.curves["valid_loss"]).all()  # type: ignore[index]


def test_from_assays_to_a_new_assay_at_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = assays()
    assert made.y is not None
    pd.DataFrame({"smiles": made.smiles, **dict(zip("abc", made.y.T, strict=True))}).to_csv("assays.csv", index=False)

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--epochs", "1", "--threads", "1"], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        return done.output

    small = ("-s", "params.d_hidden=8", "-s", "params.objective.inner_steps=2")
    out = run("pretrain", "assays.csv", "-t", "a", "-t", "b", "--objective", "maml", *small, "-o", "init.mgm")
    assert "an encoder and head pretrained by maml: 1 epoch" in out
    out = run(
        "train", "assays.csv", "-t", "c", "--init", "init.mgm", "--no-baseline", "--split", "random", "-o", "c.mgm"
    )
    model = load_model(Path("c.mgm"))
    assert any("and the head started from init.mgm" in note for note in model.card.notes)
    assert "hold molecules whose values init.mgm learnt from" in out
    assert model.predict(["CCO", "xx"]).ok.tolist() == [True, False]
