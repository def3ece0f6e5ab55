"""Replace the ReLUs of a network by softplus while an explanation is computed (beta smoothing)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

RELUS = {torch.relu, torch.relu_, Tensor.relu, Tensor.relu_, F.relu, F.relu_}
LEAKY = {F.leaky_relu, F.leaky_relu_}


class SoftplusForReLU(TorchFunctionMode):
    """Inside, each ReLU of any network, module or function, is ``log(1 + exp(beta z)) / beta``.

    Dombrowski et al. 2019, "Explanations can be manipulated and geometry is to blame", equation 9. No weight changes.
    A leaky ReLU of slope a is ``a z + (1 - a) softplus(z)``; ReLU6 is a difference of two.

    Args:
        beta: above 0; the larger, the nearer to ReLU.

    Example:
        >>> with SoftplusForReLU(1.0):
        ...     round(torch.nn.ReLU()(torch.zeros(1)).item(), 4), round(torch.zeros(1).relu().item(), 4)
        (0.6931, 0.6931)
    """

    def __init__(self, beta: float) -> None:
        super().__init__()
        self.beta = beta

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """The function itself, unless it is a ReLU."""
        options = kwargs or {}
        x: Any = args[0] if args else options.get("input")
        if func in RELUS:
            return F.softplus(x, self.beta)
        if func is F.relu6:
            return F.softplus(x, self.beta) - F.softplus(x - 6, self.beta)
        if func in LEAKY:
            slope = args[1] if len(args) > 1 else options.get("negative_slope", 0.01)
            return slope * x + (1 - slope) * F.softplus(x, self.beta)
        return func(*args, **options)


def smoothed(beta: float) -> AbstractContextManager[Any]:
    """Softplus in the place of ReLUs; nothing is changed where beta is 0."""
    return SoftplusForReLU(beta) if beta > 0 else nullcontext()
