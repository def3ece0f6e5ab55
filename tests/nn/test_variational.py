"""Free bits, active units and extreme variances of Gaussian posteriors."""

from __future__ import annotations

import pytest
import torch

from molgraph.nn.variational import (
    Gaussian,
    active_units,
    bounded,
    elbo,
    gaussian_kl,
)


def test_free_bits_leave_a_dimension_alone_that_uses_few() -> None:
    mean = torch.tensor([[0.1, 2.0], [0.1, 1.0]], requires_grad=True)
    found = elbo(torch.zeros(2), Gaussian(mean, torch.zeros(2, 2)), beta=0.5, free_bits=0.25)
    assert found.elbo.tolist() == pytest.approx([-0.5 * (0.25 + 2.0), -0.5 * (0.25 + 0.5)])
    found.elbo.sum().backward()
    assert mean.grad is not None
    assert mean.grad[:, 0].tolist() == [0, 0] and mean.grad[:, 1].tolist() == pytest.approx([-1.0, -0.5])
    assert found.kl[:, 0].tolist() == pytest.approx([0.005, 0.005]), "reported as it is"


def test_active_units_and_extreme_variances() -> None:
    mean = torch.stack([torch.linspace(-1, 1, 50), torch.full((50,), 3.0), 0.05 * torch.linspace(-1, 1, 50)], dim=1)
    assert active_units(mean).tolist() == [True, False, False]
    wild = Gaussian(torch.zeros(1, 2), bounded(torch.tensor([[1e9, -1e9]])))
    assert gaussian_kl(wild).isfinite().all() and wild.draw(torch.ones(1, 2)).isfinite().all()
