"""Store per-atom or per-bond values of all rows of a table as one flat array with row offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Packed:
    """Values below the row level (an atom's, a bond's): those of row i are ``values[offsets[i]:offsets[i + 1]]``.

    Example:
        >>> charges = Packed.of([[0.1, -0.1], None, [0.0]])
        >>> charges.sizes.tolist(), charges.take(np.array([2, 0])).values.tolist()
        ([2, 0, 1], [0.0, 0.1, -0.1])
    """

    offsets: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, lists: Iterable[Any]) -> Packed:
        """From a list for each row; None is a row without values, and None within a list a missing value (NaN)."""
        arrays = [np.zeros(0) if item is None else np.asarray(item, dtype=np.float64) for item in lists]
        full = [item for item in arrays if len(item)]
        return cls(offsets_of([len(item) for item in arrays]), np.concatenate(full) if full else np.zeros(0))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """int64 [n]: how many values each row has."""
        return np.diff(self.offsets)

    def lists(self) -> np.ndarray:
        """Object array [n]: the values of each row."""
        out = np.empty(len(self), dtype=object)
        for i in range(len(self)):
            out[i] = self.values[self.offsets[i] : self.offsets[i + 1]]
        return out

    def take(self, rows: np.ndarray) -> Packed:
        """The values of those rows, in that order."""
        index = spread(self.offsets, rows)
        return Packed(offsets_of(self.sizes[rows]), self.values[index])


def offsets_of(sizes: Any) -> np.ndarray:
    """int64 [n + 1]: where the values of each row begin, and where the last ones end."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def spread(offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Places of the values of some rows, in order.

    Example:
        >>> spread(np.array([0, 2, 2, 5]), np.array([2, 0])).tolist()
        [2, 3, 4, 0, 1]
    """
    return ranges(offsets[rows], offsets[rows + 1])[0]


def ranges(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers ``starts[i]:ends[i]`` of every i, one after the other, and their offsets.

    Example:
        >>> numbers, offsets = ranges(np.array([5, 2]), np.array([7, 3]))
        >>> numbers.tolist(), offsets.tolist()
        ([5, 6, 2], [0, 2, 3])
    """
    sizes = ends - starts
    offsets = offsets_of(sizes)
    return np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1]), offsets
