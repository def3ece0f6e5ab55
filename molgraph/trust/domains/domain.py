"""Define ``Domain``, the base class of scores that say how far a molecule is from the training molecules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from jaxtyping import UInt8

from molgraph.base.parts import read_parts, settings_of
from molgraph.base.registry import get

BITS = 2048
Prints = UInt8[np.ndarray, "n 2048"]


class Domain(ABC):
    """The base class of domain scores, registered with ``@register("domain", name)``; settings are keyword arguments.

    ``learns``: names of the arrays that ``fit`` learns, which are ``learned`` and kept in the model file. ``seed``: of
    whatever is drawn, set by the wrapper that holds it.
    """

    learns: tuple[str, ...] = ()
    small: Mapping[str, Any] = MappingProxyType({})
    seed: int = 0

    @abstractmethod
    def fit(self, x: Prints) -> Self:
        """Learn from the training molecules.

        Args:
            x: uint8 [n, 2048], 0 or 1, Morgan fingerprints of radius 2.
        """

    @abstractmethod
    def score(self, x: Prints) -> np.ndarray:
        """float64 [n], greater for molecules that are farther from the training molecules."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """The arrays of ``learns``."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """Take arrays of ``state`` back; raises ``ValueError`` or ``RuntimeError`` where a shape cannot be."""


def make_domains(text: str, seed: int = 0) -> dict[str, Domain]:
    """The domain scores of a text such as ``nearest+rnd(width=64)``, by name.

    Raises:
        UsageError: no such score or setting.

    Example:
        >>> [*make_domains("nearest+rnd(width=64)")]
        ['nearest', 'rnd']
    """
    made: dict[str, Domain] = {}
    for part in read_parts(text, "domain"):
        cls = get("domain", part.name)
        made[part.name] = cls(**settings_of(cls, part))
        made[part.name].seed = seed
    return made
