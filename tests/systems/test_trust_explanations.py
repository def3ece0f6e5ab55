"""Beta smoothing: softplus gradients are ReLU gradients under noise, and their maps move less under attack."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from molgraph.explain.fragility import KEPT, fragility
from molgraph.explain.smooth import smoothed
from molgraph.train.method import GraphMethod
from tests.systems.effect import Effect
from tests.tiny import series


@pytest.mark.system("explanation-manipulation-beta-smoothing", rung="exact")
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_a_softplus_gradient_is_the_mean_relu_gradient_under_logistic_noise(off: str, beta: float) -> None:
    """One hidden layer, noise of scale 1 / beta on its sums, 100,000 draws; off: the gradient of ReLU."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1)).double()
    x = torch.randn(8, dtype=torch.float64, requires_grad=True)
    with smoothed(0.0 if off else beta):
        (found,) = torch.autograd.grad(net(x).sum(), x)
    u = torch.rand(100_000, 64, dtype=torch.float64)
    noise = (u / (1 - u)).log() / beta
    on = (net[0](x).detach() + noise > 0).double().mean(0)
    mean = (on * net[2].weight.detach()[0]) @ net[0].weight.detach()
    assert (found - mean).norm() / mean.norm() < 0.01


@cache
def trained(seed: int) -> GraphMethod:
    """A D-MPNN of width 32."""
    how = {"batch_size": 32, "threads": 1, "seed": seed}
    return GraphMethod("dmpnn", {"d_hidden": 32}, epochs=15, **how).fit(series(300))


@pytest.mark.system("explanation-manipulation-beta-smoothing", rung="works")
def test_an_attack_moves_smoothed_maps_less(off: str, effect: Effect) -> None:
    """50 other molecules, equal size of the change, prediction within 0.01 deviations; off: ReLU in both."""
    values, relu, shares = [], [], []
    texts = [str(text) for text in series(50, 400).smiles]
    for seed in (20, 21, 22):
        fitted = trained(seed).ready()
        plain, smooth = (
            fragility(fitted, texts, [0] * 50, 0, beta=beta, size=0.05) for beta in (0.0, 0.0 if off else 1.0)
        )
        assert max(each.answer for each in (*plain, *smooth)) < KEPT
        assert max(each.size for each in (*plain, *smooth)) < 0.0501
        moved, kept = (float(np.mean([each.moved for each in made])) for made in (plain, smooth))
        values.append(kept / moved), relu.append(moved), shares.append(kept)
    effect(
        "1 - rank correlation under attack, with beta 1 as a share of that with ReLU",
        values,
        at_most=0.5,
        beside={"ReLU": relu, "beta 1": shares},
    )
