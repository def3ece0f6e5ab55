"""Translate the poorer half of the molecules scored so far into good ones, in latent space."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.generate.searches.latent import LatentSearch, Points
from molgraph.generate.searches.translation import LatentCycleGAN, Lookahead

COMMAND = "molgraph optimise jtvae-zinc --oracle qed --search cyclegan -o best.csv"


@register(
    "search", "cyclegan", summary="translates poor molecules into good ones, unpaired",
    paper="Zhu et al. 2017, ICCV; Maziarka et al. 2020, J. Cheminf. 12:2",
    systems=(SystemCard(
        "cyclegan", off="sampling", beside=("sampling",), modules=("molgraph.generate.searches.translation",),
        command=COMMAND,
    ), SystemCard(
        "gan", left_out="noise as the start, and a judge of generated molecules; maps of a latent space learn so",
        off="sampling", beside=("sampling",), command=COMMAND,
        modules=("molgraph.generate.searches.translation",), part=True,
    ), SystemCard(
        "lsgan", left_out="other losses beside it; images", off="sampling", beside=("sampling",), command=COMMAND,
        modules=("molgraph.generate.searches.translation",), part=True,
    ), SystemCard(
        "unrolled-gan", left_out="noise as the start; images", off="cyclegan", beside=("cyclegan without unrolling",),
        command=COMMAND.replace("cyclegan", "'cyclegan(unroll=5)'"),
        modules=("molgraph.generate.searches.translation", "molgraph.train.lookahead"),
    ), SystemCard(
        "lola", left_out="games of agents, their policy gradients and the model of an opponent: maps and critics of a "
        "latent space look one step ahead", off="'cyclegan(unroll=1)'", beside=("naive gradients",),
        command=COMMAND.replace("cyclegan", "'cyclegan(unroll=1, lookahead=both)'"),
        modules=("molgraph.generate.searches.translation", "molgraph.train.lookahead"),
    )),
)  # fmt: skip
class CycleGANSearch(LatentSearch):
    """``z -> G(z)``, ``G`` learned from the poorer half of the scored points to the best quarter, learned again later.

    Args:
        initial: points that are scored before translators are learned.
        steps: steps of the translators' training.
        width: width of the translators' layers.
        refit: batches between two trainings.
        memory: of the points told, the latest that they learn from, at most.
        unroll: steps of the critics that the maps look ahead, through which gradients flow.
        lookahead: who looks ahead where ``unroll`` is above 0, the ``maps`` or ``both``, the critics too by one step.
    """

    name = "cyclegan"
    small = MappingProxyType({"initial": 24, "steps": 4, "width": 16})

    def __init__(
        self,
        *,
        initial: Annotated[int, Range(8, 100_000)] = 200,
        steps: Annotated[int, Range(1, 1_000_000)] = 600,
        width: Annotated[int, Range(1, 10_000)] = 128,
        refit: Annotated[int, Range(1, 10_000)] = 5,
        memory: Annotated[int, Range(8, 1_000_000)] = 2_000,
        unroll: Annotated[int, Range(0, 20)] = 0,
        lookahead: Lookahead = "maps",
    ) -> None:
        self.initial, self.steps, self.width, self.refit, self.memory = initial, steps, width, refit, memory
        self.unroll, self.lookahead = unroll, lookahead
        self.learned: LatentCycleGAN | None = None
        self.asked = 0

    def propose(self, n: int, step: int) -> Points:
        """Translated points, each also translated a second time."""
        if not self.informed:
            return self.first(n, step)
        rng = generator(self.seed, "cyclegan", step)
        order = np.argsort(-self.score, kind="stable")
        good, poor = order[: max(len(order) // 4, 2)], order[len(order) // 2 :]
        if self.learned is None or self.asked % self.refit == 0:
            x, y = (self.z[np.sort(rows)[-self.memory :]] for rows in (poor, good))
            seed = derive(self.seed, "translators", step)
            how: dict[str, Any] = {"unroll": self.unroll, "lookahead": self.lookahead}
            self.learned = LatentCycleGAN(width=self.width, steps=self.steps, seed=seed, **how).fit(x, y)
        self.asked += 1
        rows = np.append(rng.choice(poor, n), rng.choice(good, n))
        begin = self.z[rows] + 0.2 * rng.standard_normal((len(rows), self.d_latent))
        begin = np.vstack([begin, self.places]) if len(self.places) else begin
        once = self.learned.translate(begin)
        z = self.within(np.vstack([once, self.learned.translate(once)]))
        return Points(z, self.learned.belongs(z))
