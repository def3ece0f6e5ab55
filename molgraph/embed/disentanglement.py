"""Score how far each dimension of vectors stands for one factor: DCI disentanglement and completeness, and MIG."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mutual_info_score

from molgraph.base.seeds import derive, generator

BINS, TRAIN, TREES = 20, 0.7, 40  # of a dimension; share of the rows that trees learn from; trees of a factor


class Disentanglement(NamedTuple):
    """Scores of vectors of d dimensions for k factors.

    Args:
        dci: 1 where each dimension serves one factor, 0 where each serves all alike.
        completeness: float64 [k], 1 where one dimension holds the factor.
        mig: float64 [k], the mutual information gap.
        r2: float64 [k], of the trees on rows that they have not seen.
        importance: float64 [d, k], shares of each factor's trees.
    """

    dci: float
    completeness: np.ndarray
    mig: np.ndarray
    r2: np.ndarray
    importance: np.ndarray


def dci(importance: np.ndarray) -> tuple[float, np.ndarray]:
    """Disentanglement, and the completeness of each factor, from importances float64 [d, k].

    Eastwood and Williams 2018, "A Framework for the Quantitative Evaluation of Disentangled Representations", section
    2: ``D_i = 1 - H_k(P_i)`` with ``P_ij = R_ij / sum_j R_ij`` and logarithms to the base k, the mean weighted by
    ``sum_j R_ij``; ``C_j = 1 - H_d(R_ij / sum_i R_ij)``.

    Example:
        >>> d, c = dci(np.eye(3))
        >>> d, c.tolist()
        (1.0, [1.0, 1.0, 1.0])
    """
    d, k = importance.shape
    rows, columns = importance.sum(axis=1), importance.sum(axis=0)
    p = importance / np.where(rows > 0, rows, 1)[:, None]
    q = importance / np.where(columns > 0, columns, 1)
    each = 1 - _entropy(p, axis=1) / np.log(max(k, 2))
    return float((each * rows).sum() / max(rows.sum(), 1e-12)), 1 - _entropy(q, axis=0) / np.log(max(d, 2))


def _entropy(p: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(-(p * np.log(np.where(p > 0, p, 1))).sum(axis=axis))


def information_gap(z: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64 [k]: ``(I(z_1; v) - I(z_2; v)) / H(v)`` of the two dimensions that tell most of each factor.

    Chen et al. 2018, "Isolating Sources of Disentanglement in VAEs", equation 6; dimensions are cut into 20 bins of
    equal width, factors of more values too.

    Args:
        z: float64 [n, d].
        v: float64 [n, k].
    """
    codes, factors = _binned(z), _binned(v)
    out = []
    for factor in factors.T:
        told = sorted((mutual_info_score(code, factor) for code in codes.T), reverse=True)
        entropy = mutual_info_score(factor, factor)
        out.append((told[0] - (told[1] if len(told) > 1 else 0.0)) / max(entropy, 1e-12))
    return np.array(out)


def _binned(x: np.ndarray) -> np.ndarray:
    columns = []
    for column in x.T:
        values, codes = np.unique(column, return_inverse=True)
        if len(values) > BINS:
            codes = np.digitize(column, np.linspace(column.min(), column.max(), BINS + 1)[1:-1])
        columns.append(codes)
    return np.stack(columns, axis=1)


def disentanglement(z: np.ndarray, v: np.ndarray, seed: int = 0) -> Disentanglement:
    """The scores, with gradient boosted trees for the importances.

    Args:
        z: float64 [n, d].
        v: float64 [n, k], factors that vary.
        seed: of the division and the trees.
    """
    order = generator(seed, "disentanglement").permutation(len(z))
    train, test = np.split(order, [round(TRAIN * len(z))])
    importance, r2 = [], []
    for j, factor in enumerate(v.T):
        trees = GradientBoostingRegressor(n_estimators=TREES, random_state=derive(seed, "trees", j) % 2**31)
        trees.fit(z[train], factor[train])
        importance.append(trees.feature_importances_)
        rest = ((factor[test] - trees.predict(z[test])) ** 2).sum()
        r2.append(1 - rest / max(((factor[test] - factor[train].mean()) ** 2).sum(), 1e-12))
    found = np.array(importance).T
    score, completeness = dci(found)
    return Disentanglement(score, completeness, information_gap(z, v), np.array(r2), found)
