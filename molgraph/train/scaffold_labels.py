"""Murcko scaffolds of molecules as numbers, and how many pairs of molecules have the same one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.chem.scaffold import scaffolds
from molgraph.train.row_labels import RowLabels

CODES = 1 << 24  # whole numbers that float32 holds


class ScaffoldLabels(RowLabels):
    """One number for each Murcko scaffold, the same for the same scaffold; molecules without rings have one."""

    name, width = "scaffolds", 1

    def fit(self, texts: Sequence[str], workers: int) -> None:
        """Nothing is fitted."""

    def make(self, texts: Sequence[str], workers: int) -> np.ndarray:
        """float32 [n, 1], NaN where a molecule has no scaffold to be found."""
        keys = scaffolds(texts)
        codes = [zlib.crc32(value.encode()) % CODES if not flaw else np.nan for value, flaw in zip(*keys, strict=True)]
        return np.array(codes, np.float32)[:, None]


class ClassPrior(nn.Module):
    """The share of pairs of rows that have the same code, of all batches of training so far; kept in checkpoints."""

    pairs: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pairs", torch.zeros(2, dtype=torch.float64))  # with the same code, and all

    def forward(self, codes: Tensor) -> float:
        """The share, with the pairs of these rows in training."""
        if self.training:
            self.pairs += equal_pairs(codes)
        return float(self.pairs[0] / self.pairs[1].clamp(min=1))


def equal_pairs(codes: Tensor) -> Tensor:
    """float64 [2]: how many pairs of rows have the same code, and how many pairs there are.

    Example:
        >>> equal_pairs(torch.tensor([1.0, 1.0, 2.0]))
        tensor([1., 3.], dtype=torch.float64)
    """
    counts, n = torch.unique(codes, return_counts=True)[1].double(), len(codes)
    return torch.stack([(counts * (counts - 1)).sum() / 2, counts.new_tensor(n * (n - 1) / 2)])
