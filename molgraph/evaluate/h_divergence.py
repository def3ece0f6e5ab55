"""Test whether two sets of rows differ in a way that matters to a decision (H-divergence), by a permutation test."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from molgraph.base.errors import EmptyError, ShapeError
from molgraph.base.seeds import generator

Kind = Literal["js", "min"]
PERMUTATIONS = 199


class Divergence(NamedTuple):
    """How far two sets of rows are apart for one learner.

    Args:
        value: the H-divergence, in squared units of the labels.
        chance: its mean over the permutations; above 0, since each part alone is fitted more closely.
        p: share of the permutations, and the rows as they are, whose value is at least as large.
        mixture, first, second: the least loss on both halves in equal shares, on the first set, on the second.
    """

    value: float
    chance: float
    p: float
    mixture: float
    first: float
    second: float

    @property
    def excess(self) -> float:
        """The value above that by chance."""
        return self.value - self.chance


def least_loss(moments: np.ndarray, width: int, penalty: float = 0.0) -> float:
    """``H(p) = min_w E_p |y - w [1, x]|^2 + penalty |w_x|^2``, from second moments (DeGroot's generalised entropy).

    Args:
        moments: float64 [1 + d + k, 1 + d + k], the mean of ``[1, x, y]^T [1, x, y]``.
        width: k, the columns of y.
        penalty: of the squared weights of x; the intercept has none.

    Returns:
        In squared units of y. Without columns of x it is the total variance of y: the decision is y's mean.

    Example:
        >>> z = np.array([[1.0, 1.0], [1.0, 3.0]])  # an intercept, and the labels 1 and 3
        >>> least_loss(z.T @ z / 2, 1)
        1.0
    """
    d = len(moments) - width
    ridge = penalty * np.eye(d)
    ridge[0, 0] = 0.0
    of_x, both, of_y = moments[:d, :d] + ridge, moments[:d, d:], moments[d:, d:]
    explained = np.linalg.lstsq(of_x, both, rcond=1e-12)[0]
    return float(np.trace(of_y) - (both * explained).sum())


def divergence(first: float, second: float, mixture: float, kind: Kind = "js") -> float:
    """H-Jensen-Shannon, the mean of both rises of the least loss, or H-Min, the larger (Zhao et al. 2022, section 3.1).

    Example:
        >>> divergence(1.0, 3.0, 4.0), divergence(1.0, 3.0, 4.0, "min")
        (2.0, 3.0)
    """
    rises = (mixture - first, mixture - second)
    return max(rises) if kind == "min" else sum(rises) / 2


def h_divergence(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    *,
    penalty: float = 0.1,
    kind: Kind = "js",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Divergence:
    """What one ridge regression for two sets of rows costs above one for each.

    Zhao et al. 2022, "Comparing Distributions by Measuring Differences that Affect Decision Making": with the least
    loss ``H_l(p) = inf_a E_p[l(X, a)]``, here of ridge regressions, the divergence is that of ``H((p + q) / 2)`` from
    ``H(p)`` and ``H(q)``. A shift of x that leaves the relation to y alone has almost none. The mixture weighs both
    sets of rows alike, whatever their sizes; the paper draws samples of it.

    Args:
        first, second: x and y of each set: float [n, d] (d may be 0: then means are compared) and [n, k].
        penalty: of the squared weights; give x in units in which its columns compare.
        kind: ``js``, the mean of both rises, or ``min``, the larger.
        permutations: of the rows between the sets, for the p-value.
        seed: of the permutations.

    Raises:
        EmptyError: fewer than two rows in a set. ShapeError: sets of different widths.

    Example:
        >>> y = np.array([[0.0], [2.0], [4.0]])
        >>> found = h_divergence((y[:, :0], y), (y[:, :0], y + 6.0), permutations=19)
        >>> round(found.value, 9) == 0.25 * 6.0**2, round(found.first - found.second, 9) == 0
        (True, True)
    """
    if first[0].shape[1:] != second[0].shape[1:] or first[1].shape[1:] != second[1].shape[1:]:
        raise ShapeError("the two sets of rows have other columns")
    if min(len(first[1]), len(second[1])) < 2:
        raise EmptyError("a set has fewer than two rows with a label", hint="give larger parts")
    z, width, n = np.concatenate([_rows(*first), _rows(*second)]), first[1].shape[1], len(first[1])
    total = z.T @ z

    def compare(rows: np.ndarray) -> tuple[float, float, float, float]:
        gram = z[rows].T @ z[rows]
        a, b = gram / n, (total - gram) / (len(z) - n)
        one, other, both = (least_loss(matrix, width, penalty) for matrix in (a, b, (a + b) / 2))
        return divergence(one, other, both, kind), both, one, other

    value, mixture, one, other = compare(np.arange(n))
    rng = generator(seed, "h-divergence")
    drawn = np.array([compare(rng.permutation(len(z))[:n])[0] for _ in range(permutations)])
    least = value - 1e-12 * max(abs(mixture), 1e-300)  # sums in another order differ by rounding
    p = (1 + int((drawn >= least).sum())) / (1 + permutations)
    chance = float(drawn.mean()) if permutations else float("nan")
    return Divergence(value, chance, p, mixture, one, other)


def _rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(y)), x, y]).astype(np.float64)
