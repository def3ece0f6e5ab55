"""Tell whether a search improves molecules or exploits its oracle, by a control model that it never sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

TOP = 10  # molecules that a curve follows
AGREES = 0.2  # rank correlation among the best, from which a control confirms their order
TAGS = PARTED, OPEN, SOUND = "Take care", "The control cannot tell", "No sign of exploitation"


@dataclass(frozen=True)
class Guard:
    """An oracle and a control over the calls of a search.

    Args:
        calls: int64 [n], the calls at which the curves are known.
        oracle, control: float64 [n], means over the ten molecules that the oracle found best up to each call.
        agreement: rank correlation of both over all molecules.
        agreement_top: the same over the quarter that the oracle finds best: there a search goes on choosing.
        parted: the call from which the curves part; None where they do not.
        tag: the finding in a few words, of ``TAGS``.
        sentence: the same at length.
    """

    calls: np.ndarray
    oracle: np.ndarray
    control: np.ndarray
    agreement: float
    agreement_top: float
    parted: int | None
    tag: str
    sentence: str


def watch(oracle: np.ndarray, control: np.ndarray, *, independent: bool = True) -> Guard | None:
    """Compare the oracle's rise with the control's.

    The two part where the oracle has risen by at least half a deviation more than the control, in deviations of each
    over all scored molecules, and the control has risen by less than half as much, from there to the end.

    Args:
        oracle: float [n], by call; higher is better.
        control: float [n], the same direction; NaN where the control has no value.
        independent: whether the control learnt from other molecules: one that did not clears no oracle.

    Returns:
        The finding; None for fewer than twenty molecules that both score.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> true = np.linspace(0, 3, 200) + rng.normal(size=200)
        >>> watch(true, true + rng.normal(size=200)).parted is None
        True
    """
    both = np.flatnonzero(np.isfinite(oracle) & np.isfinite(control))
    if len(both) < 2 * TOP:
        return None
    a, b = np.asarray(oracle, dtype=np.float64)[both], np.asarray(control, dtype=np.float64)[both]
    at = np.unique(np.linspace(TOP, len(both), num=min(60, len(both) - TOP + 1)).astype(np.int64))
    tops = [np.argsort(-a[:n], kind="stable")[:TOP] for n in at]
    rise_a, rise_b = (np.array([v[rows].mean() for rows in tops]) for v in (a, b))
    scale_a, scale_b = (max(float(v.std()), 1e-12) for v in (a, b))
    gain_a, gain_b = (rise_a - rise_a[0]) / scale_a, (rise_b - rise_b[0]) / scale_b
    apart = (gain_a - gain_b >= 0.5) & (gain_b < 0.5 * gain_a)
    last = np.flatnonzero(~apart)
    begin = 0 if not len(last) else int(last[-1]) + 1
    parted = int(both[at[begin] - 1]) + 1 if begin < len(at) else None
    top = np.argsort(-a, kind="stable")[: max(len(a) // 4, TOP)]
    whole, best = _ranks(a, b), _ranks(a[top], b[top])
    words = _words(parted, gain_a[-1], gain_b[-1], best, independent)
    return Guard(both[at - 1] + 1, rise_a, rise_b, whole, best, parted, *words)


def _ranks(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (pd.Series(v).rank().to_numpy() for v in (a, b))
    return float(np.corrcoef(a, b)[0, 1]) if a.std() and b.std() else float("nan")


def _words(parted: int | None, gain_a: float, gain_b: float, best: float, independent: bool) -> tuple[str, str]:
    """The tag and the sentence."""
    rose = f"the ten best molecules rose by {gain_a:.1f} deviations by the oracle and by {gain_b:.1f} by the control"
    rose = rose.replace("by -", "by \N{MINUS SIGN}")
    if parted is not None:
        tail = "gains after that are more likely the oracle's errors than better molecules"
        return PARTED, f"The oracle and the control part from call {parted:,} on: {rose}; {tail}."
    if gain_a < 0.25:
        return OPEN, f"The oracle hardly rose, so there is nothing for the control to doubt: {rose}."
    number = f"{best:.2f}".replace("-", "\N{MINUS SIGN}")
    ranks = f" (rank correlation {number} among the best quarter)" if np.isfinite(best) else ""
    if not best >= AGREES:
        tail = f"it does not confirm the order of the best{ranks}: choose among them by something else"
        return OPEN, f"The control rises with the oracle: {rose}; but {tail}."
    if not independent:
        return OPEN, f"The control rises with the oracle, of which it is not known to be independent: {rose}{ranks}."
    return SOUND, f"The control rises with the oracle: {rose}{ranks}."
