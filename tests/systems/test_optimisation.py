"""Optimisers: weight decay apart from the gradient, rectified Adam, and steps of a limited length."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.base.errors import MolgraphError
from molgraph.data.read import read_table
from molgraph.train.method import GraphMethod
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.optimizers import make_optimizer
from molgraph.train.phases import decay_groups
from molgraph.train.runtime import Interrupted
from molgraph.train.smoothness import AutoClip
from tests.systems.effect import Effect
from tests.tiny import same_bits, series, small, weights_of
from tests.train.test_fine_tuning import HalfSquares, Nothing, Rows, TwoLayers, fit


@pytest.mark.system("adamw-sgdw", rung="exact", twins=("adam", "every"))
def test_weight_decay_pulls_no_bias_norm_or_embedding(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Parts(nn.Module):
        started = frozenset[str]()

        def __init__(self) -> None:
            super().__init__()
            self.table, self.norm, self.layer = nn.Embedding(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)
            nn.init.ones_(self.norm.bias)
            self.prepare = lambda batch: None

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.norm(self.table(x.long()[:, 0])))

    if off == "every":
        monkeypatch.setattr("molgraph.train.engine.decay_groups", lambda values, *_: list(values))
    for optimizer in ("adam" if off == "adam" else "adamw", "sgd", "sgdw"):
        network = Parts()
        before = {name: value.detach().clone() for name, value in network.named_parameters()}
        rows = Rows(torch.zeros(4, 1), torch.zeros(4))
        fit(network, Nothing(), rows, [], epochs=3, learning_rate=0.1, weight_decay=0.5, optimizer=optimizer)
        changed = [name for name, value in network.named_parameters() if not torch.equal(value, before[name])]
        assert changed == ["layer.weight"] and network.layer.weight.norm() < before["layer.weight"].norm()
        if optimizer != "sgd":  # without a gradient, nothing else moves them, and no momentum has the decay in it
            torch.testing.assert_close(network.layer.weight.detach(), (1 - 0.1 * 0.5) ** 3 * before["layer.weight"])
    values = list(network.parameters())
    assert decay_groups(iter(values), network, 0.0) == values, "one list, as without groups"


class Fourth(Objective):
    """``w^4``, whose gradient no one constant bounds."""

    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        return Loss(network(batch.x).pow(4).sum(), len(batch.x))


@pytest.mark.system("smoothness-clipped-gd", rung="exact")
def test_a_step_is_no_longer_than_the_limit_and_short_ones_are_as_they_were(off: str) -> None:
    """``w - lr min(1, c / |g|) g`` with ``g = 4 w^3``."""
    for w, expected in ((0.1, 0.1 - 0.1 * 0.004), (10.0, 10.0 - 0.1 * 2.0)):
        network = TwoLayers(1, 1, head=False)
        nn.init.constant_(network.encoder.weight, w)
        how = {"gradient_clip": None if off else 2.0, "learning_rate": 0.1}
        fit(network, Fourth(), Rows(torch.ones(1, 1), torch.ones(1)), [], epochs=1, **how)
        assert network.encoder.weight.item() == pytest.approx(expected, abs=1e-5)


def path(name: str, steps: int, rate: float, decay: float, scales: tuple[float, ...] = (1.0, 1.0)) -> Tensor:
    """The weights after so many steps down ``sum_i s_i (w_i - 1)^2 / 2`` from (3, -2)."""
    w, s = nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64)), torch.tensor(scales, dtype=torch.float64)
    optimizer = make_optimizer(name, [w], rate, decay)
    for _ in range(steps):
        optimizer.zero_grad()
        (s * (w - 1).square()).sum().div(2).backward()
        optimizer.step()
    return w.detach()


@pytest.mark.system("adamw-sgdw", rung="exact", twins=("adam",))
def test_decay_is_a_penalty_for_plain_gradient_descent_and_not_for_adam(off: str) -> None:
    """Loshchilov and Hutter 2019, propositions 1 and 2; without decay all is as it was, to the bit."""
    plain = "(momentum=0, nesterov=false)"
    torch.testing.assert_close(
        path(f"sgdw{plain}", 50, 0.1, 0.3), path(f"sgd{plain}", 50, 0.1, 0.3), rtol=0, atol=1e-15
    )
    apart = path("adamw" if not off else "adam", 100, 0.05, 0.1, (100.0, 1.0))
    assert (apart - path("adam", 100, 0.05, 0.1, (100.0, 1.0))).abs().max() > 1e-3
    for one, other in (("adamw", "adam"), ("sgdw", "sgd")):
        assert torch.equal(path(one, 20, 0.1, 0.0), path(other, 20, 0.1, 0.0))
    assert (path("sgdw", 20, 0.1, 0.3) - path("sgd", 20, 0.1, 0.3)).abs().max() > 1e-3, "momentum has no decay in it"


@pytest.mark.system("radam", rung="exact", twins=("adam",))
def test_fifty_steps_are_those_of_the_paper(off: str) -> None:
    """Liu et al. 2020, algorithm 2; as in torch and the authors' code a step is rectified where rho > 5."""
    rate, b1, b2, scales = 0.05, 0.9, 0.999, torch.tensor([100.0, 1.0], dtype=torch.float64)
    w, m, v = torch.tensor([3.0, -2.0], dtype=torch.float64), 0.0, 0.0
    longest = 2 / (1 - b2) - 1
    for t in range(1, 51):
        g = scales * (w - 1)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        rho = longest - 2 * t * b2**t / (1 - b2**t)
        step = m / (1 - b1**t)
        if rho > 5:
            r = math.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho))
            step = step * r * math.sqrt(1 - b2**t) / (v.sqrt() + 1e-8)
        w = w - rate * step
    torch.testing.assert_close(path(off or "radam", 50, rate, 0.0, (100.0, 1.0)), w, rtol=1e-6, atol=1e-6)


