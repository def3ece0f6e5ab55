"""Describe how the labels of test rows differ from those of training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from molgraph.base.contracts import Kind
from molgraph.data.splits.split import PARTS, Split
from molgraph.data.table import Table

_PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True)
class Shift:
    """One target's labels in the parts of a split.

    Args:
        target: its name.
        kind: its kind.
        level: part to the mean of its labels; of a binary target the share of ones, of classes that of the commonest.
        n: part to the number of its labels.
        size: test less training mean over the training rows' standard deviation (of classes: of the share).
        ks: Kolmogorov and Smirnov's distance of the two distributions, the largest difference of shares up to a value.
        p: probability of a distance as large by chance; NaN where a part has fewer than two labels.
        quantiles: part to the 5th, 25th, 50th, 75th and 95th percentile of its labels; parts without one lack it.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("target", "kind", *PARTS, "n_train", "n_valid", "n_test", "shift", "ks", "p")
    target: str
    kind: Kind
    level: dict[str, float]
    n: dict[str, int]
    size: float
    ks: float
    p: float
    quantiles: dict[str, tuple[float, ...]]

    def row(self) -> dict[str, Any]:
        """Its row of a frame, by ``COLUMNS``."""
        counts = {f"n_{part}": self.n[part] for part in PARTS}
        row = {"target": self.target, "kind": self.kind, **self.level, **counts, "shift": self.size, "ks": self.ks}
        return row | {"p": self.p}

    def sentence(self) -> str:
        """The shift in words."""
        if self.kind in ("binary", "multiclass"):
            what = "ones" if self.kind == "binary" else "the commonest class"
            shares = f"{self.level['train']:.0%} in training and {self.level['test']:.0%} in the test"
            return f"The share of {what} in {self.target} is {shares}."
        return f"The test's mean of {self.target} lies {self.size:+.1f} standard deviations from training's."


def find_shifts(table: Table, split: Split) -> tuple[Shift, ...]:
    """The shift of each row-level target, in their order.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.splits import split_table
        >>> from molgraph.data.table import make_table
        >>> t = make_table(["C" * n for n in range(1, 7)], targets=(Target("y"),), y=[0, 2, 0, 2, 5, 5])
        >>> shift = find_shifts(t, split_table(t, "column", column=["train"] * 4 + ["test"] * 2))[0]
        >>> shift.size, shift.ks
        (4.0, 1.0)
    """
    if table.y is None:
        return ()
    out = []
    for j, target in enumerate(table.row_targets):
        y = table.y[:, j]
        if target.kind == "multiclass":
            known = y[split.train][np.isfinite(y[split.train])]
            commonest = np.bincount(known.astype(np.int64)).argmax() if len(known) else 0
            y = np.where(np.isfinite(y), y == commonest, np.nan)
        values = {part: y[getattr(split, part)] for part in PARTS}
        values = {part: v[np.isfinite(v)] for part, v in values.items()}
        level = {part: float(v.mean()) if len(v) else float("nan") for part, v in values.items()}
        spread = float(values["train"].std()) if len(values["train"]) else float("nan")
        size = (level["test"] - level["train"]) / spread if spread > 0 else float("nan")
        n = {part: len(v) for part, v in values.items()}
        ks, p = _distance(values["train"], values["test"])
        quantiles = {part: tuple(np.percentile(v, _PERCENTILES).tolist()) for part, v in values.items() if len(v)}
        out.append(Shift(target.name, target.kind, level, n, float(size), ks, p, quantiles))
    return tuple(out)


def _distance(train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    if min(len(train), len(test)) < 2:
        return float("nan"), float("nan")
    from scipy.stats import ks_2samp  # a fifth of a second, which only a reader of shifts should wait for

    found = ks_2samp(train, test, method="asymp")
    return float(found.statistic), float(found.pvalue)
