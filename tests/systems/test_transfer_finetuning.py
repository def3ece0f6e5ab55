"""Fine-tuning by callbacks: the papers' identities, phases that freeze to the bit, and their effect."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import molgraph
from molgraph.train.callback import Callback
from molgraph.train.callbacks.l2_sp import L2SP
from molgraph.train.callbacks.lp_ft import LPFT
from tests.systems.effect import Effect
from tests.tiny import same_bits, weights_of
from tests.train.test_fine_tuning import HalfSquares, Nothing, Rows, TwoLayers, encoder_of, fit, start, tuned

__all__ = ["start"]  # a fixture


@pytest.mark.system("l2-sp", rung="exact")
def test_l2_sp_of_a_linear_model_is_ridge_regression_towards_the_start(off: str) -> None:
    """``w0 + (X'X + aI)^-1 X'(y - X w0)``, where the loss is a mean over n rows and so ``a = n alpha``."""
    torch.manual_seed(0)
    x, y, network = torch.randn(40, 4), torch.randn(40), TwoLayers(4, 1, head=False)
    callback = L2SP(alpha=0.0 if off else 0.3)
    callback.begin(network)
    w0 = network.encoder.weight.detach()[0].double().clone()
    fit(network, HalfSquares(), Rows(x, y), [callback], epochs=40, learning_rate=0.7)
    x, y = x.double(), y.double()
    expected = w0 + torch.linalg.solve(x.T @ x + 40 * 0.3 * torch.eye(4), x.T @ (y - x @ w0))
    torch.testing.assert_close(network.encoder.weight.detach()[0].double(), expected, rtol=0, atol=1e-6)


@pytest.mark.system("l2-sp", rung="exact")
def test_l2_sp_without_a_gradient_contracts_the_distance_by_its_factor(off: str) -> None:
    network, callback = TwoLayers(5, 3), L2SP(alpha=0.0, beta=0.0) if off else L2SP(alpha=0.5, beta=0.25)
    callback.begin(network)
    start, head = network.encoder.weight.detach().clone(), network.head.weight.detach().clone()
    moved = torch.randn(3, 5)
    with torch.no_grad():
        network.encoder.weight += moved
    moved = network.encoder.weight.detach() - start
    fit(network, Nothing(), Rows(torch.ones(8, 5), torch.ones(8)), [callback], epochs=1, learning_rate=0.2)
    torch.testing.assert_close(network.encoder.weight.detach() - start, (1 - 0.2 * 0.5) * moved)
    torch.testing.assert_close(network.head.weight.detach(), (1 - 0.2 * 0.25) * head)


@pytest.mark.system("lp-ft", rung="works")
def test_it_errs_less_than_full_fine_tuning_where_rows_are_unlike_those_with_labels(off: str, effect: Effect) -> None:
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
        for callbacks in ([] if off else [LPFT()], list[Callback]()):
            network.load_state_dict(first)
            how = {"optimizer": "adam", "schedule": "cosine", "learning_rate": 0.02, "batch_size": 25}
            fit(network, HalfSquares(), rows, callbacks, epochs=60, **how)
            errors.append((network(elsewhere) - truth(elsewhere)).square().mean().item())
        ratios.append(errors[0] / errors[1])
    effect("squared error elsewhere / that of all weights at once", ratios, at_most=0.5)


@pytest.mark.system("lp-ft", rung="exact")
def test_a_probe_leaves_encoder_and_buffers_to_the_bit(start: str, off: str) -> None:
    before = encoder_of(molgraph.load(start).method)
    assert any("running_mean" in name for name in before)
    for how in ({}, {"weight_decay": 0.1, "optimizer": "adamw"}, {"optimizer": "sgd"}):
        names = (None if off else "lp-ft(share=1)", "lp-ft", None)
        probe, both, plain = (tuned(start, name, valid=False, **how) for name in names)
        assert same_bits(encoder_of(probe), before)
        assert probe.curves["train_loss"].iloc[-1] < probe.curves["train_loss"].iloc[0], "the head learns"
        moved = [{k for k, v in encoder_of(m).items() if not np.array_equal(v, before[k])} for m in (both, plain)]
        apart = {name for name in moved[0] ^ moved[1] if not name.endswith("bias")}  # before a norm it has no gradient
        assert not apart and any("running_mean" in name for name in moved[0]), "all learn in the end"


@pytest.mark.system("l2-sp", rung="exact")
def test_l2_sp_of_weight_0_is_plain_training_and_its_penalty_is_a_column(start: str, off: str) -> None:
    plain, zero, on = (
        tuned(start, each) for each in (None, "l2-sp(alpha=0, beta=0)", None if off else "l2-sp(alpha=1)")
    )
    assert same_bits(weights_of(plain), weights_of(zero)) and not same_bits(weights_of(plain), weights_of(on))
    assert set(on.curves) - set(plain.curves) == {"train_l2_sp"}, "a validation part is judged without it"
    assert plain.curves["valid_loss"].tolist() == zero.curves["valid_loss"].tolist()
    before = encoder_of(molgraph.load(start).method)
    far = [
        sum(np.square(encoder_of(m)[k] - before[k]).sum() for k in before if "running" not in k) for m in (on, plain)
    ]
    assert far[0] < far[1]
