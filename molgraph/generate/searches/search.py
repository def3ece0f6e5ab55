"""Define ``Search``: asks for points of a latent space, and learns from their scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.errors import UsageError
from molgraph.base.optional import how_to_install, missing
from molgraph.base.parameters import check_params
from molgraph.base.parts import read_part, settings_of
from molgraph.base.registry import get
from molgraph.base.seeds import generator

FEWEST = 4  # scores that a model is fitted to
ENOUGH = 10  # known points, from which a search need not score others first


class Proposals(NamedTuple):
    """Points of a latent space that a search would like to see scored.

    Args:
        z: float64 [m, d].
        promise: float64 [m], how good the search takes each to be, in any unit; equal where it cannot tell.
    """

    z: np.ndarray
    promise: np.ndarray


class Search(ABC):
    """The base class of searches over any generator with a latent space.

    ``begin`` once, then ``ask`` and ``tell`` in turn. The same seed and the same scores give the same points: that is
    what lets a run that was stopped go on. A subclass is registered with ``@register("search", name)``; its parameters
    are the constructor's keyword arguments; ``initial`` is one where points are scored before a model is fitted.

    ``needs``: importable names of libraries that molgraph does not install. ``small``: parameters for trials.
    ``z``, ``score``: float64 [n, d] and [n], what it was told; ``starts``: float64 [s, d], where it begins.
    """

    name: str = ""
    needs: tuple[str, ...] = ()
    small: Mapping[str, Any] = MappingProxyType({})
    d_latent: int = 0
    seed: int = 0
    initial: int = 0
    n_known: int = 0

    def begin(
        self,
        d_latent: int,
        starts: np.ndarray | None = None,
        seed: int = 0,
        known: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Set the space, the points to begin at (the prior's without any), and points whose scores are known.

        Raises:
            UsageError: a library that it needs is not installed.
        """
        if lacking := missing(self.needs):
            raise UsageError(f"the search {self.name!r} needs {' and '.join(lacking)}", hint=how_to_install(lacking))
        self.d_latent, self.seed = d_latent, seed
        self.starts = np.zeros((0, d_latent)) if starts is None else np.asarray(starts, dtype=np.float64)
        self.z, self.score = np.zeros((0, d_latent)), np.zeros(0)
        if known is not None:
            self.tell(*known)
        self.n_known = len(self.z)

    def tell(self, z: np.ndarray, score: np.ndarray) -> None:
        """Learn the scores of some points; those without a finite score are passed over."""
        ok = np.isfinite(score)
        self.z, self.score = np.vstack([self.z, z[ok]]), np.append(self.score, score[ok])

    @property
    def informed(self) -> bool:
        """Whether a model can be fitted: some points were known, or ``initial`` ones are scored by now."""
        return (self.n_known >= ENOUGH or len(self.z) >= self.initial) and bool(np.ptp(self.score))

    def fit_into(self, budget: int, n_known: int = 0, *, fixed: bool = False) -> str:
        """Leave two thirds of a small budget to the search: a shorter ``initial``, and a note that says so.

        Args:
            budget: calls.
            n_known: points whose scores are known before the first call.
            fixed: whether ``initial`` was chosen by a person, and stays.
        """
        if n_known >= ENOUGH or self.initial <= budget // 3:
            return ""
        if not fixed:
            self.initial = max(budget // 3, FEWEST)
        if self.initial >= budget:
            return f"a budget of {budget:,} calls is spent before {self.name} learns: this is plain sampling"
        return "" if fixed else f"{self.name} learns after {self.initial:,} calls, a third of the small budget"

    @abstractmethod
    def ask(self, n: int, step: int) -> Proposals:
        """At least ``n`` points to score next; ``step`` counts the calls, from 0."""

    def first(self, n: int, step: int, spread: float = 0.3) -> Proposals:
        """Points to begin with: the starts themselves, then others around them; without starts, points of the prior."""
        noise = generator(self.seed, "first", step).standard_normal((n, self.d_latent))
        if not len(self.starts):
            return Proposals(noise, np.zeros(n))
        rounds, which = np.divmod(np.arange(n), len(self.starts))
        size = np.where((step == 0) & (rounds == 0), 0.0, spread * (1 + rounds % 3))
        return Proposals(self.starts[which] + size[:, None] * noise, np.zeros(n))

    @property
    def target(self) -> np.ndarray:
        """The scores told, the lowest raised to five median deviations under the median, so that none rules a fit."""
        if not len(self.score):
            return self.score
        middle = np.median(self.score)
        deviation = np.median(np.abs(self.score - middle)) or self.score.std()
        return np.maximum(self.score, middle - 5 * deviation)

    def best(self, n: int) -> np.ndarray:
        """float64 [<= n, d]: points told with the highest scores, the best first, one for each score: the molecule of a
        score may have been met at many points."""
        _, first = np.unique(-self.score, return_index=True)
        return self.z[first[:n]]

    def within(self, z: np.ndarray) -> np.ndarray:
        """The points drawn back to the largest distance from the origin at which a molecule was seen."""
        norm = np.linalg.norm(z, axis=1, keepdims=True)
        far = np.linalg.norm(self.z, axis=1).max(initial=float(np.sqrt(self.d_latent)))
        return np.asarray(z * np.minimum(1.0, far / np.maximum(norm, 1e-12)))


def make_search(name: str, **params: Any) -> Search:
    """A registered search.

    Raises:
        UsageError: no such search, or parameters that it does not have.
    """
    part = read_part(name, "search")
    cls = get("search", part.name)
    settings = {**settings_of(cls, part), **params}
    check_params(cls, settings, owner=part.name)
    made: Search = cls(**settings)
    return made
