"""Define ``Domain``, the base class of scores that say how far a molecule is from the training molecules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import UInt8

from molgraph.base.parts import read_parts, settings_of
from molgraph.base.registry import get

BITS = 2048
Prints = UInt8[np.ndarray, "n 2048"]
Reads = Literal["fingerprints", "smiles", "logits"]


class Domain(ABC):
    """The base class of domain scores, registered with ``@register("domain", name)``; settings are keyword arguments.

    ``reads``: what ``x`` is: Morgan ``fingerprints`` of radius 2, uint8 [n, 2048] of 0 and 1; ``smiles``, an object
    array [n] of texts; or the ``logits`` of the wrapped model (``molgraph.trust.logits.Logits``).
    ``learns``: names of the arrays that ``fit`` learns, which are ``learned`` and kept in the model file. ``seed``: of
    whatever is drawn, set by the wrapper that holds it.
    """

    reads: ClassVar[Reads] = "fingerprints"
    learns: tuple[str, ...] = ()
    small: Mapping[str, Any] = MappingProxyType({})
    seed: int = 0

    @abstractmethod
    def fit(self, x: Any) -> Self:
        """Learn from the training molecules.

        Args:
            x: as ``reads`` says.
        """

    @abstractmethod
    def score(self, x: Any) -> np.ndarray:
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
    domains: dict[str, Domain] = {}
    for part in read_parts(text, "domain"):
        cls = get("domain", part.name)
        domains[part.name] = cls(**settings_of(cls, part))
        domains[part.name].seed = seed
    return domains
