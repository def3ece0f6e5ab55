"""Measure how much the members of an ensemble disagree on each row, which is what a measurement of it would teach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import entr, logsumexp

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import BadValueError, UnknownNameError, nearest

SCORES = ("jsd", "jrd", "variance", "random")
LEAST = 1e-12  # variance of numbers on which all members agree


def jensen_shannon(p: np.ndarray) -> np.ndarray:
    """The Jensen-Shannon divergence of members' classes: the entropy of their mean less their mean entropy.

    ``JSD = H(1/M sum_i p_i) - 1/M sum_i H(p_i)`` (Shyam, Jaskowski & Gomez 2019, "Model-Based Active Exploration",
    ICML). It is the mutual information of the class and the member: 0 where all members say the same,
    however unsure each is, and at most ``log M``.

    Args:
        p: float64 [members, n, classes], probabilities that sum to 1.

    Returns:
        float64 [n], in nats.

    Example:
        >>> sure, unsure = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
        >>> jensen_shannon(np.stack([sure, unsure], axis=1)).round(3).tolist()
        [0.693, 0.0]
    """
    divergence: np.ndarray = entr(p.mean(axis=0)).sum(axis=-1) - entr(p).sum(axis=-1).mean(axis=0)
    return np.maximum(divergence, 0.0)


def jensen_renyi(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The Jensen-Renyi divergence of order 2 of members' normal distributions, in closed form.

    ``JRD = H_2(1/M sum_i N_i) - 1/M sum_i H_2(N_i)`` with ``H_2(p) = -log int p^2``, where the integral of the product
    of two normal densities is ``N(mu_i; mu_j, S_i + S_j)`` (Shyam, Jaskowski & Gomez 2019).
    Of members with equal variances it is 0 where their means are equal, and at most ``log M``. Where variances differ
    it can be slightly below 0, as an entropy of order 2 is not concave.

    Args:
        mean: float64 [members, n, d].
        variance: float64 [members, n, d] above 0, of independent numbers.

    Returns:
        float64 [n], in nats.

    Example:
        >>> far, near = [[0.0], [100.0]], [[1.0], [1.0]]
        >>> jensen_renyi(np.stack([far, near], axis=1), np.ones((2, 2, 1))).round(3).tolist()
        [0.693, 0.0]
    """
    members, _, d = mean.shape
    rows = []
    for centre, width in zip(mean, variance, strict=True):  # a member against all, so that memory is linear in members
        total = width + variance
        exponent = (centre - mean) ** 2 / total + np.log(2 * np.pi * total)
        rows.append(logsumexp(-0.5 * exponent.sum(axis=-1), axis=0))
    mixture = 2 * np.log(members) - logsumexp(rows, axis=0)
    single = 0.5 * (d * np.log(4 * np.pi) + np.log(variance).sum(axis=-1))
    divergence: np.ndarray = mixture - single.mean(axis=0)
    return divergence


def fitting_score(target: Target, score: str | None = None) -> str:
    """The score of that name, or the first that fits a target; ``UsageError`` where there is none."""
    classes = target.kind in ("binary", "multiclass")
    if score is None:
        return "jsd" if classes else "jrd"
    if score not in SCORES:
        raise UnknownNameError(f"no score is named {score!r}", hint=nearest(score, SCORES))
    if score in ("jsd", "jrd") and (score == "jsd") != classes:
        words = f"{score} does not fit {target.name}, which is {'a class' if classes else 'a number'}"
        raise BadValueError(words, hint=f"{'jsd' if classes else 'jrd'}, or variance")
    return score


def disagreement(parts: Sequence[Prediction], target: Target, score: str | None = None) -> np.ndarray:
    """How much members disagree on a target of each row.

    Members that predict no variance of their own (all but those with ``head=gaussian``) get one, the same for all:
    the mean, over the rows, of the variance between them.

    Args:
        parts: the members' predictions of the same rows.
        target: of whole rows.
        score: ``jsd`` of classes, ``jrd`` of numbers, ``variance``, of the members' values or probabilities, or
            ``random``, which is 0 of all; None for the first that fits the target.

    Returns:
        float64 [n]; NaN where a member has no value.

    Raises:
        UsageError: no such score, or one that does not fit the target.

    Example:
        >>> def member(value):
        ...     empty = np.array([""])
        ...     return Prediction(empty, (Target("y"),), np.array([[value]]), np.array(["ok"]), empty)
        >>> disagreement([member(1.0), member(3.0)], Target("y"), "variance")
        array([1.])
    """
    score = fitting_score(target, score)
    first = parts[0].columns.index(target.columns[0])
    columns = slice(first, first + len(target.columns))
    values = np.stack([part.value[:, columns] for part in parts])
    if target.kind == "binary":
        values = np.concatenate([1 - values, values], axis=-1)
    if score == "random":
        return np.where(np.isfinite(values).all(axis=(0, 2)), 0.0, np.nan)
    if score == "variance":
        between: np.ndarray = values.var(axis=0).sum(axis=-1)
        return between
    if score == "jsd":
        return jensen_shannon(values)
    return jensen_renyi(values, _variances(parts, columns, values))


def _variances(parts: Sequence[Prediction], own: slice, values: np.ndarray) -> np.ndarray:
    """float64 [members, n, d]: those that the members predict, else one for all of a column."""
    between = values.var(axis=0)
    known = np.isfinite(between)
    shared = np.where(known, between, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    whole = np.broadcast_to(shared, between.shape)
    spreads = [whole if part.spread is None else part.spread[:, own] ** 2 for part in parts]
    variances: np.ndarray = np.maximum([np.where(np.isfinite(spread), spread, whole) for spread in spreads], LEAST)
    return variances