@pytest.mark.system("smoothness-clipped-gd", rung="works")
def test_clipped_steps_come_down_where_others_fly_off(off: str, effect: Effect) -> None:
    """``w^4`` from 10 with a rate of 0.1: Zhang et al. 2020, section 1."""
    ends = []
    for start in (10.0, -10.0, 7.0):
        network = TwoLayers(1, 1, head=False)
        nn.init.constant_(network.encoder.weight, start)
        how = {"gradient_clip": None if off else 1.0, "learning_rate": 0.1, "epochs": 300}
        try:
            fit(network, Fourth(), Rows(torch.ones(1, 1), torch.ones(1)), [], **how)
            ends.append(abs(network.encoder.weight.item()))
        except MolgraphError:
            ends.append(1e9)  # the loss is no number any more
    effect("distance from the minimum", ends, at_most=0.2)


@pytest.mark.system("smoothness-clipped-gd", rung="exact")
def test_the_probe_finds_the_top_eigenvalue_of_a_bowl(off: str) -> None:
    """The same at all gradients: L0 within 5%, and L1 below 0.05; of ``w^4`` it grows with the gradient."""
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 1.0, 0.5])
    top = float(torch.linalg.eigvalsh(x.T @ x / 40)[-1])
    network, probe = TwoLayers(3, 1, head=False), AutoClip()
    y = x @ torch.tensor([1.0, -1.0, 2.0])
    fit(network, HalfSquares(), Rows(x, y), [probe], epochs=30, learning_rate=1.9 / top)
    l0, l1 = (0.0, 1.0) if off else probe.fitted()
    assert abs(l0 / top - 1) < 0.05 and abs(l1) < 0.05
    network, probe = TwoLayers(1, 1, head=False), AutoClip()
    nn.init.constant_(network.encoder.weight, 3.0)
    rows = Rows(torch.ones(1, 1), torch.ones(1))
    fit(network, Fourth(), rows, [probe], epochs=30, learning_rate=0.05, gradient_clip=1.0)
    assert probe.fitted()[1] > 0.2


@pytest.mark.system("smoothness-clipped-gd", rung="exact")
def test_the_limit_is_that_of_the_first_epoch(off: str) -> None:
    """Nine of ten of its norms are below; a probe leaves the training as it is, dropout and batch norm too."""
    how = {"encoder": "gin", "head_dropout": 0.3, "epochs": 3, "threads": 1, "batch_size": 4}
    method = small(**how, gradient_clip=10.0 if off else "auto").fit(series(32))
    curves = method.curves
    assert {"smoothness", "gradient_clip"} <= {*curves}
    assert curves["gradient_clip"].iloc[0] == 10 and curves["gradient_clip"].iloc[1:].nunique() == 1
    assert (curves["smoothness"] > 0).all() and "clipped at a norm" in method.notes[-1]
    plain = small(**{**how, "epochs": 1}).fit(series(32))
    first = small(**{**how, "epochs": 1}, gradient_clip="auto").fit(series(32))
    if curves["gradient_clip"].iloc[1] < 10:
        assert same_bits(weights_of(plain), weights_of(first))


@pytest.mark.system(
    "radam",
    rung="works",
    null="a tie in the 100 steps that a few hundred molecules take: its rectified first steps are short and ask for a "
    "higher rate, and as many rates are good as of Adam, not more",
)
def test_more_learning_rates_are_good_than_of_adam_without_a_warm_up(off: str, effect: Effect) -> None:
    """Share of seven rates from 1e-4 to 0.1 within 10% of the best: Liu et al. 2020, section 5.2."""
    table, shares = read_table("dataset:esol"), dict[str, list[float]]()
    for name in ("adam", "radam"):
        for seed in (3, 4, 5):
            order = np.random.default_rng(seed).permutation(len(table))
            train, valid, test = (table.take(order[a:b]) for a, b in ((0, 300), (300, 400), (400, 600)))
            errors = []
            for rate in np.geomspace(1e-4, 1e-1, 7):
                how = {"optimizer": name, "learning_rate": float(rate), "warmup_epochs": 0, "epochs": 10, "seed": seed}
                how |= {"head_width": 32, "batch_size": 32, "patience": None, "threads": 1}
                method = GraphMethod("gin", {"depth": 2, "d_hidden": 16}, **how).fit(train, valid)
                errors.append(float(np.sqrt(np.nanmean((method.predict(test).value - test.y) ** 2))))
            shares.setdefault(name, []).append(float(np.mean(np.array(errors) <= 1.1 * min(errors))))
    gap = [a - b for a, b in zip(shares["radam"], shares["adam"], strict=True)]
    effect("share of good learning rates less Adam's", gap, at_least=0.001, beside=shares)


def test_a_fit_with_a_limit_of_its_own_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"gradient_clip": "auto", "epochs": 4, "threads": 1, "batch_size": 8, "checkpoint_seconds": 0.0}
    whole, after_step = small(**how).fit(series(24)), AutoClip.after_step
    left = iter(range(5))  # in the middle of the second epoch

    def stopping(self: AutoClip, network: Any, state: StepState) -> None:
        after_step(self, network, state)
        if next(left, None) is None:
            raise Interrupted("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(AutoClip, "after_step", stopping)
        with pytest.raises(Interrupted):
            small(**how).fit(series(24), workdir=tmp_path)
    again = small(**how).fit(series(24), workdir=tmp_path)
    assert same_bits(weights_of(again), weights_of(whole))
    assert [*again.curves["smoothness"]] == [*whole.curves["smoothness"]]
