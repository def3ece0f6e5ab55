"""Fine-tuning by callbacks: the papers' identities, phases that freeze to the bit, and weight decay by groups."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, MissingOptionError, UnknownNameError, UnsupportedError
from molgraph.base.recipe_keys import GradientDescent
from molgraph.nn.head import Head
from molgraph.train.callback import Callback, make_callbacks
from molgraph.train.callbacks.l2_sp import L2SP
from molgraph.train.callbacks.lp_ft import LPFT
from molgraph.train.engine import Fit, Learned, Learner, TrainingConfig
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.phases import Timeline
from molgraph.train.ridge_probe import RidgeProbe
from molgraph.train.runtime import make_fabric
from tests.tiny import series, small, weights_of

PLAIN = {"optimizer": "sgd(momentum=0, nesterov=false)", "schedule": "constant", "warmup_epochs": 0.0}


class TwoLayers(nn.Module):
    """A linear encoder that starts from elsewhere, and a linear head."""

    started = frozenset({"encoder.weight"})

    def __init__(self, d_in: int, d: int, head: bool = True) -> None:
        super().__init__()
        self.encoder = nn.Linear(d_in, d, bias=False)
        self.head = nn.Linear(d, 1, bias=False) if head else nn.Identity()

    def prepare(self, batch: Any) -> None: ...

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x))


class Rows:
    """Rows with a label each, as a part of a fit."""

    views = ()

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def sample(self, rows: np.ndarray, views: None = None) -> Any:
        batch = SimpleNamespace(x=self.x[rows], y=self.y[rows])
        batch.to = lambda device: batch
        return batch


class HalfSquares(Objective):
    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        return Loss((network(batch.x)[:, 0] - batch.y).square().sum() / 2, len(batch.x))


class Nothing(Objective):
    """A gradient of 0 for every weight."""

    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        return Loss(0.0 * network(batch.x).sum(), len(batch.x))


def fit(network: Any, objective: Objective, rows: Rows, callbacks: list[Callback], **how: Any) -> Learned:
    settings = {**PLAIN, "batch_size": len(rows), "patience": None, "gradient_clip": None, **how}
    plan = TrainingConfig(GradientDescent(**settings), 0, 0.0, None, {})
    train: Any = rows
    return Fit(train, None, plan)(make_fabric("cpu", "float32"), Learner(network, objective, callbacks))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An encoder with batch norm."""
    how = {"epochs": 1, "threads": 1, "params": {"d_hidden": 8}}
    return str(molgraph.pretrain(series(32), model="gin", **how).save(tmp_path_factory.mktemp("gin") / "gin.mgm"))


def tuned(start: str, callback: str | None, *, valid: bool = True, **params: Any) -> Any:
    how = {"encoder": "gin", "params": {}, "epochs": 4, "threads": 1, "init": start, "callback": callback}
    return small(**{**how, **params}).fit(series(32), series(16, 100) if valid else None)


def encoder_of(method: Any) -> dict[str, np.ndarray]:
    return {k: v for k, v in weights_of(method).items() if k.startswith("encoder.")}


def test_every_phase_is_trained_and_the_best_epoch_of_all_is_kept(start: str) -> None:
    """Patience of one epoch ends no phase but the last."""
    for rate in (1.0, 1e-6):
        method = tuned(start, f"lp-ft(share=0.4, rate={rate})", epochs=20, patience=1, learning_rate=0.03)
        curves = method.curves
        assert 8 < len(curves) <= 20
        assert method.best_epoch == curves["valid_loss"].to_numpy().argmin() + 1
        assert curves["learning_rate"].iloc[7] < curves["learning_rate"].iloc[0], "the schedule's end"
        assert curves["learning_rate"].iloc[8] == pytest.approx(rate * curves["learning_rate"].iloc[0], rel=0.2)


def test_callbacks_that_have_nothing_to_hold_on_to_are_refused(start: str) -> None:
    for callback in ("l2-sp", "lp-ft"):
        with pytest.raises(MissingOptionError, match=callback):
            small(callback=callback).fit(series(16))
        with pytest.raises(MissingOptionError, match=callback):
            molgraph.train_generator(series(16), callback=callback, epochs=1)
    for wrong, words in (("lp-ft(share=0)", "share is 0"), ("l2-sp++", "l2-sp++")):
        with pytest.raises(BadValueError, match=re.escape(words)):
            small(callback=wrong, init=start).check()
    for wrong, words in (("lpft", "'lpft'"), ("l2-sp(gamma=1)", "'gamma'")):
        with pytest.raises(UnknownNameError, match=words):
            small(callback=wrong, init=start).check()
    with pytest.raises(UnsupportedError, match="copy"):
        tuned(start, "l2-sp", objective="mean-teacher")
    with pytest.raises(UnsupportedError, match="head"):
        tuned(start, "lp-ft", objective="infograph")


