"""Sample without learning: the control of every other search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from molgraph.base.contracts import Generator, LatentGenerator
from molgraph.base.registry import register
from molgraph.generate.searches.latent import LatentSearch, Points
from molgraph.generate.searches.search import Proposals, Search


@register("search", "sampling", summary="draws without learning: the control of other searches")
class Sampling(LatentSearch):
    """Points of the prior, or of normal distributions around the starts; without a latent space plain draws."""

    name = "sampling"

    def begin(self, generator: Generator | None = None, **how: Any) -> None:
        """As ``Search.begin``, with any generator or none."""
        self.latent = isinstance(generator, LatentGenerator)
        (LatentSearch if self.latent else Search).begin(self, generator, **how)

    def propose(self, n: int, step: int) -> Points:
        """The next points, whatever was told."""
        return self.first(n, step)

    def ask(self, n: int, step: int) -> Proposals:
        """The next draws, whatever was told."""
        return super().ask(n, step) if self.latent else Proposals(self.draws(n, step), np.zeros(n))

    def ask_wider(self, n: int, step: int, idle: int, outside: bool) -> Proposals:
        """The same."""
        return (LatentSearch if self.latent else Search).ask_wider(self, n, step, idle, outside)

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Keep the points' scores, from which it learns nothing."""
        if self.latent:
            super().tell(smiles, score)
