"""Describe one split before any training: distances, shifts of labels, leaks, classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from molgraph.base.contracts import Kind
from molgraph.data.splits import Split
from molgraph.data.splits.split import PARTS
from molgraph.data.table import Table

SHIFTED = 0.5  # standard deviations from which a shift of labels is told
NEAR, FAR = 0.3, 0.6  # distances: an analogue of one place changed; nothing alike but common groups
_NAN = float("nan")


@dataclass(frozen=True)
class Shift:
    """One target's labels in the parts of a split."""

    target: str  # its name
    kind: Kind  # its kind
    # part to the mean of its labels; of a binary target the share of ones, of classes that of the commonest
    level: dict[str, float]
    n: dict[str, int]  # part to the number of its labels
    size: float  # test less training mean over the training rows' standard deviation (of classes: of the share)
    # Kolmogorov and Smirnov's distance of the two distributions, the largest difference of shares up to a value
    ks: float
    p: float  # probability of a distance as large by chance; NaN where a part has fewer than two labels
    # part to the 5th, 25th, 50th, 75th and 95th percentile of its labels; parts without one lack it
    quantiles: dict[str, tuple[float, ...]]

    def row(self) -> dict[str, Any]:
        """Its row of a frame."""
        counts = {f"n_{part}": self.n[part] for part in PARTS}
        row = {"target": self.target, "kind": self.kind, **self.level, **counts}
        return row | {"shift": self.size, "ks": self.ks, "p": self.p}

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
    from scipy.stats import ks_2samp  # a fifth of a second, which only a reader of shifts should wait for

    out = []
    for j, target in enumerate(table.row_targets):
        y = table.y[:, j]
        if target.kind == "multiclass":
            known = y[split.train][np.isfinite(y[split.train])]
            commonest = np.bincount(known.astype(np.int64)).argmax() if len(known) else 0
            y = np.where(np.isfinite(y), y == commonest, np.nan)
        values = {part: y[getattr(split, part)] for part in PARTS}
        values = {part: v[np.isfinite(v)] for part, v in values.items()}
        train, test = values["train"], values["test"]
        level = {part: float(v.mean()) if len(v) else _NAN for part, v in values.items()}
        spread = float(train.std()) if len(train) else _NAN
        size = (level["test"] - level["train"]) / spread if spread > 0 else _NAN
        result = ks_2samp(train, test, method="asymp") if min(len(train), len(test)) > 1 else None
        ks, p = (_NAN, _NAN) if result is None else (float(result.statistic), float(result.pvalue))
        marks = (5, 25, 50, 75, 95)
        quantiles = {part: tuple(np.percentile(v, marks).tolist()) for part, v in values.items() if len(v)}
        counts = {part: len(v) for part, v in values.items()}
        out.append(Shift(target.name, target.kind, level, counts, float(size), ks, p, quantiles))
    return tuple(out)


@dataclass(frozen=True)
class SplitXray:
    """What one split looks like before anything learns from it."""

    name: str  # how it was asked for: a splitter, a file, or the key of a mapping
    split: Split | None  # the split; None where the splitter cannot divide this table
    asks: str = ""  # the question that a score on it answers
    # float64 [m], of tested molecules to the nearest training molecule, 1 - Tanimoto; at most 2,000
    distance: np.ndarray | None = None
    shifts: tuple[Shift, ...] = ()  # how the labels of the parts differ, one a target
    # part to the names of class targets with one class there
    one_class: Mapping[str, list[str]] = field(default_factory=dict)
    problem: str = ""  # why there is no split; empty where there is one
    left_out: Mapping[str, int] = field(default_factory=dict)  # why rows are in no part -> how many are

    @property
    def leaking(self) -> int:
        """Test rows that hold a form of a training molecule."""
        return 0 if self.split is None else len({leak.test for leak in self.split.leaks})

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of the tested molecules with a close analogue in training, and with nothing alike there."""
        d = self.distance
        return (_NAN, _NAN) if d is None or not len(d) else (float((d <= NEAR).mean()), float((d >= FAR).mean()))

    def verdict(self) -> str:
        """How far the test is from the training rows, and what to beware of, in a sentence or two."""
        if self.split is None:
            return f"It cannot divide this table: {self.problem}"
        sentences, (near, far), lost = [], self.shares, self.one_class.get("test", [])
        if np.isfinite(near):
            sentences.append(
                f"{near:.0%} of the tested molecules have a close analogue in training, {far:.0%} have nothing alike."
            )
        if self.leaking:
            rows = "row holds" if self.leaking == 1 else "rows hold"
            sentences.append(f"{self.leaking:,} tested {rows} a molecule that also trains.")
        if lost:
            more = f" and {len(lost) - 3} more targets" if len(lost) > 3 else ""
            sentences.append(f"One class alone is tested in {', '.join(lost[:3])}{more}.")
        worst = max((s for s in self.shifts if abs(s.size) >= SHIFTED), key=lambda s: abs(s.size), default=None)
        return " ".join([*sentences, *([] if worst is None else [worst.sentence()])])

    def row(self) -> dict[str, Any]:
        """A row of a frame: sizes, what is left out and why, groups, leaks, distances, largest shift, one class."""
        split, (near, far) = self.split, self.shares
        row: dict[str, Any] = {"split": self.name}
        row |= {name: None if split is None else split.sizes[name] for name in (*PARTS, "left_out")}
        row["left_out_why"] = ", ".join(f"{n:,} {reason}" for reason, n in self.left_out.items())
        row |= {"groups": None if split is None else split.groups, "leaks": None if split is None else len(split.leaks)}
        row |= {
            "leaking_rows": None if split is None else self.leaking,
            "distance": float(np.median(self.distance)) if self.distance is not None and len(self.distance) else _NAN,
            "near": near,
            "far": far,
            "shift": max((abs(s.size) for s in self.shifts if np.isfinite(s.size)), default=_NAN),
            "one_class": "; ".join(f"{where}: {', '.join(names)}" for where, names in self.one_class.items()),
        }
        return row | {"asks": self.asks, "verdict": self.verdict(), "hash": "" if split is None else split.hash}
