"""Find groups of rows on which a model errs, by a mixture model of vectors, labels and predictions (Domino)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from molgraph.base.seeds import derive

LEAST, ROUNDS, CLOSE = 1e-6, 100, 1e-5  # probability of a class; steps of EM; gain of a row's objective that ends them


class Slices(NamedTuple):
    """A mixture of k slices of n rows.

    Args:
        member: float64 [n, k], probability of each slice given vector, label and prediction.
        region: float64 [n, k], that given the vector alone.
        weight: float64 [k], shares of the slices.
        mean, variance: float64 [k, d], of their vectors.
        labels, predictions: float64 [k, classes], their distributions.
        objective: after each step of EM, a row.
    """

    member: np.ndarray
    region: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    labels: np.ndarray
    predictions: np.ndarray
    objective: np.ndarray

    @property
    def mismatch(self) -> np.ndarray:
        """float64 [k]: the largest difference of a class's share among labels and among predictions."""
        return np.abs(self.labels - self.predictions).max(axis=1)


def error_slices(
    x: np.ndarray,
    labels: np.ndarray,
    predictions: np.ndarray,
    *,
    k: int = 25,
    gamma: float = 10.0,
    floor: float = 1e-2,
    start: np.ndarray | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Slices:
    """Fit the mixture by expectation and maximisation.

    Eyuboglu et al. 2022, "Domino: Discovering Systematic Errors with Cross-Modal Embeddings", section 4.2: the sum
    over rows of ``log sum_j P(j) N(x; mean_j, diag variance_j) [P(label | j) P(prediction | j)]^gamma``, where a
    prediction of probabilities counts for each class by its share. With ``gamma=0`` it is a Gaussian mixture.

    Args:
        x: [n, d] vectors, in units in which columns compare.
        labels: [n, classes], one 1 a row.
        predictions: [n, classes], probabilities.
        k: slices.
        gamma: weight of labels and predictions beside the vector.
        floor: added to variances.
        start: [n, k] memberships to begin with; k-means of vectors and errors if not given.
        rounds: steps, at most.
        seed: of k-means.

    Example:
        >>> x, y = np.zeros((40, 1)), np.eye(2)[np.arange(40) % 2]
        >>> found = error_slices(x, y, y[::-1], k=2)  # each prediction is wrong
        >>> found.mismatch.round(3).tolist(), found.weight.round(3).tolist()
        ([1.0, 1.0], [0.5, 0.5])
    """
    member = _start(x, labels, predictions, k, gamma, seed) if start is None else start
    objective: list[float] = []
    for _ in range(rounds):
        size = np.maximum(member.sum(axis=0), 1e-9)
        shares = member / size
        mean = shares.T @ x
        variance = np.maximum(shares.T @ x**2 - mean**2, 0) + floor
        of_label, of_prediction = ((shares.T @ values).clip(LEAST) for values in (labels, predictions))
        weight = size / size.sum()
        place = np.log(weight) + _gaussian(x, mean, variance)
        whole = place + gamma * (labels @ np.log(of_label).T + predictions @ np.log(of_prediction).T)
        total = logsumexp(whole, axis=1)
        member = np.exp(whole - total[:, None])
        objective.append(float(total.mean()))
        if len(objective) > 1 and objective[-1] - objective[-2] < CLOSE:
            break
    region = np.exp(place - logsumexp(place, axis=1)[:, None])
    return Slices(member, region, weight, mean, variance, of_label, of_prediction, np.array(objective))


def _gaussian(x: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Float64 [n, k]: log densities of Gaussians of diagonal covariance."""
    square = x**2 @ (1 / variance).T - 2 * x @ (mean / variance).T + (mean**2 / variance).sum(axis=1)
    return -0.5 * (square + np.log(2 * np.pi * variance).sum(axis=1))


def _start(x: np.ndarray, labels: np.ndarray, predictions: np.ndarray, k: int, gamma: float, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    beside = np.hstack([x, np.sqrt(gamma) * labels, np.sqrt(gamma) * predictions])
    clusters = KMeans(k, n_init=1, max_iter=30, random_state=derive(seed, "slices") % 2**31).fit_predict(beside)
    return np.eye(k)[clusters]
