"""Transforms of one value: sigmoids, ramps, steps, windows and Gaussians."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Annotated

import numpy as np

from molgraph.base.errors import ConflictError
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.generate.transforms.transform import Transform

ENDS = math.log(99.0)  # a logistic curve is 0.01 and 0.99 at its argument's -ENDS and ENDS


def logistic(x: np.ndarray) -> np.ndarray:
    """``1 / (1 + exp(-x))`` without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


class Between(Transform):
    """The base class of transforms that change between two values.

    Args:
        low, high: the values, ``low`` below ``high``.
    """

    small = MappingProxyType({"low": 1.0, "high": 3.0})

    def __init__(self, low: float, high: float) -> None:
        if not low < high:
            words = f"{type(self).__name__} from {low:g} to {high:g} has no range"
            raise ConflictError(words, hint="write the lower value first")
        self.low, self.high = low, high

    @property
    def span(self) -> tuple[float, float]:
        """The two values."""
        return self.low, self.high

    def share(self, value: np.ndarray) -> np.ndarray:
        """``(value - low) / (high - low)``."""
        return (value - self.low) / (self.high - self.low)


@register("transform", "sigmoid", summary="S-curve: 0.01 at low, 0.5 in the middle, 0.99 at high",
          paper="Derringer and Suich 1980, J. Qual. Technol. 12:214")  # fmt: skip
class Sigmoid(Between):
    """``1 / (1 + exp(-2 ln(99) (x - (low + high) / 2) / (high - low)))``: higher is better."""

    def desirability(self, value: np.ndarray) -> np.ndarray:
        """The logistic curve of the values."""
        return logistic(ENDS * (2.0 * self.share(value) - 1.0))


@register("transform", "reverse_sigmoid", summary="S-curve: 0.99 at low, 0.5 in the middle, 0.01 at high")
class ReverseSigmoid(Between):
    """``1 - sigmoid(low, high)``: lower is better."""

    def desirability(self, value: np.ndarray) -> np.ndarray:
        """The falling logistic curve of the values."""
        return logistic(ENDS * (1.0 - 2.0 * self.share(value)))


@register("transform", "ramp", summary="0 up to low, 1 from high on, straight between them",
          paper="Derringer and Suich 1980, J. Qual. Technol. 12:214")  # fmt: skip
class Ramp(Between):
    """``(x - low) / (high - low)``, at least 0 and at most 1: higher is better."""

    def desirability(self, value: np.ndarray) -> np.ndarray:
        """The straight line of the values."""
        return np.asarray(np.clip(self.share(value), 0.0, 1.0))


@register("transform", "reverse_ramp", summary="1 up to low, 0 from high on, straight between them")
class ReverseRamp(Between):
    """``1 - ramp(low, high)``: lower is better."""

    def desirability(self, value: np.ndarray) -> np.ndarray:
        """The falling straight line of the values."""
        return np.asarray(1.0 - np.clip(self.share(value), 0.0, 1.0))


@register("transform", "window", summary="1 from low to high, falling outside over a soft edge")
class Window(Between):
    """``1`` from ``low`` to ``high``; outside ``exp(-(d / edge)^2)`` of the distance ``d`` from the nearer end.

    Args:
        low, high: the values of the window, both within it.
        edge: the distance at which 0.37 is left, half the window's width if not given; 0 for a hard edge, which gives
            a search nothing to climb.
    """

    def __init__(self, low: float, high: float, edge: NotNegative | None = None) -> None:
        super().__init__(low, high)
        self.edge = (high - low) / 2 if edge is None else edge

    @property
    def span(self) -> tuple[float, float]:
        """The window with both its edges."""
        return self.low - 2 * self.edge, self.high + 2 * self.edge

    def desirability(self, value: np.ndarray) -> np.ndarray:
        """1 within, and what is left of it outside."""
        distance = np.maximum(np.maximum(self.low - value, value - self.high), 0.0)
        return np.exp(-((distance / self.edge) ** 2)) if self.edge else (distance == 0).astype(np.float64)


@register("transform", "gaussian", summary="1 at the centre, falling by a normal curve",
          paper="Brown et al. 2019, J. Chem. Inf. Model. 59:1096")  # fmt: skip
class Gaussian(Transform):
    """``exp(-((x - centre) / width)^2 / 2)``.

    Args:
        centre: the best value.
        width: the standard deviation of the curve.
    """

    small = MappingProxyType({"centre": 2.0, "width": 1.0})

    def __init__(self, centre: float, width: Annotated[float, Range(0.0, 1e12, above=True)]) -> None:
        self.centre, self.width = centre, width

    @property
    def span(self) -> tuple[float, float]:
        """Three standard deviations on both sides."""
        return self.centre - 3 * self.width, self.centre + 3 * self.width

    def desirability(self, value: np.ndarray) -> np.ndarray:
        """The normal curve of the values, 1 at its top."""
        return np.exp(-0.5 * ((value - self.centre) / self.width) ** 2)


@register("transform", "step", summary="0 below a value, 1 from it on")
class Step(Transform):
    """``1`` where ``x >= at``, else 0.

    Args:
        at: the value.
    """

    small = MappingProxyType({"at": 2.0})

    def __init__(self, at: float) -> None:
        self.at = at

    @property
    def span(self) -> tuple[float, float]:
        """The value."""
        return self.at, self.at

    def desirability(self, value: np.ndarray) -> np.ndarray:
        """Whether each value reaches it."""
        return (value >= self.at).astype(np.float64)


@register("transform", "reverse_step", summary="1 up to a value, 0 above it")
class ReverseStep(Step):
    """``1`` where ``x <= at``, else 0.

    Args:
        at: the value.
    """

    def desirability(self, value: np.ndarray) -> np.ndarray:
        """Whether each value stays at or below it."""
        return (value <= self.at).astype(np.float64)
