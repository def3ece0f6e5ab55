"""Domain score: the Tanimoto distance to the nearest training molecule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

import numpy as np

from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.chem.tanimoto import find_nearest
from molgraph.trust.domains.domain import BITS, Domain, Prints


@register("domain", "nearest", summary="Tanimoto distance to the nearest training molecule")
class NearestDistance(Domain):
    """``1 - max_i T(x, x_i)`` with the Tanimoto similarity T of Morgan fingerprints: the row that others are beside.

    The fingerprints of the training molecules stand in the model file, a quarter of a kilobyte each.

    Args:
        most: training molecules that are kept, drawn at random where there are more.
    """

    learns = ("bits",)

    def __init__(self, *, most: Annotated[int, Range(1, LARGEST)] = 50_000) -> None:
        self.most = most
        self.bits: Prints = np.zeros((0, BITS), np.uint8)

    def fit(self, x: Prints) -> Self:
        """Keep the molecules."""
        kept = np.unique(x, axis=0)
        if len(kept) > self.most:
            kept = kept[np.sort(generator(self.seed, "nearest").choice(len(kept), self.most, replace=False))]
        self.bits = kept
        return self

    def score(self, x: Prints) -> np.ndarray:
        """The distances, 0 to 1."""
        return 1 - find_nearest(x, self.bits).similarity

    def state(self) -> dict[str, np.ndarray]:
        """The fingerprints, eight bits a byte."""
        return {"bits": np.packbits(self.bits, axis=1)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """As ``Domain.restore``."""
        packed = arrays["bits"]
        if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] * 8 != BITS or not len(packed):
            raise ValueError(f"fingerprints are bytes [n, {BITS // 8}], not {packed.dtype} {packed.shape}")
        self.bits = np.unpackbits(packed, axis=1)
        return self
