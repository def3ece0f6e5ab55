"""Go from one conformer of a molecule to another by structures whose bonds keep their lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation

from molgraph.chem.rigidity import Neighbourhoods
from molgraph.chem.superpose import rotation_between, superpose

SMOOTH = 0.01  # weight of the squared steps between neighbouring structures, in angstrom^-2
STRETCH = 10.0  # weight of bonds among the neighbourhoods
STEPS = 500  # of L-BFGS


class Way(NamedTuple):
    """Structures on the way.

    Args:
        positions: float64 [steps, n, 3], angstrom; the ends are those that were given.
        strain: float64 [steps], the largest change of a bond's length, as a share of what it should be there.
    """

    positions: np.ndarray
    strain: np.ndarray


def morph(
    a: np.ndarray,
    b: np.ndarray,
    bonds: np.ndarray,
    stiff: np.ndarray | None = None,
    *,
    steps: int = 11,
    rigid: bool = True,
) -> Way:
    """Structures from ``a`` to ``b``, which is laid over it first.

    The deformation of Park et al. 2020, "Nerfies", with its elastic prior (``chem.rigidity``), for atoms in place of
    rays: at the share t of the way structure x minimises ``(1 - t) E_a(x) + t E_b(x)``, where E is the rigidity loss
    over each atom with its neighbours (``near_pairs``) and
    along bonds, and all structures together ``SMOOTH`` times the squares of the
    steps between them. Lengths and angles so hold, and the way turns about bonds.

    Args:
        a, b: float [n, 3], the same atoms in the same order.
        bonds: int64 [m, 2].
        stiff: bool [m], bonds that do not turn, such as double ones; None for none.
        steps: structures, the ends among them; 2 or more.
        rigid: whether to minimise; without, atoms go straight.

    Raises:
        ValueError: fewer than 2 steps.

    Example:
        >>> a = np.array([[0.0, 0, 0], [1.5, 0, 0], [2.25, 1.3, 0]])
        >>> way = morph(a, a[:, [1, 0, 2]], np.array([[0, 1], [1, 2]]), steps=3)
        >>> way.positions.shape, bool(way.strain.max() < 0.01)
        ((3, 3, 3), True)
    """
    if steps < 2:
        raise ValueError(f"a way has 2 steps or more, got {steps}")
    a, (b, _) = np.asarray(a, dtype=np.float64), superpose(b, a)
    shares = np.linspace(0, 1, steps)
    line = a + shares[:, None, None] * (b - a)
    if rigid and steps > 2 and len(a) > 1:
        pairs = near_pairs(bonds, len(a), stiff)
        ends = [Neighbourhoods(end, pairs) for end in (a, b)]
        line = _minimised(np.concatenate([line[:1], _field(a, b, bonds, pairs, shares)[1:-1], line[-1:]]), shares, ends, bonds)
    return Way(line, _strain(line, shares, bonds))


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
    for reach, own in ((bonded, bonds), (across, bonds[:0] if stiff is None else bonds[stiff])):
        reach[own[:, 0], own[:, 1]] = reach[own[:, 1], own[:, 0]] = True
    near = bonded | ((across.astype(np.float32) @ bonded.astype(np.float32)) > 0)
    np.fill_diagonal(near, False)
    return np.stack(np.nonzero(near))


def _field(a: np.ndarray, b: np.ndarray, bonds: np.ndarray, pairs: np.ndarray, shares: np.ndarray) -> np.ndarray:
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
    """The vectors of turns, of the two that mean the same (by less than a whole turn, or on) that nearest a bonded atom's."""
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


def _minimised(
    way: np.ndarray, shares: np.ndarray, ends: Sequence[Neighbourhoods], bonds: np.ndarray
) -> np.ndarray:
    """The inner structures where rigidity and smoothness are best, near those of a way."""
    due = _due_lengths(way, shares, bonds)

    def total(inner: np.ndarray) -> tuple[float, np.ndarray]:
        whole = np.concatenate([way[:1], inner, way[-1:]])
        jumps = np.diff(whole, axis=0)
        value, gradient = SMOOTH * float((jumps**2).sum()), np.zeros_like(whole)
        gradient[1:] += 2 * SMOOTH * jumps
        gradient[:-1] -= 2 * SMOOTH * jumps
        for k in range(1, len(whole) - 1):
            for loss, slope in (_elastic(ends, shares[k], whole[k]), _stretched(whole[k], bonds, due[k])):
                value, gradient[k] = value + loss, gradient[k] + slope
        return value, gradient[1:-1]

    return np.concatenate([way[:1], _descend(total, way[1:-1]), way[-1:]])


def _elastic(ends: Sequence[Neighbourhoods], share: float, x: np.ndarray) -> tuple[float, np.ndarray]:
    """The rigidity loss of a structure against both ends, weighted by its place between them, and its gradient."""
    (one, by_one), (other, by_other) = (end.loss(x) for end in ends)
    return (1 - share) * one + share * other, (1 - share) * by_one + share * by_other


def _stretched(x: np.ndarray, bonds: np.ndarray, due: np.ndarray) -> tuple[float, np.ndarray]:
    """``STRETCH sum log(l / due)^2`` over bonds, the same loss along each bond alone, and its gradient."""
    away = x[bonds[:, 0]] - x[bonds[:, 1]]
    length = np.sqrt((away**2).sum(axis=1) + 1e-9)
    logs = np.log(length / due)
    force = (2 * STRETCH * logs / length**2)[:, None] * away
    gradient = np.zeros_like(x)
    np.add.at(gradient, bonds[:, 0], force)
    np.add.at(gradient, bonds[:, 1], -force)
    return STRETCH * float((logs**2).sum()), gradient


def _descend(loss: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray) -> np.ndarray:
    def flat(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(x.reshape(start.shape))
        return value, gradient.ravel()

    done = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return done.x.reshape(start.shape)


def _due_lengths(way: np.ndarray, shares: np.ndarray, bonds: np.ndarray) -> np.ndarray:
    """float64 [steps, m]: the length of each bond between those that it has at the ends."""
    first, last = (np.linalg.norm(way[k][bonds[:, 0]] - way[k][bonds[:, 1]], axis=1) for k in (0, -1))
    return first + shares[:, None] * (last - first)


def _strain(way: np.ndarray, shares: np.ndarray, bonds: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(way[:, bonds[:, 0]] - way[:, bonds[:, 1]], axis=2)
    return (np.abs(lengths / _due_lengths(way, shares, bonds) - 1)).max(axis=1, initial=0.0)
