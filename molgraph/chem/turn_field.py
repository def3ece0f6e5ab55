"""Deform a structure into another by local rotations, one for the neighbourhood of each atom."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation

from molgraph.chem.rigidity import Neighbourhoods
from molgraph.chem.superpose import rotation_between


def near_pairs(bonds: np.ndarray, n: int, stiff: np.ndarray | None = None) -> np.ndarray:
    """int64 [2, p]: each atom with those bonded to it, and with those bonded to an atom at the end of a stiff bond.

    What is two bonds away across a bond that turns is left out: it moves without any strain.

    Args:
        bonds: int64 [m, 2].
        n: number of atoms.
        stiff: bool [m], bonds that do not turn; None for none.

    Example:
        >>> near_pairs(np.array([[0, 1], [1, 2], [2, 3]]), 4, np.array([False, True, False])).T.tolist()
        [[0, 1], [1, 0], [1, 2], [1, 3], [2, 0], [2, 1], [2, 3], [3, 2]]
    """
    bonded, across = np.zeros((n, n), dtype=bool), np.zeros((n, n), dtype=bool)
    for reach, pairs in ((bonded, bonds), (across, bonds[:0] if stiff is None else bonds[stiff])):
        reach[pairs[:, 0], pairs[:, 1]] = reach[pairs[:, 1], pairs[:, 0]] = True
    near = bonded | ((across.astype(np.float32) @ bonded.astype(np.float32)) > 0)
    np.fill_diagonal(near, False)
    return np.stack(np.nonzero(near))


def turned_way(a: np.ndarray, b: np.ndarray, bonds: np.ndarray, pairs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Structures from ``a`` to ``b`` by a field of turns: each neighbourhood turns by a share of its own whole turn.

    Alexa, Cohen-Or and Levin 2000, "As-rigid-as-possible shape interpolation", SIGGRAPH: an atom's map is
    ``exp(t log R) ((1 - t) 1 + t S)`` with the turn R and the stretch S of its neighbourhood from a to b, and positions
    are those whose pairs are nearest, by least squares, to what both atoms' maps make of them.
    """
    n, hoods = len(a), Neighbourhoods(a, pairs)
    maps = hoods.jacobians(b) + np.eye(3) - hoods.projectors
    turns = np.array([_turn(a[own] - a[i], b[own] - b[i]) for i, own in enumerate(_lists(pairs, n))])
    stretch = turns.transpose(0, 2, 1) @ maps
    vectors = _unwound(Rotation.from_matrix(turns).as_rotvec(), bonds)
    laplacian = np.zeros((n, n))
    np.add.at(laplacian, (pairs[0], pairs[0]), 1.0)
    np.add.at(laplacian, tuple(pairs), -1.0)
    solve = np.linalg.pinv(laplacian)
    of_part = connected_components(laplacian != 0, directed=False)[1]
    away, way = a[pairs[1]] - a[pairs[0]], []
    for t in shares:
        own = Rotation.from_rotvec(t * vectors).as_matrix() @ ((1 - t) * np.eye(3) + t * stretch)
        wished = ((own[pairs[0]] + own[pairs[1]]) / 2 @ away[:, :, None])[:, :, 0]
        right = np.zeros((n, 3))
        np.add.at(right, pairs[1], wished)
        x = solve @ right
        for part in range(of_part.max() + 1):  # what is not bonded moves along straight lines as a whole
            held = of_part == part
            x[held] += ((1 - t) * a[held] + t * b[held] - x[held]).mean(axis=0)
        way.append(x)
    return np.array(way)


def _turn(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return rotation_between(x, y)[0] if len(x) > 1 else np.eye(3)


def _lists(pairs: np.ndarray, n: int) -> list[np.ndarray]:
    return [pairs[1][pairs[0] == i] for i in range(n)]


def _unwound(vectors: np.ndarray, bonds: np.ndarray) -> np.ndarray:
    """The vectors of turns; of the two that mean the same turn, that which is nearest a bonded atom's."""
    out, around = vectors.copy(), _lists(np.concatenate([bonds, bonds[:, ::-1]]).T, len(vectors))
    seen = np.zeros(len(vectors), dtype=bool)
    for first in range(len(vectors)):
        queue = [] if seen[first] else [first]
        seen[first] = True
        while queue:
            i = queue.pop(0)
            for j in around[i][~seen[around[i]]]:
                angle = np.linalg.norm(out[j])
                ways = [out[j], out[j] * (1 - 2 * np.pi / angle)] if angle > 1e-9 else [out[j]]
                out[j] = min(ways, key=lambda each: float(np.linalg.norm(each - out[i])))
                seen[j] = True
                queue.append(j)
    return out
