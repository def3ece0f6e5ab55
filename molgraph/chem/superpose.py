"""Superpose two sets of positions by the rotation that brings them nearest to each other."""

from __future__ import annotations

import numpy as np


def rotation_between(a: np.ndarray, b: np.ndarray, *, mirror: bool = False) -> tuple[np.ndarray, bool]:
    """The rotation, float64 [3, 3], that turns centred positions ``a`` onto centred ``b``; with ``mirror``, the better
    of it and of that of the mirror image, and whether it is the latter's.

    Kabsch 1976, Acta Cryst. A32:922: with ``U S V'`` the singular value decomposition of ``a' b``,
    ``R = V diag(1, 1, det(V U')) U'``.

    Args:
        a, b: float [n, 3].
        mirror: whether a reflection is allowed.
    """
    u, _, vt = np.linalg.svd(a.T @ b)
    reflected = bool(np.linalg.det(u) * np.linalg.det(vt) < 0)
    sign = np.array([1.0, 1.0, -1.0 if reflected and not mirror else 1.0])
    return (vt.T * sign) @ u.T, reflected and mirror


def superpose(a: np.ndarray, b: np.ndarray, *, mirror: bool = False) -> tuple[np.ndarray, float]:
    """Positions ``a`` moved onto ``b``, and the root mean square deviation that is left, in their unit.

    Args:
        a, b: float [n, 3], the same atoms in the same order.
        mirror: whether the mirror image of ``a`` will do.

    Example:
        >>> a = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])
        >>> turned = a @ np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + 5
        >>> round(superpose(a, turned)[1], 6), round(superpose(-a, turned, mirror=True)[1], 6)
        (0.0, 0.0)
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    rotation, _ = rotation_between(a - a.mean(axis=0), b - b.mean(axis=0), mirror=mirror)
    moved = (a - a.mean(axis=0)) @ rotation.T + b.mean(axis=0)
    return moved, float(np.sqrt(((moved - b) ** 2).sum(axis=1).mean()))
