"""Compute positional encodings of atoms: Laplacian eigenvectors and return probabilities of random walks."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eig

N_EIGEN, N_STEPS = 8, 16
PLACES = 2 * N_EIGEN + N_STEPS


def places(n: int, ends: np.ndarray) -> np.ndarray:
    """float16 [n, 32]: eigenvalues, the atom's numbers in their eigenvectors, returns of walks of 1 to 16 steps.

    Values are rounded to half precision as Graphium 2.4 rounds them, which MiniMol was trained on. A molecule of one
    atom has returns of 1, an atom without bonds in a larger one of 0.

    Args:
        n: atoms.
        ends: int [2, b], the atoms of each bond.

    Example:
        >>> places(2, np.array([[0], [1]]))[0, [0, 1, 16, 17]].tolist()
        [0.0, 2.0, 0.0, 1.0]
    """
    adjacent = np.zeros((n, n))
    adjacent[ends[0], ends[1]] = adjacent[ends[1], ends[0]] = 1
    return np.concatenate([_spectra(adjacent), _returns(adjacent)], axis=1).astype(np.float32).astype(np.float16)


def _spectra(adjacent: np.ndarray) -> np.ndarray:
    """float64 [n, 16]: of the Laplacian of each component; zeros where a component has fewer than 8 atoms."""
    out = np.zeros((len(adjacent), 2 * N_EIGEN))
    for atoms in _components(adjacent):
        block = adjacent[np.ix_(atoms, atoms)]
        values, vectors = eig(np.diag(block.sum(axis=1)) - block)  # not eigh, whose signs are others
        kept = values.argsort()[:N_EIGEN]
        vectors = vectors[:, kept]
        vectors = vectors / np.maximum(np.sqrt((vectors**2).sum(axis=0)), 1e-4)
        out[atoms, : len(kept)] = values[kept].real
        out[atoms, N_EIGEN : N_EIGEN + len(kept)] = vectors.real
    return out


def _components(adjacent: np.ndarray) -> list[list[int]]:
    """The atoms of each component, in the order in which Python keeps the set that a search through it makes.

    Graphium reads them in that order, on which the signs of the eigenvectors depend.
    """
    n = len(adjacent)
    neighbours = [np.flatnonzero(row).tolist() for row in adjacent]
    parts, left = [], dict.fromkeys(range(n))
    while left:
        start = next(iter(left))
        seen, queue = {start}, [start]
        for atom in queue:
            for other in neighbours[atom]:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
        parts.append([*range(n)] if len(seen) == n else [*seen])
        for atom in seen:
            del left[atom]
    return parts


def _returns(adjacent: np.ndarray) -> np.ndarray:
    """float32 [n, 16]: the diagonals of ``(D^-1 A)^k``, Dwivedi et al. 2022, equation 12."""
    n = len(adjacent)
    if n == 1:
        return np.ones((1, N_STEPS), np.float32)
    step = (adjacent / np.maximum(adjacent.sum(axis=1, keepdims=True), 1)).astype(np.float32)
    out, walk = np.zeros((n, N_STEPS), np.float32), step
    for k in range(N_STEPS):
        out[:, k] = walk.diagonal()
        walk = walk @ step
    return out
