"""Interpolate between two conformers of a molecule with bond lengths kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from molgraph.chem.rigidity import Neighbourhoods
from molgraph.chem.superpose import superpose
from molgraph.chem.turn_field import near_pairs, turned_way

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
    over each atom with its neighbours (``turn_field.near_pairs``) and
    along bonds, and all structures together ``SMOOTH`` times the squares of the steps between them. The start is the
    way by a field of turns (``turn_field.turned_way``). Lengths and angles so hold, and the way turns about bonds.

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
        line[1:-1] = turned_way(a, b, bonds, pairs, shares)[1:-1]
        line = _minimised(line, shares, ends, bonds)
    return Way(line, _strain(line, shares, bonds))


def _minimised(way: np.ndarray, shares: np.ndarray, ends: Sequence[Neighbourhoods], bonds: np.ndarray) -> np.ndarray:
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
