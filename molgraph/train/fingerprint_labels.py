"""Morgan fingerprints of molecules as labels, for objectives that compare molecules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from molgraph.chem.fingerprints import morgan
from molgraph.train.row_labels import RowLabels


class FingerprintLabels(RowLabels):
    """The bits of Morgan environments of radius 2.

    Args:
        bits: columns.
    """

    def __init__(self, bits: int = 1024) -> None:
        self.width, self.name = bits, f"fingerprints{bits}"

    def fit(self, texts: Sequence[str], workers: int) -> None:
        """Nothing is fitted."""

    def make(self, texts: Sequence[str], workers: int) -> np.ndarray:
        """float16 [n, bits] of 0 and 1."""
        return np.asarray(morgan(texts, n_bits=self.width).x, np.float16)


def tanimoto(bits: Tensor) -> Tensor:
    """float [n, n]: the Tanimoto similarity of each two rows of 0 and 1; 0 of two without any bit.

    Example:
        >>> import torch
        >>> tanimoto(torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
        tensor([[1.0000, 0.5000],
                [0.5000, 1.0000]])
    """
    shared, size = bits @ bits.T, bits.sum(dim=1)
    return shared / (size[:, None] + size[None] - shared).clamp(min=1)
