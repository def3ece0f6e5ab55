"""Align the vectors of one encoder with those of another by a rotation (orthogonal Procrustes)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from molgraph.base.errors import BadValueError, ShapeError
from molgraph.embed.csls import csls_search

ROUNDS = 5  # of refinement, as in the paper's code


@dataclass(frozen=True)
class Alignment:
    """``y = scale (x - mean_x) W + mean_y``.

    Args:
        rotation: W, float64 [d_x, d_y]: orthogonal where both widths are equal, else with orthonormal rows or columns.
        scale: the ratio of the spreads of y and x.
        mean_x, mean_y: float64 [d_x], [d_y], of the pairs.
        pairs: int64 [m, 2], the rows of x and y that it was fitted to.
    """

    rotation: np.ndarray
    scale: float
    mean_x: np.ndarray
    mean_y: np.ndarray
    pairs: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """float64 [n, d_y]: vectors [n, d_x] in the frame of the others."""
        return self.scale * (x - self.mean_x) @ self.rotation + self.mean_y


def procrustes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The W with ``W' W = I`` that makes ``|x W - y|`` least: ``W = U V'`` of ``U S V' = SVD(x' y)``.

    Schönemann 1966, Psychometrika 31:1; Conneau et al. 2018, "Word translation without parallel data", equation 2.

    Args:
        x, y: float [n, d_x], [n, d_y], row beside row.
    """
    u, _, v = np.linalg.svd(x.T @ y, full_matrices=False)
    return np.asarray(u @ v)


def align(x: np.ndarray, y: np.ndarray, anchors: np.ndarray, *, refine: int = ROUNDS) -> Alignment:
    """Fit the rotation from x to y on rows that are known to be the same, then on mutual nearest neighbours too.

    Conneau et al. 2018, section 2: in each round, the rows of x and y that are each other's nearest by CSLS are pairs
    beside the anchors. The paper's adversarial start is left out: the anchors are molecules that both sides have.

    Args:
        x, y: float [n, d_x], [m, d_y].
        anchors: int [k, 2], pairs of rows that are the same.
        refine: rounds; 0 fits the anchors alone.

    Raises:
        BadValueError: fewer than two anchors.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(20, 3))
        >>> turned = x @ procrustes(x[:5], x[5:10])
        >>> found = align(x, turned, np.arange(6).repeat(2).reshape(6, 2))
        >>> bool(np.allclose(found(x), turned))
        True
    """
    if x.ndim != 2 or y.ndim != 2 or anchors.ndim != 2:
        raise ShapeError(f"vectors have the shapes {[*x.shape]} and {[*y.shape]}, expected [n, d] and [m, d]")
    if len(anchors) < 2:
        words = f"the two sets of vectors have {len(anchors)} molecules in common"
        raise BadValueError(words, hint="give molecules that both sets have, a few hundred at best")
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    alignment = _fitted(x, y, anchors)
    free_x, free_y = (np.setdiff1d(np.arange(n), anchors[:, j]) for j, n in enumerate((len(x), len(y))))
    if min(len(free_x), len(free_y)) < 2:
        return alignment
    for _ in range(refine):
        mutual = _mutual(alignment(x[free_x]) - alignment.mean_y, y[free_y] - alignment.mean_y)
        pairs = np.concatenate([anchors, np.stack([free_x[mutual[:, 0]], free_y[mutual[:, 1]]], axis=1)])
        if np.array_equal(pairs, alignment.pairs):
            break
        alignment = _fitted(x, y, pairs)
    return alignment


def _fitted(x: np.ndarray, y: np.ndarray, pairs: np.ndarray) -> Alignment:
    a, b = x[pairs[:, 0]], y[pairs[:, 1]]
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    a, b = a - mean_a, b - mean_b
    scale = float(np.linalg.norm(b)) / max(float(np.linalg.norm(a)), 1e-12)
    return Alignment(procrustes(a, b), scale, mean_a, mean_b, pairs)


def _mutual(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """int64 [m, 2]: rows of x and y that are each other's nearest by CSLS."""
    there, back = csls_search(x, y, 1).row[:, 0], csls_search(y, x, 1).row[:, 0]
    rows = np.flatnonzero(back[there] == np.arange(len(x)))
    return np.stack([rows, there[rows]], axis=1)
