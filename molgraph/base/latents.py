"""Hold the latent vectors of molecules, with a reason for each molecule that has none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from molgraph.base.seeds import generator


@dataclass(frozen=True)
class Latents:
    """Molecules as points of a generator's latent space, a row for each molecule, in order.

    Args:
        mean: float [n, d], the mean of each molecule's posterior; NaN where it has none.
        log_variance: float [n, d], the logarithm of its variance; NaN where it has none.
        reason: object [n], why a molecule has none; empty where it has one.
    """

    mean: np.ndarray
    log_variance: np.ndarray
    reason: np.ndarray

    @property
    def ok(self) -> np.ndarray:
        """bool [n], whether each molecule has a point."""
        return self.reason == ""

    def draw(self, seed: int = 0) -> np.ndarray:
        """float [n, d]: one point of each posterior."""
        noise = generator(seed, "posterior").standard_normal(self.mean.shape)
        return self.mean + np.exp(0.5 * self.log_variance) * noise
