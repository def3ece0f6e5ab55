"""The gradient of mutual information by spectral Stein scores: of normal variables, and in InfoGraph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from molgraph.nn.stein_scores import mige_loss, stein_score
from tests.systems.contrasts import STEP, made, molecules
from tests.systems.effect import Effect


def of_kernel_density(x: Tensor) -> Tensor:
    """The score of the density that is the mean of the same kernels at all samples."""
    distance = torch.cdist(x, x)
    width = distance.median()
    weights = torch.softmax(-0.5 * (distance / width).square(), dim=1)
    return (weights @ x - x) / width**2


@pytest.mark.system("mige", rung="exact")
def test_the_score_of_normal_samples_is_minus_the_sample(off: str) -> None:
    """Mean squared error below 0.1; off: the score of a kernel density."""
    torch.manual_seed(0)
    x = torch.randn(1000, 2)
    found = of_kernel_density(x) if off else stein_score(x)
    assert (found + x).square().mean() < 0.1


@pytest.mark.system("mige", rung="exact")
def test_the_loss_is_the_mean_over_pairs_and_the_value_that_of_normal_variables(off: str) -> None:
    learns: Any
    learns, network, batch = made("infograph(bound=mige)", molecules()[:24], views=None)
    step = STEP._replace(training=False)
    found = learns(network, batch, step)
    encoded = network.encoder(batch.parts[0].batch, rows=True)
    rows = encoded.rows[0]
    first = [int((rows.graph_of == i).nonzero()[0 if not off else -1]) for i in range(len(encoded.graphs))]
    x, z = rows.h[first] @ learns.mige.of_local, encoded.graphs @ learns.mige.of_global
    x, z = (each / each.std(dim=0).mean() for each in (x, z))
    c = torch.cat([x, z], dim=1).T.cov() + 1e-3 * torch.eye(32)
    known = -0.5 * (c[:16, :16].logdet() + c[16:, 16:].logdet() - c.logdet())
    torch.testing.assert_close(found.total / found.count, known, rtol=1e-3, atol=1e-3)
    weights = [*network.encoder.parameters()]
    gradients = torch.autograd.grad(found.total / found.count, weights, retain_graph=True, allow_unused=True)
    expected = torch.autograd.grad(mige_loss(x, z), weights, allow_unused=True)
    for one, other in zip(gradients, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.system("mige", rung="works")
def test_the_derivative_of_information_of_gaussians_is_the_exact_one(off: str, effect: Effect) -> None:
    """Of five pairs of correlation 0.5, on 1,000 samples: 5 rho / (1 - rho^2). Off: x of other pairs."""
    ratios = []
    for seed in range(5):
        torch.manual_seed(seed)
        x, noise = torch.randn(2, 1000, 5)
        rho = torch.tensor(0.5, requires_grad=True)
        z = rho * x + (1 - rho**2).sqrt() * noise
        (slope,) = torch.autograd.grad(mige_loss(x.roll(1, 0) if off else x, z), rho)
        ratios.append(-float(slope) / (5 * 0.5 / (1 - 0.25)))
    effect("derivative as a share of the exact one", ratios, at_least=0.9, at_most=1.1)
