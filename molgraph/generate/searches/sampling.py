"""Sample the prior, or the surroundings of the starting molecules: the control of every other search."""

from __future__ import annotations

from molgraph.base.registry import register
from molgraph.generate.searches.search import Proposals, Search


@register("search", "sampling", summary="draws without learning: the control of other searches")
class Sampling(Search):
    """Points of the prior, or of normal distributions around the starts."""

    name = "sampling"

    def ask(self, n: int, step: int) -> Proposals:
        """The next points, whatever was told."""
        return self.first(n, step)