def test_phases_of_several_callbacks_train_what_all_of_them_train() -> None:
    network, how = TwoLayers(2, 2), GradientDescent(epochs=10, warmup_epochs=0, schedule="constant", learning_rate=1.0)
    callbacks = [LPFT(share=0.3), LPFT(share=0.6, rate=0.5)]
    timeline = Timeline(network, callbacks, how, 1)
    encoder = frozenset({"encoder.weight"})
    assert [tuple(span) for span in timeline.spans] == [(0, 3, encoder, 1), (3, 6, encoder, 1), (6, 10, set(), 0.5)]
    assert [timeline.rate(step) for step in (0, 5, 6, 9)] == [1, 1, 0.5, 0.5] and timeline.last == 6
    seen = []
    for epoch in (0, 6, 3):
        network.train()
        timeline.enter(epoch)
        seen.append((network.encoder.weight.requires_grad, network.encoder.training, network.head.training))
    assert seen == [(False, False, True), (True, True, True), (False, False, True)]
    timeline.leave()
    assert network.encoder.weight.requires_grad


def test_callbacks_of_a_recipe_and_of_the_shell_are_those_of_python(start: str, tmp_path: Path) -> None:
    result = molgraph.finetune(
        start, series(48), callback="lp-ft+l2-sp(alpha=1)", epochs=2, baseline=False, split="random"
    )
    loaded = molgraph.load(result.model.save(tmp_path / "tuned.mgm"))
    assert loaded.method.callback == "lp-ft+l2-sp(alpha=1)" and "train_l2_sp" in loaded.method.curves
    assert [type(each) for each in make_callbacks(loaded.method.callback)] == [LPFT, L2SP]


def test_a_ridge_probe_solves_for_the_last_layer_and_leaves_columns_without_labels() -> None:
    rng = torch.Generator().manual_seed(0)
    targets = (Target("a"), Target("b", "binary"), Target("c"))
    head, x = Head(6, targets, n_layers=1), torch.randn(200, 6, generator=rng)
    y = torch.stack([3 * x[:, 0] - x[:, 1] + 5, (x[:, 2] > 0).float(), torch.zeros(200)], dim=1)
    weights = torch.ones(200, 3)
    weights[:, 2] = 0
    weights[100:, 0], y[100:, 0] = 0, 99.0  # without a label
    before = head.layers[-1].weight[2].clone()
    probe = RidgeProbe(head)
    for rows in (slice(0, 90), slice(90, 200)):
        head(x[rows])
        probe.add(y[rows], weights[rows])
    probe.close()
    probe.solve()
    raw = head(x).detach()
    assert (raw[:100, 0] - y[:100, 0]).abs().mean() < 0.5 and ((raw[:, 1] > 0) == (y[:, 1] > 0)).float().mean() > 0.9
    assert torch.equal(before, head.layers[-1].weight[2])


def test_the_probe_of_lp_ft_can_be_a_ridge_regression(start: str) -> None:
    """Of a head that gradients hardly move; off: the probe by gradients, which learns nothing at this rate."""
    errors = []
    for probe in ("ridge", "gradient"):
        method = tuned(start, f"lp-ft(share=0.9, probe={probe})", epochs=4, learning_rate=1e-6, head_layers=1)
        table = series(32)
        errors.append(float(np.square(method.predict(table).value - table.y).mean() / np.var(table.y)))
    assert errors[0] < 0.8 * errors[1]


def test_lp_ft_can_keep_a_mean_of_the_weights_before_and_after(start: str) -> None:
    """Off, with a mix of 1, all weights are those after fine-tuning; near 0 the encoder is that of the start."""
    mixes = (1e-6, 0.25, 1.0)
    before, mean, after = (
        weights_of(tuned(start, f"lp-ft(mix={mix})", valid=False, learning_rate=0.1)) for mix in mixes
    )
    encoder = {k: v for k, v in encoder_of(molgraph.load(start).method).items() if v.dtype.kind == "f"}
    for name, value in mean.items():
        assert np.allclose(value, 0.75 * before[name] + 0.25 * after[name], atol=1e-5), name
    assert all(np.allclose(before[name], value, atol=1e-3) for name, value in encoder.items())
    assert any(not np.allclose(after[name], value, atol=1e-2) for name, value in encoder.items())
