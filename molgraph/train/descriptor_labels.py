"""Labels of molecules for pretraining: RDKit's 217 descriptors and folded counts of environments, winsorised."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from molgraph.chem.descriptors217 import NAMES_217, descriptors_217
from molgraph.chem.fingerprints import morgan
from molgraph.train.row_labels import RowLabels

TAIL = 0.1  # percent of the molecules at each end, whose values are taken for the next ones
FARTHEST = 6.0  # standard deviations from the mean
LEAST_SPREAD = 0.1  # of a count: that of a column of which one molecule in a hundred has a bit


class DescriptorLabels(RowLabels):
    """Descriptors and counts on the training part's scales.

    A value is brought within the percentiles ``TAIL`` and ``100 - TAIL``, has the mean taken off and is divided by the
    standard deviation, and is brought within ``FARTHEST`` (Burns et al. 2025, winsorised Mordred descriptors). A
    descriptor that does not vary has no value.

    Args:
        bits: columns of the counts of Morgan environments of radius 2; 0 for descriptors alone.
    """

    name = "descriptors"

    def __init__(self, bits: int) -> None:
        self.bits, self.width = bits, len(NAMES_217) + bits
        self.low = self.high = self.mean = self.spread = np.zeros(0)

    def fit(self, texts: Sequence[str], workers: int) -> None:
        """Take percentiles, means and standard deviations."""
        x, n = self._raw(texts, workers), len(NAMES_217)
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a descriptor that no molecule has
            self.low, self.high = np.nanpercentile(x, [TAIL, 100 - TAIL], axis=0)
            self.high[n:] = np.inf  # a count's few high values are the environment
            x = np.clip(x, self.low, self.high)
            self.mean, self.spread = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
        self.spread[:n][~(self.spread[:n] > 1e-9 * np.abs(self.mean[:n]))] = np.nan
        self.spread[n:] = np.maximum(self.spread[n:], LEAST_SPREAD)

    def state(self) -> Sequence[np.ndarray]:
        """The scales."""
        return self.low, self.high, self.mean, self.spread

    def make(self, texts: Sequence[str], workers: int) -> np.ndarray:
        """float16 [n, 217 + bits]."""
        x = (np.clip(self._raw(texts, workers), self.low, self.high) - self.mean) / self.spread
        return np.clip(x, -FARTHEST, FARTHEST).astype(np.float16)

    def _raw(self, texts: Sequence[str], workers: int) -> np.ndarray:
        """float64 [n, 217 + bits]."""
        x = descriptors_217(texts, workers=workers).x.astype(np.float64)
        return np.concatenate([x, morgan(texts, n_bits=self.bits, counts=True).x], axis=1) if self.bits else x
