"""Define ``Transform``: a function from the value of an oracle to a desirability from 0 to 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from molgraph.base.errors import BadValueError
from molgraph.base.parts import read_part, settings_of
from molgraph.base.registry import get


class Transform(ABC):
    """The base class of transforms: ``transform(value) -> desirability``, where higher is better.

    A transform acts on each value alone, so that scores can be cached. A subclass is registered with
    ``@register("transform", name)``; its parameters are the constructor's, which may be written without names:
    ``window(2, 4)``.

    ``span``: the values between which it changes, for its picture. ``small``: parameters for trials. ``text``: as a
    person wrote it.
    """

    text: str = ""
    small: Mapping[str, Any] = MappingProxyType({})

    @property
    @abstractmethod
    def span(self) -> tuple[float, float]:
        """The lowest and the highest value of the range in which it changes."""

    @abstractmethod
    def desirability(self, value: np.ndarray) -> np.ndarray:
        """float64 [n], from 0 to 1, of float64 [n] finite values."""

    def __call__(self, value: np.ndarray) -> np.ndarray:
        """float64 [n], from 0 to 1; NaN where there is no value."""
        x = np.asarray(value, dtype=np.float64)
        out, known = np.full(x.shape, np.nan), np.isfinite(x)
        out[known] = self.desirability(x[known])
        return out


def make_transform(text: str) -> Transform:
    """A registered transform by its name and values.

    Raises:
        UsageError: no such transform, or values that it cannot have.

    Example:
        >>> make_transform("window(2, 4, edge=0)")(np.array([1.0, 2.0, 3.0, np.nan])).tolist()
        [0.0, 1.0, 1.0, nan]
    """
    part = read_part(text, "transform")
    cls = get("transform", part.name)
    settings = settings_of(cls, part)
    try:
        transform: Transform = cls(**settings)
    except TypeError:
        words = f"the transform {text!r} lacks a value"
        raise BadValueError(words, hint=f"molgraph models {part.name} lists its parameters") from None
    transform.text = text.strip()
    return transform
