"""Assert a measured effect: its mean over seeds against a bound, printed with its interval beside its baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t


def interval(values: Sequence[float]) -> str:
    """Mean, and its 95% interval by Student's t where there are several values."""
    x = np.asarray(values, dtype=float)
    if len(x) == 1:
        return f"{x[0]:.3g}"
    half = float(t.ppf(0.975, len(x) - 1)) * x.std(ddof=1) / math.sqrt(len(x))
    return f"{x.mean():.3g} [{x.mean() - half:.3g}, {x.mean() + half:.3g}], {len(x)} seeds"


class Effect:
    """Called once in a check of the third rung.

    Args:
        properties: of the test, where the figures are kept for the file of results.
    """

    def __init__(self, properties: list[tuple[str, Any]]) -> None:
        self.properties = properties

    def __call__(
        self,
        quantity: str,
        values: Sequence[float],
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        beside: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        """Keep the figures, then assert that the mean of the values is within the bounds.

        Args:
            quantity: in words, such as ``error as a share of the sum's``.
            values: one for each seed.
            at_least: smallest mean.
            at_most: largest mean.
            beside: values of baselines by their names.
        """
        bounds = [
            f"{word} {bound:g}" for word, bound in (("at least", at_least), ("at most", at_most)) if bound is not None
        ]
        if np.isnan(values).any():
            raise ValueError(f"{quantity}: {[*values]}; what was not measured is no null, and takes no mechanism out")
        mean, got = float(np.mean(values)), interval(values)
        others = "; ".join(f"{name} {interval(each)}" for name, each in (beside or {}).items())
        expected = f"{quantity} {' and '.join(bounds)}"
        self.properties += [("expected", expected), ("got", got), ("beside", others)]
        print(f"{expected}: {got} ({others})")
        assert at_least is None or mean >= at_least, f"{expected}: {got} ({others})"
        assert at_most is None or mean <= at_most, f"{expected}: {got} ({others})"
