"""Define ``Reward``: a term that changes the scores that a search is told, such as a bonus for novelty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from molgraph.base.contracts import Generator
from molgraph.base.parts import read_parts, settings_of
from molgraph.base.registry import get
from molgraph.base.seeds import derive


class Reward(ABC):
    """The base class of reward terms: ``adjust(smiles, score) -> score`` as the search is to see it.

    Every search takes them; the scores that are kept, counted and printed stay the oracle's. A subclass is registered
    with ``@register("reward", name)``; its hyper-parameters are keyword arguments. It may learn inside ``adjust``, from
    the molecules in their order alone, so that a run that was stopped goes on as it was.

    ``scale``: a typical difference between the scores of two molecules, the unit in which bonuses count.
    ``examples``: the starts and the known molecules of the search. ``small``: parameters for trials.
    """

    scale: float = 1.0
    small: Mapping[str, Any] = MappingProxyType({})

    def begin(
        self, generator: Generator | None, *, scale: float = 1.0, seed: int = 0, examples: Sequence[str] = ()
    ) -> None:
        """Set what a search begins with: its generator, the unit of bonuses, the seed, and molecules that are named."""
        self.generator, self.scale, self.seed, self.examples = generator, scale, derive(seed, "reward"), list(examples)

    @abstractmethod
    def adjust(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """float64 [n]: the scores of n molecules as the search is told them.

        Args:
            smiles: canonical; molecules that were scored before come again.
            score: float64 [n], those of the terms before it, or the oracle's; NaN where there is none, which stays.
        """


def make_rewards(names: str | None) -> list[Reward]:
    """Registered reward terms by their names, such as ``scaffold-filter+rnd(0.1)``, in order.

    Raises:
        UsageError: no such term, or a value that a setting cannot have.
    """
    rewards = []
    for part in read_parts(names, "reward") if names else ():
        cls = get("reward", part.name)
        rewards.append(cls(**settings_of(cls, part)))
    return rewards
