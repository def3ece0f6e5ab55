"""Fine-tuning by callbacks: the papers' identities, phases that freeze to the bit, and weight decay by groups."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import molgraph
from molgraph.base.errors import UsageError
from molgraph.base.recipe_keys import GradientDescent
from molgraph.train.callback import Callback, make_callbacks
from molgraph.train.callbacks.l2_sp import L2SP
from molgraph.train.callbacks.lp_ft import LPFT
from molgraph.train.engine import Fit, Learned, Learner, TrainingConfig
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.phases import Timeline, decay_groups
from molgraph.train.runtime import make_fabric
from tests.tiny import same_bits, series, small, weights_of

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


def test_l2_sp_of_a_linear_model_is_ridge_regression_towards_the_start() -> None:
    """``w0 + (X'X + aI)^-1 X'(y - X w0)``, where the loss is a mean over n rows and so ``a = n alpha``."""
    torch.manual_seed(0)
    x, y, network = torch.randn(40, 4), torch.randn(40), TwoLayers(4, 1, head=False)
    callback = L2SP(alpha=0.3)
    callback.begin(network)
    w0 = network.encoder.weight.detach()[0].double().clone()
    fit(network, HalfSquares(), Rows(x, y), [callback], epochs=40, learning_rate=0.7)
    x, y = x.double(), y.double()
    expected = w0 + torch.linalg.solve(x.T @ x + 40 * 0.3 * torch.eye(4), x.T @ (y - x @ w0))
    torch.testing.assert_close(network.encoder.weight.detach()[0].double(), expected, rtol=0, atol=1e-6)


def test_l2_sp_without_a_gradient_contracts_the_distance_by_its_factor() -> None:
    network, callback = TwoLayers(5, 3), L2SP(alpha=0.5, beta=0.25)
    callback.begin(network)
    start, head = network.encoder.weight.detach().clone(), network.head.weight.detach().clone()
    moved = torch.randn(3, 5)
    with torch.no_grad():
        network.encoder.weight += moved
    moved = network.encoder.weight.detach() - start
    fit(network, Nothing(), Rows(torch.ones(8, 5), torch.ones(8)), [callback], epochs=1, learning_rate=0.2)
    torch.testing.assert_close(network.encoder.weight.detach() - start, (1 - 0.2 * 0.5) * moved)
    torch.testing.assert_close(network.head.weight.detach(), (1 - 0.2 * 0.25) * head)


def test_lp_ft_errs_less_than_full_fine_tuning_where_rows_are_unlike_those_with_labels() -> None:
    """Kumar et al. 2022, section 3: features of 50 dimensions, training rows in 10 to 20 of them."""
    ratios = []
    for seed in range(3):
        torch.manual_seed(seed)
        truth, network = TwoLayers(50, 10), TwoLayers(50, 10)
        with torch.no_grad():  # orthonormal features, which the start has but for a little noise
            truth.encoder.weight.copy_(torch.linalg.qr(torch.randn(50, 10)).Q.T)
            truth.head.weight.normal_()
            network.encoder.weight.copy_(truth.encoder.weight + 0.02 * torch.randn(10, 50))
            network.head.weight.normal_(std=0.3)
        x, elsewhere = torch.randn(100, 20) @ torch.randn(20, 50), torch.randn(1000, 50)
        x /= x.std()
        rows, first = Rows(x, truth(x)[:, 0].detach()), {k: v.clone() for k, v in network.state_dict().items()}
        errors = []
        for callbacks in ([LPFT()], list[Callback]()):
            network.load_state_dict(first)
            how = {"optimizer": "adam", "schedule": "cosine", "learning_rate": 0.02, "batch_size": 25}
            fit(network, HalfSquares(), rows, callbacks, epochs=60, **how)
            errors.append((network(elsewhere) - truth(elsewhere)).square().mean().item())
        ratios.append(errors[0] / errors[1])
    assert max(ratios) <= 0.5, ratios


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


def test_a_probe_leaves_encoder_and_buffers_to_the_bit(start: str) -> None:
    before = encoder_of(molgraph.load(start).method)
    assert any("running_mean" in name for name in before)
    for how in ({}, {"weight_decay": 0.1, "optimizer": "adamw"}, {"optimizer": "sgd"}):
        names = ("lp-ft(share=1)", "lp-ft", None)
        probe, both, plain = (tuned(start, name, valid=False, **how) for name in names)
        assert same_bits(encoder_of(probe), before)
        assert probe.curves["train_loss"].iloc[-1] < probe.curves["train_loss"].iloc[0], "the head learns"
        moved = [{k for k, v in encoder_of(m).items() if not np.array_equal(v, before[k])} for m in (both, plain)]
        assert moved[0] == moved[1] and any("running_mean" in name for name in moved[0]), "all learn in the end"


def test_l2_sp_of_weight_0_is_plain_training_and_its_penalty_is_a_column(start: str) -> None:
    plain, off, on = (tuned(start, name) for name in (None, "l2-sp(alpha=0, beta=0)", "l2-sp(alpha=1)"))
    assert same_bits(weights_of(plain), weights_of(off)) and not same_bits(weights_of(plain), weights_of(on))
    assert set(on.curves) - set(plain.curves) == {"train_l2_sp"}, "a validation part is judged without it"
    assert plain.curves["valid_loss"].tolist() == off.curves["valid_loss"].tolist()
    before = encoder_of(molgraph.load(start).method)
    far = [
        sum(np.square(encoder_of(m)[k] - before[k]).sum() for k in before if "running" not in k) for m in (on, plain)
    ]
    assert far[0] < far[1]


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
        with pytest.raises(UsageError):
            small(callback=callback).fit(series(16))
        with pytest.raises(UsageError):
            molgraph.train_generator(series(16), callback=callback, epochs=1)
    for wrong in ("lp-ft(share=0)", "lpft", "l2-sp(gamma=1)", "l2-sp++"):
        with pytest.raises(UsageError):
            small(callback=wrong, init=start).check()
    with pytest.raises(UsageError, match="copy"):
        tuned(start, "l2-sp", objective="mean-teacher")
    with pytest.raises(UsageError, match="head"):
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


def test_weight_decay_pulls_no_bias_norm_or_embedding() -> None:
    class Parts(nn.Module):
        started = frozenset[str]()

        def __init__(self) -> None:
            super().__init__()
            self.table, self.norm, self.layer = nn.Embedding(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)
            nn.init.ones_(self.norm.bias)
            self.prepare = lambda batch: None

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.norm(self.table(x.long()[:, 0])))

    for optimizer in ("adamw", "sgd"):
        network = Parts()
        before = {name: value.detach().clone() for name, value in network.named_parameters()}
        rows = Rows(torch.zeros(4, 1), torch.zeros(4))
        fit(network, Nothing(), rows, [], epochs=3, learning_rate=0.1, weight_decay=0.5, optimizer=optimizer)
        changed = [name for name, value in network.named_parameters() if not torch.equal(value, before[name])]
        assert changed == ["layer.weight"] and network.layer.weight.norm() < before["layer.weight"].norm()
    values = list(network.parameters())
    assert decay_groups(iter(values), network, 0.0) == values, "one list, as without groups"


def test_callbacks_of_a_recipe_and_of_the_shell_are_those_of_python(start: str, tmp_path: Path) -> None:
    result = molgraph.finetune(
        start, series(48), callback="lp-ft+l2-sp(alpha=1)", epochs=2, baseline=False, split="random"
    )
    loaded = molgraph.load(result.model.save(tmp_path / "tuned.mgm"))
    assert loaded.method.callback == "lp-ft+l2-sp(alpha=1)" and "train_l2_sp" in loaded.method.curves
    assert [type(each) for each in make_callbacks(loaded.method.callback)] == [LPFT, L2SP]
