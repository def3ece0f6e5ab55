"""Bases of DimeNet: orthonormal, exact near zero in single precision, and smooth at the cutoff."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import spherical_jn

from molgraph.nn.spherical_basis import RadialBessel, bessel_zeros, smooth_cutoff, spherical_bessel, zonal_harmonics


def quadrature(n: int, low: float, high: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Points and weights of Gauss and Legendre."""
    x, w = np.polynomial.legendre.leggauss(n)
    half = (high - low) / 2
    return torch.from_numpy(half * x + low + half), torch.from_numpy(half * w)


def test_bases_are_orthonormal() -> None:
    """Radial functions under d^2, spherical Bessel functions times harmonics in the ball without its second angle."""
    (x, dx), (a, da) = quadrature(200, 0, 1), quadrature(200, 0, math.pi)
    radial = math.sqrt(2) * RadialBessel(6).double()(x).T
    torch.testing.assert_close(radial * x**2 * dx @ radial.T, torch.eye(6).double(), rtol=0, atol=1e-6)
    bessel, angular = spherical_bessel(x, 7, 6), zonal_harmonics(torch.cos(a), 7)
    both = torch.einsum("lnx,la->lnxa", bessel, angular).flatten(2).flatten(0, 1)
    weight = (x**2 * dx).outer(2 * math.pi * a.sin() * da).flatten()
    torch.testing.assert_close(both * weight @ both.T, torch.eye(42).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_spherical_bessel_functions_are_scipys_down_to_zero(dtype: torch.dtype) -> None:
    x, zeros = np.linspace(0, 1, 301), bessel_zeros(9, 8)
    known = [
        [spherical_jn(n, z * x) * math.sqrt(2) / abs(spherical_jn(n + 1, z)) for z in row]
        for n, row in enumerate(zeros)
    ]
    found = spherical_bessel(torch.from_numpy(x).to(dtype), 9, 8).double()
    torch.testing.assert_close(
        found, torch.tensor(np.array(known)), rtol=0, atol=3e-5 if dtype == torch.float32 else 1e-10
    )


def test_the_cutoff_is_flat_at_its_end() -> None:
    x = torch.tensor([1 - 1e-9, 1 + 1e-9], dtype=torch.float64, requires_grad=True)
    value = smooth_cutoff(x, 6)
    (slope,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    (curve,) = torch.autograd.grad(slope.sum(), x)
    assert max(each.abs().max() for each in (value, slope, curve)) < 1e-5
    assert float(smooth_cutoff(x.detach() * 0, 6)[0]) == 1
