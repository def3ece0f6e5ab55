"""Bases of DimeNet: radial Bessel functions, spherical Bessel functions and zonal harmonics, smooth at the cutoff."""

from __future__ import annotations

import math
from functools import cache, partial
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn


def smooth_cutoff(x: Float[Tensor, " p"], power: int) -> Float[Tensor, " p"]:
    """``u(x) = 1 - (p+1)(p+2)/2 x^p + p(p+2) x^(p+1) - p(p+1)/2 x^(p+2)`` below 1, and 0 beyond.

    Gasteiger et al. 2020, equation 8. Value, slope and curvature are 0 at 1.

    Args:
        x: distance / cutoff.
        power: p, 1 or more; 6 in the paper.

    Example:
        >>> smooth_cutoff(torch.tensor([0.0, 0.5, 1.0]), 6).tolist()
        [1.0, 0.85546875, 0.0]
    """
    p = power
    a, b, c = -(p + 1) * (p + 2) / 2, p * (p + 2.0), -p * (p + 1) / 2
    return (1 + x.pow(p) * (a + x * (b + c * x))) * (x < 1)


class RadialBessel(nn.Module):
    """``sin(f_n x) / x``, n from 1, with frequencies that are learned and begin at ``n pi``.

    Gasteiger et al. 2020, equation 7, without its factor ``sqrt(2 / c) / c``, which the weights after it take up, as
    in the authors' code. With it the functions are orthonormal on ``0 < d < c`` under the weight ``d^2``.

    Args:
        n_radial: number of functions.
    """

    def __init__(self, n_radial: int) -> None:
        super().__init__()
        self.frequencies = nn.Parameter(math.pi * torch.arange(1, n_radial + 1, dtype=torch.float32))

    def forward(self, x: Float[Tensor, " p"]) -> Float[Tensor, "p n_radial"]:
        """Distances / cutoff above 0, float [p], to [p, n_radial]."""
        return torch.sin(x.unsqueeze(1) * self.frequencies) / x.unsqueeze(1)


@cache
def bessel_zeros(n_spherical: int, n_radial: int) -> np.ndarray:
    """float64 [n_spherical, n_radial]: the first positive zeros ``z_ln`` of the spherical Bessel functions ``j_l``.

    Between two zeros of ``j_l`` lies one of ``j_(l+1)``.

    Example:
        >>> bessel_zeros(2, 2).round(4).tolist()
        [[3.1416, 6.2832], [4.4934, 7.7253]]
    """
    from scipy.optimize import brentq
    from scipy.special import spherical_jn

    zeros = [np.pi * np.arange(1, n_radial + n_spherical)]
    for order in range(1, n_spherical):
        function = partial(spherical_jn, order)
        zeros.append(np.array([brentq(function, a, b, xtol=1e-14) for a, b in pairwise(zeros[-1])]))
    return np.stack([roots[:n_radial] for roots in zeros])


@cache
def _chebyshev(n_spherical: int, n_radial: int) -> np.ndarray:
    """float64 [k, n_spherical * n_radial]: the normalised ``j_l(z_ln x)`` as Chebyshev series on ``0 <= x <= 1``."""
    from scipy.special import spherical_jn

    zeros = bessel_zeros(n_spherical, n_radial)
    most = float(zeros.max())
    terms = int(most / 2 + 8 * most ** (1 / 3)) + 11  # beyond z / 2 coefficients fall faster than any power
    nodes = np.cos(np.pi * (np.arange(terms) + 0.5) / terms)
    values = [
        np.sqrt(2) / abs(spherical_jn(order + 1, z)) * spherical_jn(order, z * (nodes + 1) / 2)
        for order, row in enumerate(zeros)
        for z in row
    ]
    series = np.polynomial.chebyshev.chebvander(nodes, terms - 1).T @ np.stack(values, axis=1) * 2 / terms
    series[0] /= 2
    return series


def spherical_bessel(x: Float[Tensor, " p"], n_spherical: int, n_radial: int) -> Float[Tensor, "l n p"]:
    """``sqrt(2) / |j_(l+1)(z_ln)| j_l(z_ln x)``: orthonormal for each l on ``0 < x < 1`` under the weight ``x^2``.

    Gasteiger et al. 2020, equation 6, without its factor ``c^(-3/2)``. They are sums of Chebyshev polynomials, one
    matrix product for all of them, because the closed forms lose all digits in single precision near 0.

    Args:
        x: distance / cutoff, from 0 to 1.
        n_spherical, n_radial: numbers of orders l, from 0, and of zeros n, from 1.

    Returns:
        float [n_spherical, n_radial, p].

    Example:
        >>> spherical_bessel(torch.tensor([0.0, 1.0]), 2, 1).mul(1000).round().abs().flatten().tolist()
        [4443.0, 0.0, 0.0, 0.0]
    """
    series = torch.as_tensor(_chebyshev(n_spherical, n_radial), dtype=x.dtype, device=x.device)
    t = 2 * x - 1
    terms = [torch.ones_like(t), t]
    while len(terms) < len(series):
        terms.append(2 * t * terms[-1] - terms[-2])
    with torch.autocast(x.device.type, enabled=False):
        return (series.T @ torch.stack(terms)).view(n_spherical, n_radial, -1)


def zonal_harmonics(cosine: Float[Tensor, " t"], n_spherical: int) -> Float[Tensor, "l t"]:
    """``Y_l^0 = sqrt((2 l + 1) / (4 pi)) P_l(cos a)``: orthonormal over the sphere.

    Polynomials of the cosine, so that they and all their derivatives are finite at angles of 0 and 180 degrees.

    Args:
        cosine: of the angles.
        n_spherical: number of orders l, from 0.

    Returns:
        float [n_spherical, t].

    Example:
        >>> zonal_harmonics(torch.tensor([1.0]), 3).square().flatten().mul(4 * math.pi).round().tolist()
        [1.0, 3.0, 5.0]
    """
    p = [torch.ones_like(cosine), cosine]
    for order in range(1, n_spherical - 1):
        p.append(((2 * order + 1) * cosine * p[-1] - order * p[-2]) / (order + 1))
    scales = [math.sqrt((2 * order + 1) / (4 * math.pi)) for order in range(n_spherical)]
    return torch.stack([scale * term for scale, term in zip(scales, p, strict=False)])
