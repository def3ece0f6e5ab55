"""Refine the latent vectors of molecules: ascend to the most likely vector of each, ``argmax_z log p(x, z)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from molgraph.base.contracts import Latents
from molgraph.base.errors import BadValueError
from molgraph.base.progress import bar
from molgraph.data.table import Table
from molgraph.generate.vae_objective import text_nats
from molgraph.generate.vae_texts import vae_texts
from molgraph.nn.variational import standard_normal

TOGETHER = 256  # molecules that are refined at once
FIRST = 0.1  # length of the first step


class Refined(NamedTuple):
    """Latent vectors after refinement.

    Args:
        latents: of each row; the mean is the refined vector, the variance that of the encoder.
        before, after: float64 [n], ``log p(x, z)`` at the encoder's mean and at the refined vector, in nats; NaN where
            a row has no vector.
    """

    latents: Latents
    before: np.ndarray
    after: np.ndarray


def refine_latents(made: Any, table: Table, steps: int) -> Refined:
    """The most likely latent vector of each molecule, from the encoder's mean on.

    After Schimel et al. 2022, "iLQR-VAE: control-based learning of input-driven dynamics", ICLR: the vector that
    ``log p(x|z) + log p(z)`` is greatest at takes the place of the one that a recognition network says, and the
    difference is what that network loses. By gradients of the decoder, where the paper has the iterative regulator of a
    linear system.

    Args:
        made: a sequence VAE.
        table: n molecules.
        steps: evaluations of the gradient.

    Raises:
        UnsupportedError: a generator that has no such likelihood.
    """
    if steps < 1:
        raise BadValueError(f"{steps} steps of refinement", hint="ask for 1 or more")
    texts = vae_texts(made, table)
    start = made.encode(table)
    mean, before, after = start.mean.copy(), *(np.full(len(table), np.nan) for _ in range(2))
    with (
        made.at_work() as (network, _),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.backends.cudnn.flags(enabled=False),  # which has no gradients of a GRU that is not trained
        bar("refining", len(texts.rows)) as line,
    ):
        for begin in range(0, len(texts.rows), TOGETHER):
            rows, piece = texts.rows[begin : begin + TOGETHER], slice(begin, begin + TOGETHER)

            def log_joint(z: Tensor, piece: slice = piece) -> Tensor:
                nats = text_nats(network.decoder, z, texts.given[piece], texts.target[piece])
                return standard_normal(z).log_prob(z) - nats

            first = torch.from_numpy(mean[rows]).float().to(texts.given.device)
            found = ascend(log_joint, first, steps)
            mean[rows], before[rows], after[rows] = (each.double().cpu().numpy() for each in found)
            line.advance(len(rows))
    return Refined(Latents(mean, start.log_variance, start.reason), before, after)


class Ascent(NamedTuple):
    """Points after an ascent, and the values at its start and its end, one a row."""

    z: Tensor
    first: Tensor
    last: Tensor


def ascend(value: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Ascent:
    """Maximise a function of each row by gradient steps, none of which lowers it.

    A step's length is ``s.s / s.y``, of the last step s and the change y of the gradient along it (Barzilai and Borwein
    1988, IMA J. Numer. Anal. 8:141); a step that would lower the value is not taken, and the next is a quarter as long.

    Args:
        value: float [n, d] -> [n].
        start: float [n, d].
        steps: evaluations, beside the first.

    Example:
        >>> found = ascend(lambda z: -(z - 3).square().sum(dim=1), torch.zeros(1, 2), 20)
        >>> found.z.round(decimals=3), found.first
        (tensor([[3., 3.]]), tensor([-18.]))
    """
    z = start
    best, slope = _with_slope(value, z)
    first, rate = best, FIRST / slope.norm(dim=1, keepdim=True).clamp(min=1.0)
    for _ in range(steps):
        step = rate * slope
        here, there = _with_slope(value, z + step)
        taken = (here >= best)[:, None]
        bend = (step * (slope - there)).sum(dim=1, keepdim=True)
        length = step.square().sum(dim=1, keepdim=True)
        longer = torch.where(bend > 0, length / bend.clamp(min=1e-30), 2 * rate).clamp(1e-8, 1e4)
        rate = torch.where(taken, longer, rate / 4)
        z, slope = torch.where(taken, z + step, z), torch.where(taken, there, slope)
        best = torch.where(taken[:, 0], here, best)
    return Ascent(z, first, best)


def _with_slope(value: Callable[[Tensor], Tensor], z: Tensor) -> tuple[Tensor, Tensor]:
    """The value of each row and its gradient."""
    z = z.detach().requires_grad_()
    found = value(z)
    return found.detach(), torch.autograd.grad(found.sum(), z)[0]
