"""SIREN: signals of one size at every depth, slopes that are sines again, and energies learnt from forces alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.data.batch import collate
from molgraph.models.schnet import SchNet
from molgraph.nn.perceptron import Perceptron
from tests.contract.test_encoders import store_of
from tests.systems.effect import Effect

SEEDS = (0, 1, 2)
LOW, HIGH = 0.95, 2.5  # of the distance, in units of sigma
RATES = {"siren": 1e-4, "relu": 1e-3, "silu": 1e-3, "tanh": 1e-3}  # the paper's; else the best of 1e-4, 3e-4, 1e-3


@pytest.mark.system("siren", rung="exact")
def test_signals_have_one_size_at_every_depth(off: str) -> None:
    """Sitzmann et al. 2020, section 3.2: ``w0 (W x + b)`` is standard normal behind every sine."""
    torch.manual_seed(0)
    network = Perceptron(1, 1024, 1, 6, activation="tanh" if off else "siren")
    x, w0 = torch.rand(512, 1) * 2 - 1, 1.0 if off else network.activation.w0
    for i, layer in enumerate(network.layers[:-1]):
        x = layer(x)
        assert not i or 0.85 < w0 * x.std() < 1.1, f"layer {i + 1}"
        x = network.activation(x)
    schnet = SchNet(store_of("schnet").spec, d_hidden=256, activation="shifted_softplus" if off else "siren")
    one, bend, two, _ = schnet.blocks[0].filter
    distances = torch.linspace(0.5, 4.5, 512)
    second = two(bend(one(schnet.basis(distances))))  # the first sine of a filter sees a few Gaussians, of small weight
    assert 0.3 < w0 * second.std() < 1.1


@pytest.mark.system("siren", rung="exact")
def test_its_slope_is_a_siren_again_and_forces_are_exact(off: str) -> None:
    """``dE/dx = W_3 diag(w0 cos(w0 z_2)) W_2 diag(w0 cos(w0 z_1)) W_1``; F = -dE/dr to 1e-6 of central differences."""
    torch.manual_seed(0)
    network = Perceptron(3, 16, 1, 3, activation="silu" if off else "siren").double()
    x, w0 = torch.rand(20, 3, dtype=torch.float64).requires_grad_(), 30.0
    (slope,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    one, two, three = network.layers
    z1 = one(x)
    z2 = two(torch.sin(w0 * z1))
    known = (three.weight * w0 * torch.cos(w0 * z2)) @ two.weight * (w0 * torch.cos(w0 * z1)) @ one.weight
    torch.testing.assert_close(slope, known, rtol=0, atol=1e-9)
    encoder = SchNet(store_of("schnet").spec, d_hidden=8, activation="silu" if off else "siren").double()
    batch = collate(store_of("schnet"), np.array([5]))
    batch = batch.with_level("atom", table=batch["atom"].table.double())
    at = batch["atom"].arrays["position"].double().requires_grad_()

    def energy(positions: Tensor) -> Tensor:
        return encoder(batch.with_level("atom", position=positions)).graphs.sum()

    (force,) = torch.autograd.grad(-energy(at), at)
    for atom, axis in ((0, 0), (2, 1), (4, 2)):
        step = torch.zeros_like(at)
        step[atom, axis] = 1e-5
        difference = (energy(at - step) - energy(at + step)) / 2e-5
        assert abs(force[atom, axis].item() - difference.item()) < 1e-6


def lennard_jones(r: Tensor) -> tuple[Tensor, Tensor]:
    """Force ``-dE/dr`` and second derivative of ``E = 4 (r^-12 - r^-6)``."""
    return 24 * (2 * r**-13 - r**-7), 24 * (26 * r**-14 - 7 * r**-8)


@cache
def learnt_from_forces(activation: str, seed: int) -> tuple[float, float]:
    """The mean absolute error of forces between the points of training, and the correlation of second derivatives."""
    torch.manual_seed(seed)
    network: nn.Module = Perceptron(1, 64, 1, 4, activation=activation)
    middle, half = (LOW + HIGH) / 2, (HIGH - LOW) / 2
    r = torch.linspace(LOW, HIGH, 256, dtype=torch.float64)
    force, _ = lennard_jones(r)
    scale = force.std() / half
    x, y = ((r - middle) / half).float()[:, None].requires_grad_(), (force / scale).float()[:, None]
    optimiser = torch.optim.Adam(network.parameters(), RATES[activation])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 1000)
    for _ in range(1000):
        optimiser.zero_grad()
        (slope,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
        (slope + y).square().mean().backward()
        optimiser.step(), schedule.step()
    network = network.double()
    r = torch.linspace(LOW, HIGH, 1002, dtype=torch.float64)[1:-1]
    x = ((r - middle) / half)[:, None].requires_grad_()
    (slope,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x, allow_unused=True) if activation != "relu" else (x.detach() * 0,)
    force, second = lennard_jones(r)
    error = (-slope[:, 0] * scale - force).abs().mean().item()
    flat = float(bend.std()) == 0  # straight pieces
    return error, 0.0 if flat else float(np.corrcoef(bend[:, 0].numpy(), second.numpy())[0, 1])


@pytest.mark.system("siren", rung="works")
def test_a_lennard_jones_curve_is_learnt_from_forces_alone(off: str, effect: Effect) -> None:
    errors = {name: [learnt_from_forces(name, seed)[0] for seed in SEEDS] for name in RATES}
    own = errors["relu" if off else "siren"]
    ratios = [a / b for a, b in zip(own, errors["relu"], strict=True)]
    effect("error of forces as a share of a relu's", ratios, at_most=0.5, beside=errors)


@pytest.mark.system("siren", rung="works")
def test_its_second_derivative_is_that_of_the_curve(off: str, effect: Effect) -> None:
    found = {name: [learnt_from_forces(name, seed)[1] for seed in SEEDS] for name in RATES}
    effect("correlation of second derivatives", found["relu" if off else "siren"], at_least=0.95, beside=found)
