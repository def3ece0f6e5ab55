"""Measure how often units of vectors that fire for a molecule fire for its variant too, at a fixed global rate."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

GAP, LEAST = 1e-3, 3  # share of a unit's spread that parts firing from silent molecules; firing ones of a unit
STAYS = 0.99  # share of firings that remain, of a change that is ignored
Threshold = Literal["rate", "zero"]


class Firing(NamedTuple):
    """How often units that fire for a molecule fire for its variant too.

    Args:
        top: mean of the most invariant units; NaN where there is none.
        mean: of all units.
        units: that can be judged, of twice the width: each counts with both signs.
    """

    top: float
    mean: float
    units: int


def firing(
    x: np.ndarray, variants: np.ndarray, of: np.ndarray, *, rate: float = 0.1,
    top: int = 25, threshold: Threshold = "rate",
) -> Firing:  # fmt: skip
    """Local firing of units under a change, their global firing held fixed.

    Goodfellow et al. 2009, section 3 (NIPS 22); so used by Purushwalkam and Gupta 2020, section 4. Unit i fires where
    ``s h_i(x) > t_i``, for both signs s. The threshold is such that a unit fires for about the share ``rate`` of
    molecules (global firing G), so that a unit that never or always fires counts for nothing; local firing L is the
    share of variants of those molecules for which it fires still: 1 where the change is ignored, ``rate`` where a
    variant is like any other molecule. The papers' score is L / G. Thresholds lie in the widest gap between values
    near that rate, half of it to one and a half times it, so that rounding makes no unit change its mind; a unit
    without a gap is left out.

    Args:
        x: float [n, d], a vector for each molecule.
        variants: float [m, d], vectors of variants.
        of: int [m], the molecule of each variant.
        rate: of molecules for which a unit fires.
        top: units of the most invariant ones, of which the papers give the mean.
        threshold: ``zero`` leaves the rate free: then a constant unit is a perfectly invariant one.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(200, 8))
        >>> firing(x, x, np.arange(200)), firing(np.ones((200, 8)), np.ones((200, 8)), np.arange(200)).units
        (Firing(top=1.0, mean=1.0, units=16), 0)
    """
    x, variants = np.hstack([x, -x]).astype(np.float64), np.hstack([variants, -variants]).astype(np.float64)
    if threshold == "zero":
        limit, fit = np.zeros(x.shape[1]), np.ones(x.shape[1], bool)
    else:
        down = -np.sort(-x, axis=0)
        low, high = max(round(0.5 * rate * len(x)), 1), max(round(1.5 * rate * len(x)), 2)
        gaps = down[low - 1 : high - 1] - down[low:high]
        place = low - 1 + gaps.argmax(axis=0)
        columns = np.arange(x.shape[1])
        limit, fit = (down[place, columns] + down[place + 1, columns]) / 2, gaps.max(axis=0) > GAP * x.std(axis=0)
    before = (x > limit)[of]
    fired = before.sum(axis=0)
    fit = fit & (fired >= min(LEAST, len(of)))
    if not fit.any():
        return Firing(np.nan, np.nan, 0)
    local = np.sort((before & (variants > limit)).sum(axis=0)[fit] / fired[fit])[::-1]
    return Firing(float(local[:top].mean()), float(local.mean()), int(fit.sum()))


class Judgement(NamedTuple):
    """How a change moves vectors: firing, cosine of centred vectors, distance (1: as far as any other molecule)."""

    firing: Firing
    cosine: float
    distance: float

    @property
    def word(self) -> Literal["ignored", "seen", "degenerate"]:
        """What the vectors do with the change."""
        if not self.firing.units or not np.isfinite(self.distance):
            return "degenerate"
        return "ignored" if self.firing.mean >= STAYS and self.distance < 1 - STAYS else "seen"


def judge(x: np.ndarray, variants: np.ndarray, of: np.ndarray, **how: Any) -> Judgement:
    """``firing`` with the cosine and the distance of the same vectors, which have [n, d] and [m, d]."""
    middle = x.mean(axis=0)
    a, b = x[of] - middle, variants - middle
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    usual = 2 * ((x - middle) ** 2).sum(axis=1).mean()  # mean squared distance of two molecules
    flat = usual <= 1e-12 * max(float((x**2).sum(axis=1).mean()), 1e-300)
    cosine = np.nan if flat else float(((a * b).sum(axis=1) / np.maximum(lengths, 1e-300)).mean())
    moved = float(np.sqrt(((b - a) ** 2).sum(axis=1).mean() / usual)) if not flat else 0.0
    if flat and how.get("threshold", "rate") == "rate":
        return Judgement(Firing(np.nan, np.nan, 0), np.nan, np.nan)
    return Judgement(firing(x, variants, of, **how), cosine, moved)
