"""REINVENT: reinforcement learning of a language model near its prior, with replay of the best molecules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.generate.searches.policy import PolicySearch
from molgraph.generate.searches.search import Proposals
from molgraph.generate.searches.written import Written


class Memory:
    """The best texts so far, each once, from which batches are drawn.

    Args:
        size: texts that are kept.
    """

    def __init__(self, size: int) -> None:
        self.size, self.best = size, dict[tuple[int, ...], Written]()

    def __len__(self) -> int:
        return len(self.best)

    def renew(self, rewarded: Callable[[Sequence[Written]], Sequence[Written]]) -> None:
        """Bring the rewards of all texts to the range of the scores as it is now."""
        self.best = dict(zip(self.best, rewarded([*self.best.values()]), strict=True))

    def add(self, told: Sequence[Written]) -> None:
        """Keep texts, the best of all."""
        self.best.update({tuple(one.codes): one for one in told})
        if len(self.best) > self.size:
            kept = sorted(self.best.items(), key=lambda item: -item[1].reward)[: self.size]
            self.best = dict(kept)

    def draw(self, n: int, rng: np.random.Generator) -> list[Written]:
        """``n`` different texts at most, with chances by their rewards."""
        every = [*self.best.values()]
        chance = np.array([one.reward for one in every]) + 1e-6
        chosen = rng.choice(len(every), min(n, len(every)), replace=False, p=chance / chance.sum())
        return [every[row] for row in sorted(chosen.tolist())]


@register(
    "search",
    "reinvent",
    summary="reinforcement learning of a language model that stays near its prior, with replay",
    paper="Olivecrona et al. 2017, J. Cheminform. 9:48; Blaschke et al. 2020, J. Chem. Inf. Model. 60:5918",
    systems=(
        SystemCard(
            "reinvent",
            left_out="filters by other than scaffolds, and the scoring server",
            off="policy(estimator='augmented(sigma=0)')",
            beside=("the prior's draws",),
            command="molgraph optimise prior --search reinvent --objective qed -o found.csv",
            modules=("molgraph.generate.searches.policy", "molgraph.generate.estimators.augmented"),
        ),
        SystemCard(
            "replay-as-a-non-parametric-model",
            left_out="a surrogate in the place of the oracle; its error on what it selects is measured by the check",
            off="reinvent(replay=0)",
            beside=("no replay", "a forest's error on the molecules that it selects"),
            command="molgraph optimise prior --search 'reinvent(replay=24)' --objective qed -o found.csv",
            modules=("molgraph.generate.searches.policy",),
        ),
    ),
)
class Reinvent(PolicySearch):
    """``(log p_prior(x) + sigma S(x) - log p(x))^2`` on each batch, beside ``replay`` of the best texts so far.

    Olivecrona et al. 2017 with the replay and the settings of Gao et al. 2022 (PMO). Starts and known molecules enter
    the memory first (inception). ``--reward scaffold-filter`` is the diversity filter.

    Args:
        sigma: nats that a score of 1 adds to the prior's log-likelihood.
        replay: texts of the memory that each step learns from beside those of the batch.
        memory: texts that are kept.
        learning_rate: step size of Adam.
        estimator: another loss in the place of the augmented likelihood.
    """

    name = "reinvent"
    small = MappingProxyType({"replay": 4, "memory": 8})

    def __init__(
        self,
        *,
        sigma: Annotated[float, Range(0.0, 1e6)] = 500.0,
        replay: Annotated[int, Range(0, 10_000)] = 24,
        memory: Count = 100,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 5e-4,
        estimator: str = "",
    ) -> None:
        super().__init__(estimator=estimator or f"augmented(sigma={sigma!r})", learning_rate=learning_rate)
        self.sigma, self.replay, self.memory = sigma, replay, memory

    def begin(self, generator: Any = None, **how: Any) -> None:
        """As ``Search.begin``."""
        self.best = self.new_memory()
        super().begin(generator, **how)

    def new_memory(self) -> Memory:
        """An empty memory."""
        return Memory(self.memory)

    def forget(self) -> None:
        """Empty the memory too."""
        self.best = self.new_memory()
        super().forget()

    def ask(self, n: int, step: int) -> Proposals:
        """As ``LanguageSearch.ask``, with the memory's rewards in the range of the scores as it is now."""
        self.best.renew(self.rewarded)
        return super().ask(n, step)

    def learn(self, told: Sequence[Written], step: int) -> None:
        """A step on the batch and on texts of the memory."""
        again = self.best.draw(self.replay, generator(self.seed, "replay", step)) if self.replay and self.best else []
        self.best.add(told)
        super().learn([*told, *again], step)
