"""Score probabilities and Gaussian predictions, and fit their temperature, for comparisons under dataset shift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from molgraph.evaluate.measures import log_loss, roc_auc
from molgraph.evaluate.screening import calibration_error

LEAST = 1e-6  # probability, and share of a deviation
COVERAGE = 0.9
WIDEST = 20.0  # of temperatures, and the inverse of the smallest


class Guess(NamedTuple):
    """What a method says of n rows.

    Args:
        value: float64 [n, classes] probabilities, or [n] means of numbers.
        sd: float64 [n], standard deviations of numbers; None for classes.
    """

    value: np.ndarray
    sd: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Guess:
        """Some of the rows."""
        return Guess(self.value[rows], None if self.sd is None else self.sd[rows])

    @property
    def doubt(self) -> np.ndarray:
        """float64 [n]: the entropy of classes in nats, or the standard deviation."""
        if self.sd is not None:
            return self.sd
        p = self.value.clip(LEAST, 1)
        return np.asarray(-(p * np.log(p)).sum(axis=1))


def mix(guesses: Sequence[Guess]) -> Guess:
    """The mean of probabilities; of numbers the mean, and the standard deviation of the mixture."""
    values = np.array([guess.value for guess in guesses])
    spreads = [guess.sd for guess in guesses if guess.sd is not None]
    if not spreads:
        return Guess(values.mean(axis=0))
    return Guess(values.mean(axis=0), np.sqrt(values.var(axis=0) + (np.array(spreads) ** 2).mean(axis=0)))


def with_temperature(guess: Guess, temperature: float) -> Guess:
    """``softmax(log p / T)``; of numbers T times the standard deviation (Guo et al. 2017, ICML).

    Example:
        >>> with_temperature(Guess(np.array([[0.8, 0.2]])), 2.0).value.round(3).tolist()
        [[0.667, 0.333]]
    """
    if guess.sd is not None:
        return Guess(guess.value, guess.sd * temperature)
    scaled = np.log(guess.value.clip(LEAST)) / temperature
    p = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return Guess(p / p.sum(axis=1, keepdims=True))


def fit_temperature(y: np.ndarray, guess: Guess) -> float:
    """The temperature of the least negative log-likelihood, from 1/20 to 20."""
    if guess.sd is not None:  # in closed form
        return float(np.clip(np.sqrt((((y - guess.value) / guess.sd) ** 2).mean()), 1 / WIDEST, WIDEST))

    def loss(log_t: float) -> float:
        return nll(y, with_temperature(guess, float(np.exp(log_t))))

    end = float(np.log(WIDEST))
    return float(np.exp(minimize_scalar(loss, bounds=(-end, end), method="bounded").x))


def nll(y: np.ndarray, guess: Guess) -> float:
    """Mean negative log-likelihood in nats."""
    if guess.sd is None:
        return log_loss(y, guess.value)
    return float(-norm.logpdf(y, guess.value, guess.sd.clip(LEAST)).mean())


def scores(y: np.ndarray, guess: Guess) -> dict[str, float]:
    """The measures of Ovadia et al. 2019: of classes accuracy, AUC, NLL, Brier, ECE and entropy; of numbers alike ones.

    The Brier score is ``mean sum_k (p_k - y_k)^2``. ``sure_half`` is the accuracy, or the RMSE, of the rows with the
    least doubt. For numbers ``covered`` is the share within the interval of 90%.

    Example:
        >>> found = scores(np.array([0, 1]), Guess(np.array([[0.9, 0.1], [0.2, 0.8]])))
        >>> found["accuracy"], round(found["brier"], 3), round(found["nll"], 3)
        (1.0, 0.05, 0.164)
    """
    half = np.argsort(guess.doubt, kind="stable")[: max(len(y) // 2, 1)]
    if guess.sd is not None:
        error = y - guess.value
        covered = np.abs(error) <= norm.ppf(0.5 + COVERAGE / 2) * guess.sd
        return {
            "rmse": float(np.sqrt((error**2).mean())), "nll": nll(y, guess), "covered": float(covered.mean()),
            "sd": float(guess.sd.mean()), "sure_half": float(np.sqrt((error[half] ** 2).mean())),
        }  # fmt: skip
    p, right = guess.value, guess.value.argmax(axis=1) == y
    one = p[:, 1] if p.shape[1] == 2 else p
    ranked = roc_auc(y, p[:, 1]) if p.shape[1] == 2 and len(np.unique(y)) == 2 else float("nan")
    square = ((p - np.eye(p.shape[1])[y.astype(int)]) ** 2).sum(axis=1)
    return {
        "auc": ranked, "accuracy": float(right.mean()), "nll": nll(y, guess), "brier": float(square.mean()),
        "ece": calibration_error(y, one), "entropy": float(guess.doubt.mean()), "sure_half": float(right[half].mean()),
    }  # fmt: skip
