"""Stochastic gradient Langevin dynamics: samples of the density exp(-E) by steps along the gradient of an energy."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def langevin(
    energy: Callable[[Tensor], Tensor], x: Float[Tensor, "n d"], steps: int, step: float, noise: float
) -> Float[Tensor, "n d"]:
    """``x <- x - step / 2 dE/dx + N(0, noise^2)``, so often; with ``noise^2 = step`` and small steps x is of exp(-E).

    Welling and Teh 2011, ICML; Grathwohl et al. 2020, equation 2. Grathwohl's ``step=1, noise=0.01`` samples a colder
    density.

    Args:
        energy: of float [n, d] to float [n].
        x: where the chains begin.
        steps: of each chain.
        step: times half the gradient.
        noise: standard deviation of the noise of a step.
    """
    for _ in range(steps):
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(energy(x).sum(), x)
        x = x.detach() - step / 2 * slope + noise * torch.randn_like(x)
    return x.detach()
