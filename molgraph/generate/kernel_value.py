"""Predict scores of molecules from the scores of others, by kernel ridge regression on Tanimoto similarities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import tanimoto

MOST = 1000  # molecules that are learned from; the last ones


class KernelValue:
    """``V(m) = mean(y) + k(m) (K + ridge I)^-1 (y - mean(y))``, K being Tanimoto similarities of ECFP4.

    Args:
        ridge: added to the diagonal of K.

    Example:
        >>> value = KernelValue().fit(["CCO", "CCCO", "c1ccccc1", "Cc1ccccc1"], [1.0, 1.0, 0.0, 0.0])
        >>> bool(value(["CCCCO"])[0] > value(["CCc1ccccc1"])[0])
        True
    """

    def __init__(self, ridge: float = 0.1) -> None:
        self.ridge, self.mean = ridge, 0.0
        self.x: np.ndarray = np.zeros((0, 2048), np.uint8)
        self.weights: np.ndarray = np.zeros(0)
        self.values: dict[str, float] = {}

    def fit(self, smiles: Sequence[str], y: Sequence[float]) -> KernelValue:
        """Learn the scores of the last ``MOST`` molecules."""
        target = np.asarray(y[-MOST:], dtype=np.float64)
        self.mean, self.values = float(target.mean()) if len(target) else 0.0, {}
        self.x = morgan(smiles[-MOST:]).x
        kernel = np.asarray(tanimoto(self.x, self.x), dtype=np.float64) if len(target) else np.zeros((0, 0))
        self.weights = np.linalg.solve(kernel + self.ridge * np.eye(len(target)), target - self.mean)
        return self

    def __call__(self, smiles: Sequence[str]) -> np.ndarray:
        """float64 [n], of each molecule; each is computed once."""
        fresh = [text for text in dict.fromkeys(smiles) if text not in self.values]
        if fresh:
            values = [self.mean] * len(fresh)
            if len(self.weights):
                near = np.asarray(tanimoto(morgan(fresh).x, self.x), dtype=np.float64)
                values = (self.mean + near @ self.weights).tolist()
            self.values.update(zip(fresh, values, strict=True))
        return np.array([self.values[text] for text in smiles], dtype=np.float64)
