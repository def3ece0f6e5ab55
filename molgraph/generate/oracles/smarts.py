"""Score molecules by a substructure: how often a SMARTS pattern matches, or whether it does."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from molgraph.base.registry import register
from molgraph.chem.pattern import check_pattern, count_matches
from molgraph.generate.oracles.oracle import Oracle, Scores


@register("oracle", "smarts", summary="matches of a pattern: smarts([CX3](=O)[NX3])>0, smarts(PATTERN, count=false)")
class Smarts(Oracle):
    """How often a SMARTS pattern matches a molecule, each set of atoms once; with ``count=false`` whether it does.

    Args:
        pattern: the SMARTS.
        count: whether matches are counted; where not, the score is 1 or 0.

    Raises:
        BadValueError: the pattern cannot be read.
    """

    name, step, free = "smarts", 1.0, True
    small = MappingProxyType({"pattern": "[CX4]"})

    def __init__(self, pattern: str, count: bool = True) -> None:
        self.pattern, self.count, self.unit = check_pattern(pattern), count, not count

    def score(self, smiles: Sequence[str]) -> Scores:
        """The matches of each SMILES."""
        counts = count_matches(self.pattern, smiles)
        reason = np.array([error for _, error in counts], dtype=object)
        value = np.array([n if self.count else min(n, 1) for n, _ in counts], dtype=np.float64)
        return Scores(np.where(reason == "", value, np.nan), reason)
