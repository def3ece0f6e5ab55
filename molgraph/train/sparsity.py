"""Sparsity normalisation: the feature columns of a row that have a value are scaled up by the number of its gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.train.rdkit_features import PREFIX


def own_columns(names: Sequence[str]) -> np.ndarray:
    """bool [f]: the columns of the table's own, which have gaps; not RDKit's descriptors."""
    return np.array([not name.startswith(PREFIX) for name in names], dtype=bool)


def mean_observed(known: np.ndarray, weights: np.ndarray) -> float:
    """K, the columns of a row of bool [n, f] that have a value, on average over rows with weights float [n]."""
    total = float(weights.sum())
    return float(known.sum(axis=1) @ weights) / total if total > 0 else float(known.shape[1])


def sparsity_normalised(x: np.ndarray, known: np.ndarray, mean: float) -> np.ndarray:
    """``K (x * m) / |m|_1``, float [n, f], whose sums do not grow with the number of columns that have a value.

    Yi et al. 2020, "Why Not to Use Zero Imputation?", section 3.2: with zeros in the gaps the expected state of a
    layer grows with the share of columns observed, whatever the weights are, and so does the prediction. The values
    are not centred: of values around zero neither has a mean that could grow.

    Args:
        x: float [n, f]; what stands in a gap is not read.
        known: bool [n, f], the mask m; a row without a value stays zero.
        mean: K, of ``mean_observed``.

    Example:
        >>> sparsity_normalised(np.array([[3.0, np.nan], [3.0, 5.0]]), np.array([[True, False], [True, True]]), 2.0)
        array([[6., 0.],
               [3., 5.]])
    """
    return np.where(known, x, 0.0) * (mean / np.maximum(known.sum(axis=1, keepdims=True), 1))
