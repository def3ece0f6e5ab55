"""Genetic-GFN: train a language model on its best molecules and on children that are bred from them."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.ranges import Count, NotNegative, Range, Share
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.generate.searches.graph_ga import breed
from molgraph.generate.searches.reinvent import Memory, Reinvent
from molgraph.generate.searches.written import Written


class RankedMemory(Memory):
    """The best texts so far, drawn with chances by their ranks: ``1 / (k n + rank)`` (Tripp et al. 2020, equation 2).

    Args:
        size: texts that are kept.
        k: small for the best alone, large for all alike.
    """

    def __init__(self, size: int, k: float) -> None:
        super().__init__(size)
        self.k = k

    def chances(self) -> tuple[list[Written], np.ndarray]:
        """The texts, the best first, and the chance of each."""
        every = sorted(self.best.values(), key=lambda one: -one.reward)
        chance = 1.0 / (self.k * len(every) + np.arange(len(every)))
        return every, chance / chance.sum()

    def draw(self, n: int, rng: np.random.Generator) -> list[Written]:
        """``n`` texts, the same several times where it falls so."""
        every, chance = self.chances()
        return [every[row] for row in rng.choice(len(every), n, p=chance).tolist()]


@register("search", "genetic-gfn", summary="a language model that learns from its own and from bred molecules",
          paper="Kim et al. 2024, NeurIPS")  # fmt: skip
class GeneticGFN(Reinvent):
    """``(log Z + log p(x) - beta S(x))^2`` on texts of a memory by rank, to which genetic operators add children.

    Kim et al. 2024, algorithm 1: each batch is the model's draws and, as its share ``children``, crossings and
    mutations of the memory's molecules (``graph-ga``); then ``passes`` steps are made on batches of the memory. The
    loss holds of any text (trajectory balance), so that children teach as draws do. Other than in the paper, children
    are bred of the memory once a batch, not over several generations.

    Args:
        beta: nats of a score of 1.
        kl: weight of the distance from the prior.
        children: share of a batch that is bred.
        passes: steps after each batch.
        memory: texts that are kept.
        rank: of the chances of the memory's texts, ``k``.
        mutation_rate: share of the children of two parents that are mutated.
        learning_rate: step size of Adam.
    """

    name = "genetic-gfn"
    small = MappingProxyType({"memory": 32, "passes": 2})

    def __init__(
        self,
        *,
        beta: Annotated[float, Range(0.0, 1e6)] = 50.0,
        kl: NotNegative = 0.001,
        children: Share = 0.25,
        passes: Count = 8,
        memory: Count = 1024,
        rank: Annotated[float, Range(0.0, 1e3, above=True)] = 0.01,
        mutation_rate: Annotated[float, Range(0.0, 1.0)] = 0.5,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 5e-4,
    ) -> None:
        how = f"trajectory-balance(beta={beta!r}, kl={kl!r})"
        super().__init__(estimator=how, memory=memory, learning_rate=learning_rate)
        self.beta, self.children, self.passes, self.rank = beta, children, passes, rank
        self.mutation_rate = mutation_rate

    best: RankedMemory

    def new_memory(self) -> RankedMemory:
        """An empty memory, by rank."""
        return RankedMemory(self.memory, self.rank)

    def write(self, n: int, step: int) -> list[str]:
        """Draws of the model, and children of the memory."""
        children = self.bred(round(self.children * n), step)
        return [*super().write(n - len(children), step), *children]

    def bred(self, n: int, step: int) -> list[str]:
        """``n`` children at most of the memory's molecules."""
        every, chance = self.best.chances() if self.best else ([], np.zeros(0))
        texts = self.agent.texts([one.codes for one in every])
        parents = dict[str, float]()
        for text, share in zip(texts, chance.tolist(), strict=True):
            parents[text] = parents.get(text, 0.0) + share
        if n < 1 or len(parents) < 2:
            return []
        rng = generator(self.seed, "children", step)
        how: dict[str, Any] = {"mutation_rate": self.mutation_rate, "standardiser": self.standardiser}
        children, kept = [*breed(parents, n, rng, **how)], self.agent.constraint
        return children if kept is None else [text for text in children if kept.scaffold.is_in(text)]

    def learn(self, told: Sequence[Written], step: int) -> None:
        """Steps on batches of the memory."""
        self.best.add([one for one in told if one.reward > 0])
        if not self.best:
            return
        for turn in range(self.passes):
            again = self.best.draw(self.batch_size, generator(self.seed, "replay", step, turn))
            self.descend(self.loss(self.episodes(again)))
