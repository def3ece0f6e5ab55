"""Compute torsion angles of atoms in space, with bonds inferred from distances."""

from __future__ import annotations

import numpy as np

from molgraph.chem.connectivity import bonded_pairs


def heavy_torsions(numbers: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """int64 [t, 4]: one chain of four heavy atoms about each bond that has one, the lowest atoms first.

    Args:
        numbers: atomic numbers [n].
        positions: float [n, 3], angstrom.
    """
    near: dict[int, set[int]] = {}
    for one, other in bonded_pairs(numbers, positions).tolist():
        if numbers[one] > 1 and numbers[other] > 1:
            near.setdefault(one, set()).add(other)
            near.setdefault(other, set()).add(one)
    chains = []
    for b in sorted(near):
        for c in sorted(near[b] - set(range(b))):
            ends = [(a, d) for a in sorted(near[b] - {c}) for d in sorted(near[c] - {b}) if a != d]
            chains += [(ends[0][0], b, c, ends[0][1])] if ends else []
    return np.array(chains, np.int64).reshape(-1, 4)


def torsion_angles(positions: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """float64 [frames, t], radians from -pi to pi: the angles of chains of four atoms.

    Args:
        positions: float [frames, n, 3].
        atoms: int64 [t, 4].

    Example:
        >>> square = np.array([[[1.0, 0, 0], [0, 0, 0], [0, 1.0, 0], [0, 1.0, 1.0]]])
        >>> np.degrees(torsion_angles(square, np.array([[0, 1, 2, 3]]))).tolist()
        [[-90.0]]
    """
    a, b, c, d = (np.asarray(positions, np.float64)[:, atoms[:, k]] for k in range(4))
    axis = (c - b) / np.linalg.norm(c - b, axis=-1, keepdims=True)
    one, other = np.cross(b - a, axis), np.cross(axis, d - c)
    return np.arctan2((np.cross(one, other) * axis).sum(-1), (one * other).sum(-1))
