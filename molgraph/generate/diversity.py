"""Measure the diversity of molecules by a determinant, and choose a batch that is good and diverse."""

from __future__ import annotations

import numpy as np

from molgraph.base.errors import BadValueError, UnknownNameError, nearest
from molgraph.chem.tanimoto import tanimoto

KERNELS = ("tanimoto", "rbf")
FLOOR = 1e-12  # squared volume below which a point adds nothing


def kernel_matrix(x: np.ndarray, kernel: str = "tanimoto", *, length: float = 1.0) -> np.ndarray:
    """Similarities of rows to each other, 1 of a row to itself.

    Args:
        x: [n, bits] fingerprints of 0 and 1 for ``tanimoto``; [n, d] points for ``rbf``.
        kernel: ``tanimoto``, or ``rbf``: ``exp(-|a - b|^2 / (2 length^2))``.
        length: in the points' units.

    Returns:
        float64 [n, n].

    Raises:
        UsageError: no such kernel, or no matrix.
    """
    x = np.asarray(x)
    if kernel not in KERNELS:
        raise UnknownNameError(f"no kernel is named {kernel!r}", hint=nearest(kernel, KERNELS))
    if x.ndim != 2:
        raise BadValueError(f"the rows have the shape {[*x.shape]}, expected [n, width]")
    if kernel == "tanimoto":
        k = tanimoto(x, x).astype(np.float64)
        np.fill_diagonal(k, 1.0)  # that of a row without a bit as well
        return k
    squares = (x.astype(np.float64) ** 2).sum(axis=1)
    distance = np.maximum(squares[:, None] + squares[None, :] - 2 * x @ x.T, 0.0)
    np.fill_diagonal(distance, 0.0)
    return np.exp(-distance / (2 * length**2))


def determinantal_diversity(x: np.ndarray, kernel: str = "tanimoto", *, length: float = 1.0) -> float:
    """``det K``: the squared volume that rows span, from 0 (two are alike) to 1 (all are unlike).

    Unlike a mean distance it is not raised by moving groups of near-copies apart (Parker-Holder et al. 2020,
    "Effective diversity in population based reinforcement learning", equation 3).

    Example:
        >>> spread, pairs = np.eye(4), np.repeat(np.eye(2), 2, axis=0)
        >>> determinantal_diversity(spread), determinantal_diversity(pairs)
        (1.0, 0.0)
    """
    sign, logarithm = np.linalg.slogdet(kernel_matrix(x, kernel, length=length))
    return float(max(sign, 0.0) * np.exp(logarithm))


def select_diverse(scores: np.ndarray, k: np.ndarray, n: int, weight: float = 0.5) -> tuple[np.ndarray, float]:
    """Choose rows whose scores are high and that are unlike each other: the greedy mode of a determinantal process.

    Each step adds the row with the largest gain of ``(1 - weight) sum_i scores_i + weight log det K_chosen``; the
    determinants are kept up to date by one row of a Cholesky factor a step (Chen et al. 2018, NeurIPS, algorithm 1).

    Args:
        scores: [m], finite; bring them to a deviation of about 1.
        k: [m, m], a kernel matrix with ones on its diagonal.
        n: how many; all rows where there are fewer.
        weight: of diversity, from 0 (the best scores) to 1 (diversity alone).

    Returns:
        The rows in the order in which they were chosen, int64, and ``log det`` of their kernel matrix.

    Raises:
        BadValueError: shapes that do not fit, scores that are not finite, a weight outside 0 to 1.

    Example:
        >>> k = kernel_matrix(np.array([[0.0], [0.01], [3.0]]), "rbf")
        >>> select_diverse(np.array([1.0, 0.9, 0.5]), k, 2)[0].tolist()
        [0, 2]
    """
    scores, k = np.asarray(scores, dtype=np.float64), np.asarray(k, dtype=np.float64)
    if scores.ndim != 1 or k.shape != (len(scores), len(scores)):
        raise BadValueError(f"{[*scores.shape]} scores and a kernel matrix of the shape {[*k.shape]} do not fit")
    if not np.isfinite(scores).all() or not np.isfinite(k).all():
        raise BadValueError("scores and similarities must be finite", hint="leave molecules without a score out")
    if not 0 <= weight <= 1 or n < 0:
        raise BadValueError(f"weight is {weight} and n is {n}", hint="weight from 0 to 1, n from 0")
    n = min(n, len(scores))
    chosen: list[int] = []
    factor, volume = np.zeros((n, len(scores))), np.diag(k).copy()
    total, open_rows = 0.0, np.ones(len(scores), dtype=bool)
    for step in range(n):
        gain = (1 - weight) * scores + weight * np.log(np.maximum(volume, FLOOR))
        best = int(np.argmax(np.where(open_rows, gain, -np.inf)))
        total += float(np.log(np.maximum(volume[best], FLOOR)))
        row = (k[best] - factor[:step, best] @ factor[:step]) / np.sqrt(max(volume[best], FLOOR))
        if volume[best] <= FLOOR:  # it lies in the span of the others and changes no volume
            row = np.zeros_like(row)
        factor[step] = row
        volume = volume - row**2
        open_rows[best] = False
        chosen.append(best)
    return np.array(chosen, dtype=np.int64), total
