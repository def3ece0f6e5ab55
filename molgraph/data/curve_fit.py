"""Fit a Hill curve to the points of one molecule, and tell whether they determine its parameters."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from molgraph.base.printable import count

LEAST_DOSES, LEAST_POINTS = 4, 5  # of a fit of four parameters that has an error
WITHIN = 0.3  # decades, about a factor of two: the largest standard error of an EC50 that counts as measured
LN10 = float(np.log(10.0))


class HillFit(NamedTuple):
    """A Hill curve's parameters, and their standard errors."""

    parameters: np.ndarray  # float64 [4]: log10 EC50, log10 slope, top, bottom; NaN where nothing was fitted
    errors: np.ndarray  # float64 [4], infinite where the points leave a parameter open
    reason: str  # why the EC50 is not known; empty where it is


def hill(x: np.ndarray, log_ec50: float, log_slope: float, top: float, bottom: float) -> np.ndarray:
    """``bottom + (top - bottom) / (1 + 10^(slope (log10 EC50 - x)))`` at decimal logarithms of concentrations.

    Example:
        >>> hill(np.array([-9.0, 0.0, 9.0]), 0.0, 0.0, 100.0, 20.0).round(3).tolist()
        [20.0, 60.0, 100.0]
    """
    return bottom + (top - bottom) * _share(x, log_ec50, log_slope)


def fit_hill(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> HillFit:
    """Least squares of a Hill curve, by ``scipy.optimize.curve_fit``.

    ``bottom`` is the response without the compound, ``top`` that of an excess of it, and the slope is positive, so
    that a falling curve has a top below its bottom. The EC50 counts as known where its standard error is below 0.3
    decades and it lies between the lowest and the highest concentration.

    Args:
        x: float [n], decimal logarithms of concentrations.
        y: float [n], responses.
        weights: float [n], of squared errors; all alike where not given.

    Example:
        >>> x = np.linspace(-3, 3, 9)
        >>> fit_hill(x, hill(x, 0.5, 0.1, 90.0, 5.0)).parameters.round(4).tolist()
        [0.5, 0.1, 90.0, 5.0]
        >>> fit_hill(x[:2], x[:2]).reason
        '2 concentrations do not determine a curve'
    """
    from scipy.optimize import OptimizeWarning, curve_fit

    none, doses = np.full(4, np.nan), len(np.unique(x))
    if doses < LEAST_DOSES or len(x) < LEAST_POINTS:
        few = count(doses, "concentration") if doses < LEAST_DOSES else count(len(x), "point")
        return HillFit(none, np.full(4, np.inf), f"{few} do{'es' * few.startswith('1 ')} not determine a curve")
    if np.ptp(y) == 0:
        return HillFit(none, np.full(4, np.inf), "the response is the same at all concentrations")
    low, high = y[x == x.min()].mean(), y[x == x.max()].mean()
    start = [x[np.abs(y - (low + high) / 2).argmin()], 0.0, high, low]
    sigma = None if weights is None else 1 / np.sqrt(np.maximum(weights, 1e-12))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)
            params, covariance = curve_fit(hill, x, y, start, sigma, jac=_jacobian, maxfev=400)
    except RuntimeError:
        return HillFit(none, np.full(4, np.inf), "no Hill curve fits its points")
    errors = np.sqrt(np.diagonal(covariance))
    errors = np.where(np.isfinite(errors), errors, np.inf)
    inside = x.min() <= params[0] <= x.max()
    reason = "" if inside and errors[0] < WITHIN else "its points reach no plateau, or scatter too much, for an EC50"
    return HillFit(params, errors, reason)


def _share(x: np.ndarray, log_ec50: float, log_slope: float) -> np.ndarray:
    """float64 [n]: how far from the bottom to the top."""
    slope = 10.0 ** min(log_slope, 3.0)
    return 0.5 * (1 + np.tanh(0.5 * LN10 * slope * (x - log_ec50)))


def _jacobian(x: np.ndarray, log_ec50: float, log_slope: float, top: float, bottom: float) -> np.ndarray:
    """float64 [n, 4]: derivatives of the curve by its parameters."""
    share, slope = _share(x, log_ec50, log_slope), 10.0 ** min(log_slope, 3.0)
    steep = (top - bottom) * share * (1 - share) * LN10 * slope
    return np.column_stack([-steep, steep * (x - log_ec50) * LN10, share, 1 - share])
