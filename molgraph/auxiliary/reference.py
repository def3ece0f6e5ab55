"""Fingerprints of training rows in; how like them other molecules are (Tanimoto) out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from molgraph.auxiliary.features import Features
from molgraph.base.errors import ModelFileError
from molgraph.base.seeds import generator

KEPT_OF_A_CLASS = 20  # rows of each class of each target that a smaller choice of rows keeps, where there are so many
COLUMNS = 4_096  # reference rows compared at once: their bits stay small beside the answer


@dataclass(frozen=True)
class Reference:
    """Bits of the rows that a method compares with.

    Args:
        packed: uint8 [m, n_bits / 8].
        place: int64 [n]: where each of the rows that it was made of stands in ``packed``; -1 for one left out.
        notes: what a person should know about the choice.
    """

    packed: np.ndarray
    place: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, limit: int | None, seed: int) -> Reference:
        """All rows, or at most ``limit`` of them: drawn by the seed, some of each class first.

        Args:
            x: float32 [n, n_bits], 0 and 1.
            y: float64 [n, targets], NaN where there is no label.
            limit: the most rows; None for no limit.
            seed: of the choice.
        """
        n = len(x)
        if limit is None or n <= limit:
            return cls(_pack(x), np.arange(n))
        order = generator(seed, "reference").permutation(n)
        first = np.zeros(n, dtype=bool)
        for j in range(y.shape[1]):
            for value in np.unique(y[~np.isnan(y[:, j]), j])[:100]:
                first[order[y[order, j] == value][:KEPT_OF_A_CLASS]] = True
        kept = np.sort(np.concatenate([order[first[order]], order[~first[order]]])[:limit])
        place = np.full(n, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        note = f"learned from {limit:,} of the {n:,} rows, drawn by the seed: the cost grows with their cube"
        return cls(_pack(x[kept]), place, (note,))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], features: Features) -> Reference:
        """From a file's arrays; raises ``ModelFileError`` where they are not bits of that width."""
        packed = np.asarray(arrays["reference"])
        if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] * 8 != features.n_bits or not len(packed):
            raise ModelFileError("the model's training fingerprints are not whole", hint="fetch the file again")
        return cls(packed)

    def __len__(self) -> int:
        return len(self.packed)

    @property
    def left_out(self) -> np.ndarray:
        """bool [n]: rows that it was made of and does not keep."""
        return self.place < 0

    def arrays(self) -> dict[str, np.ndarray]:
        """The bits."""
        return {"reference": self.packed}

    def bits(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """float32 [m, n_bits] of 0 and 1."""
        return np.unpackbits(self.packed[rows], axis=1).astype(np.float32)

    def likeness(self, x: np.ndarray) -> np.ndarray:
        """Tanimoto similarity of rows [n, n_bits] of 0 and 1 to the reference, float32 [n, m]; exact counts."""
        out = np.empty((len(x), len(self)), dtype=np.float32)
        for start in range(0, len(self), COLUMNS):
            columns = slice(start, start + COLUMNS)
            out[:, columns] = tanimoto(x, self.bits(columns))
        return out

    def among(self, rows: np.ndarray) -> np.ndarray:
        """Tanimoto similarity of some of the rows to each other, float64 [k, k]."""
        bits = self.bits(rows)
        return tanimoto(bits, bits).astype(np.float64)


def tanimoto(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Bits in common over bits in either: ``|a and b| / |a or b|``; 0 where neither has one.

    Counts are whole numbers under 2^24, so that float32 is exact whatever the order of summation.

    Args:
        a: float32 [n, n_bits] of 0 and 1.
        b: float32 [m, n_bits].

    Returns:
        float32 [n, m].

    Example:
        >>> tanimoto(np.array([[1, 1, 0]], np.float32), np.array([[1, 0, 1], [1, 1, 0]], np.float32)).round(2).tolist()
        [[0.33000001311302185, 1.0]]
    """
    both = a @ b.T
    either = a.sum(axis=1)[:, None] + b.sum(axis=1)[None, :] - both
    return both / np.maximum(either, 1.0)


def _pack(x: np.ndarray) -> np.ndarray:
    return np.packbits(x.astype(bool), axis=1)
