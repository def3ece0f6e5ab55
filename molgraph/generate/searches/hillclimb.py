"""Hill climbing: train a language model by likelihood on the best molecules that it wrote."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
import torch

from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.generate.searches.policy import LanguageSearch
from molgraph.generate.searches.written import Written


@register(
    "search",
    "hillclimb",
    summary="likelihood of the best molecules so far under a language model; needs no gradient of the reward",
    paper="Brown et al. 2019, J. Chem. Inf. Model. 59:1096; Anthony et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "sampled-best-response-brpi",
            left_out="other players and their values; the past scorers are the run's own reward terms as they change",
            off="hillclimb(best=1.0)",
            beside=("the prior's draws",),
            command="molgraph optimise prior --search hillclimb --objective qed -o found.csv",
            modules=("molgraph.generate.searches.policy",),
        ),
    ),
)
class HillClimb(LanguageSearch):
    """Of every batch the best share is learned: ``- mean log p(x)`` over the ``best n`` texts of highest score.

    The hill climbing of Segler et al. 2018 as Brown et al. 2019 (GuacaMol) run it, which is a sampled best response
    that is distilled (Anthony et al. 2020, section 3): the best of ``1 / best`` candidates in the place of each. With
    ``best=1`` nothing is chosen, and the distribution stays as it is up to noise.

    Reward terms such as a memory of scaffolds change while a search runs, so that one molecule is scored by several
    scorers. ``past`` ranks all texts so far by the mean of the scores that each had: a response to all scorers of the
    past, as in fictitious play. ``last`` ranks the last batch by its last scores.

    Args:
        best: share of a batch that is learned.
        scorers: by which scores, and whether of all batches or of the last.
        passes: steps of gradient descent on each share.
        learning_rate: step size of Adam.
    """

    name = "hillclimb"
    small = MappingProxyType({"passes": 2})

    def __init__(
        self,
        *,
        best: Annotated[float, Range(0.0, 1.0, above=True)] = 0.1,
        scorers: Literal["past", "last"] = "past",
        passes: Count = 4,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 1e-3,
    ) -> None:
        self.best, self.scorers, self.passes, self.learning_rate = best, scorers, passes, learning_rate

    def begin(self, generator: Any = None, **how: Any) -> None:
        """As ``Search.begin``."""
        self.scores: dict[tuple[int, ...], list[float]] = {}
        super().begin(generator, **how)

    def chosen(self, told: Sequence[Written]) -> list[list[int]]:
        """The codes of the texts that are learned: ``best`` of as many as were told, at least one."""
        k = max(1, math.ceil(self.best * len(told) - 1e-9))
        if self.best == 1 or self.scorers == "last":
            order = np.argsort([-one.reward for one in told], kind="stable")[:k]
            return [told[row].codes for row in order]
        for one in told:
            self.scores.setdefault(tuple(one.codes), []).append(one.score if np.isfinite(one.score) else -np.inf)
        mean = {text: float(np.mean(scores)) for text, scores in self.scores.items()}
        return [list(text) for text in sorted(mean, key=lambda text: -mean[text])[:k]]

    def learn(self, told: Sequence[Written], step: int) -> None:
        """Some steps on the chosen texts."""
        codes = self.chosen(told)
        for _ in range(self.passes):
            self.optimizer.zero_grad()
            (-self.agent.tokens(codes).total.mean()).backward()
            torch.nn.utils.clip_grad_norm_(self.agent.network.parameters(), 10.0)
            self.optimizer.step()
