"""Mixout: the moments of its weights, its expected loss by enumeration, and what it brings on few rows."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn

from molgraph.train.callback import Callback
from molgraph.train.callbacks.mixout import Mixout, mixed, weights_replaced
from molgraph.train.objective import StepState
from tests.systems.effect import Effect
from tests.tiny import same_bits, weights_of
from tests.train.test_fine_tuning import HalfSquares, Rows, TwoLayers, fit, start, tuned

__all__ = ["start"]  # a fixture


@pytest.mark.system("mixout", rung="exact")
def test_the_weights_have_the_mean_and_the_variance_of_the_paper(off: str) -> None:
    torch.manual_seed(0)
    w, u, p, n = torch.randn(6), torch.randn(6), 0.0 if off else 0.7, 10_000
    drawn = torch.stack([mixed(w, u, p) for _ in range(n)])
    variance = 0.7 / 0.3 * (w - u).square()
    assert ((drawn.mean(0) - w).abs() <= 4 * (variance / n).sqrt()).all()
    torch.testing.assert_close(drawn.var(0), variance, rtol=0.1, atol=0)
    kept = mixed(w, torch.zeros(6), 0.5)
    assert all(k in (0.0, 2 * v) for k, v in zip(kept.tolist(), w.tolist(), strict=True)), "U = 0 is dropconnect"


@pytest.mark.system("mixout", rung="exact")
def test_the_mean_loss_of_all_masks_is_the_loss_and_a_pull_to_the_start(
    off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``|y - X w|^2 + p / (1 - p) sum_j |X_j|^2 (w_j - u_j)^2``, equation 5's bound, which least squares attains."""
    torch.manual_seed(0)
    p, network = 0.7, TwoLayers(5, 1, head=False).double()
    callback = Mixout(p=0.0 if off else p)
    callback.begin(network)
    u = network.encoder.weight.detach()[0].clone()
    with torch.no_grad():
        network.encoder.weight += torch.randn(1, 5)
    w, rows = network.encoder.weight.detach()[0], Rows(torch.randn(9, 5).double(), torch.randn(9).double())
    batch, state, mean = rows.sample(torch.arange(9).numpy()), StepState(0, 1, 0), 0.0
    for keep in product((False, True), repeat=5):
        draw = 1.0 * torch.tensor([keep])
        monkeypatch.setattr(torch, "rand_like", lambda value, draw=draw: draw.to(value.dtype))
        share = p ** (5 - sum(keep)) * (1 - p) ** sum(keep)
        mean += share * 2 * callback.loss(HalfSquares(), network, batch, state).total.item()
    plain = (rows.y - rows.x @ w).square().sum().item()
    pull = p / (1 - p) * (rows.x.square().sum(0) * (w - u).square()).sum().item()
    assert mean == pytest.approx(plain + pull, abs=1e-8 * plain)


@pytest.mark.system("mixout", rung="exact")
def test_validation_and_predictions_read_the_weights_that_learn(start: str, off: str) -> None:
    plain, zero, on = (tuned(start, each) for each in (None, "mixout(p=0)", "mixout(p=0)" if off else "mixout"))
    assert same_bits(weights_of(plain), weights_of(zero)) and not same_bits(weights_of(plain), weights_of(on))
    network, before = on.ready().network, weights_of(on)
    callback = Mixout()
    network.started = frozenset(name for name, _ in network.named_parameters())
    callback.begin(network)
    seen = []

    def objective(network: nn.Module, batch: None, state: StepState) -> None:
        seen.append(weights_of(on))

    callback.loss(objective, network, None, StepState(0, 1, 0, training=False))  # type: ignore[arg-type]
    assert same_bits(seen[0], before) and same_bits(weights_of(on), before)
    with weights_replaced(network, {"encoder.eps": torch.zeros(())}):
        assert network.encoder.eps.ndim == 0
    assert [name for name, _ in network.named_parameters()] == [name for name in before if name in network.started]
    assert same_bits(weights_of(on), before)


@pytest.mark.system("mixout", rung="works")
def test_it_errs_less_than_plain_fine_tuning_on_few_noisy_rows(off: str, effect: Effect) -> None:
    """Features of 30 dimensions that the start nearly has, 40 noisy rows; dropconnect is mixout with a start of 0."""
    ratios, dropped = [], []
    for seed in range(5):
        torch.manual_seed(seed)
        truth, network = TwoLayers(30, 8), TwoLayers(30, 8)
        with torch.no_grad():
            truth.encoder.weight.copy_(torch.linalg.qr(torch.randn(30, 8)).Q.T)
            truth.head.weight.normal_()
            network.encoder.weight.copy_(truth.encoder.weight + 0.05 * torch.randn(8, 30))
            network.head.weight.copy_(truth.head.weight)
        x, elsewhere = torch.randn(40, 30), torch.randn(1000, 30)
        rows = Rows(x, truth(x)[:, 0].detach() + torch.randn(40))
        first, errors = {k: v.clone() for k, v in network.state_dict().items()}, []
        dropconnect = Mixout()
        for callbacks in ([] if off else [Mixout()], list[Callback](), [dropconnect]):
            network.load_state_dict(first)
            for callback in callbacks:
                callback.begin(network)
            if callbacks == [dropconnect]:
                dropconnect.start_0.zero_()  # type: ignore[operator]
            how = {"optimizer": "adam", "learning_rate": 0.01, "batch_size": 10}
            fit(network, HalfSquares(), rows, callbacks, epochs=60, **how)
            errors.append((network(elsewhere) - truth(elsewhere)).square().mean().item())
        ratios.append(errors[0] / errors[1])
        dropped.append(errors[2] / errors[1])
    effect("squared error / that of plain fine-tuning", ratios, at_most=0.7, beside={"dropconnect": dropped})
