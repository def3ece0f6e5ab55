"""Store the fingerprints of training rows and compute the Tanimoto similarity of other molecules to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from molgraph.base.seeds import generator
from molgraph.chem.tanimoto import BitTable

ROWS_OF_A_CLASS = 20  # of each class of each target that a draw of rows keeps at least, where there are so many


@dataclass(frozen=True)
class TanimotoIndex:
    """Fingerprints of the rows that a method compares molecules with."""

    packed: np.ndarray  # uint8 [m, n_bits / 8]
    # int64 [n]: for each row that it was made of, its row in ``packed``; -1 for one that was left out
    place: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: tuple[str, ...] = ()  # what a person should know about the choice of rows

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, max_rows: int | None, seed: int) -> TanimotoIndex:
        """All rows, or at most ``max_rows`` of them: drawn by the seed, some of each class first.

        Args:
            x: float32 [n, n_bits], 0 and 1.
            y: float64 [n, targets], NaN where there is no label.
            max_rows: the most rows; None for all.
            seed: of the draw.
        """
        n, packed = len(x), np.packbits(x.astype(bool), axis=1)
        if max_rows is None or n <= max_rows:
            return cls(packed, np.arange(n))
        order = generator(seed, "reference").permutation(n)
        first = np.zeros(n, dtype=bool)
        for j in range(y.shape[1]):
            for value in np.unique(y[~np.isnan(y[:, j]), j])[:100]:
                first[order[y[order, j] == value][:ROWS_OF_A_CLASS]] = True
        chosen = np.sort(np.concatenate([order[first[order]], order[~first[order]]])[:max_rows])
        place = np.full(n, -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        note = f"learned from {max_rows:,} of the {n:,} rows, drawn by the seed: the cost grows with their cube"
        return cls(packed[chosen], place, (note,))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_bits: int) -> TanimotoIndex:
        """From the arrays of a model file; raises ``ValueError`` where they are not bits of that width."""
        packed = np.asarray(arrays["reference"])
        if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] * 8 != n_bits or not len(packed):
            raise ValueError("the training fingerprints are not whole")
        return cls(packed)

    def __len__(self) -> int:
        return len(self.packed)

    def similarity(self, x: np.ndarray) -> np.ndarray:
        """Tanimoto similarity of fingerprints [n, n_bits] to these, float32 [n, m]."""
        return BitTable(x, like=self._bits).similarity(self._bits)

    def among(self, rows: np.ndarray) -> np.ndarray:
        """Tanimoto similarity of some of these to each other, float64 [k, k]."""
        bits = self._bits.take(rows)
        return bits.similarity(bits).astype(np.float64)

    @cached_property
    def _bits(self) -> BitTable:
        return BitTable(np.unpackbits(self.packed, axis=1))
