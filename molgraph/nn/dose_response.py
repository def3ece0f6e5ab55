"""The Hill curve of dose and response, differentiable by its parameters."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

STEEPEST = 1.5  # decimal logarithm of a slope: a step, as far as doses of a dilution series can tell


def hill_curve(x: Float[Tensor, " p"], parameters: Float[Tensor, "p 4"]) -> Float[Tensor, " p"]:
    """``bottom + (top - bottom) / (1 + 10^(slope (log10 EC50 - x)))``.

    Hill 1910, J. Physiol. 40. The slope is at most 10^1.5.

    Args:
        x: decimal logarithms of concentrations.
        parameters: log10 EC50, log10 slope, top and bottom of each point's curve.

    Example:
        >>> hill_curve(torch.tensor([0.0]), torch.tensor([[0.0, 0.0, 100.0, 20.0]]))
        tensor([60.])
    """
    log_ec50, log_slope, top, bottom = parameters.unbind(1)
    slope = (math.log(10) * log_slope.clamp(max=STEEPEST)).exp()
    return bottom + (top - bottom) * torch.sigmoid(math.log(10) * slope * (x - log_ec50))
