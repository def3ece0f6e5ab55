"""Describe one split before any training: distances, shifts of labels, leaks, classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from molgraph.data.splits import Split
from molgraph.evaluate.shift import Shift

SHIFTED = 0.5  # standard deviations from which a shift of labels is told
NEAR, FAR = 0.3, 0.6  # distances: an analogue of one place changed; nothing alike but common groups


@dataclass(frozen=True)
class SplitXray:
    """What one split looks like before anything learns from it.

    Args:
        name: how it was asked for: a recipe, a file, or the key of a mapping.
        split: the split; None where the recipe cannot divide this table.
        asks: the question that a score on it answers.
        distance: float64 [m], of tested molecules to the nearest training molecule, 1 - Tanimoto; at most 2,000.
        shifts: how the labels of the parts differ, one a target.
        one_class: part to the names of class targets with one class there.
        problem: why there is no split; empty where there is one.
        left_out: why rows are in no part -> how many are.
    """

    name: str
    split: Split | None
    asks: str = ""
    distance: np.ndarray | None = None
    shifts: tuple[Shift, ...] = ()
    one_class: Mapping[str, list[str]] | None = None
    problem: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def leaking(self) -> int:
        """Test rows that hold a form of a training molecule."""
        return 0 if self.split is None else len({leak.test for leak in self.split.leaks})

    def verdict(self) -> str:
        """How far the test is from the training rows, and what to beware of, in a sentence or two."""
        if self.split is None:
            return f"It cannot divide this table: {self.problem}"
        said = []
        if self.distance is not None and len(self.distance):
            near, far = (self.distance <= NEAR).mean(), (self.distance >= FAR).mean()
            said.append(
                f"{near:.0%} of the tested molecules have a close analogue in training, {far:.0%} have nothing alike."
            )
        if self.leaking:
            rows = "row holds" if self.leaking == 1 else "rows hold"
            said.append(f"{self.leaking:,} tested {rows} a molecule that also trains.")
        lost = (self.one_class or {}).get("test", [])
        if lost:
            said.append(f"One class alone is tested in {_named(lost)}.")
        worst = max((s for s in self.shifts if abs(s.size) >= SHIFTED), key=lambda s: abs(s.size), default=None)
        if worst is not None:
            said.append(worst.sentence())
        return " ".join(said)

    def row(self) -> dict[str, Any]:
        """A row of a frame: sizes, what is left out and why, groups, leaks, distances, largest shift, one class."""
        row: dict[str, Any] = {"split": self.name}
        split, lost = self.split, self.one_class or {}
        for name in ("train", "valid", "test", "left_out"):
            row[name] = None if split is None else split.sizes[name]
        row["left_out_why"] = ", ".join(f"{n:,} {why}" for why, n in self.left_out.items())
        row |= {"groups": None if split is None else split.groups, "leaks": None if split is None else len(split.leaks)}
        row["leaking_rows"] = None if split is None else self.leaking
        middle, near, far = np.nan, np.nan, np.nan
        if self.distance is not None and len(self.distance):
            middle, near, far = np.median(self.distance), (self.distance <= NEAR).mean(), (self.distance >= FAR).mean()
        row |= {"distance": middle, "near": near, "far": far}
        row["shift"] = max((abs(s.size) for s in self.shifts if np.isfinite(s.size)), default=np.nan)
        row["one_class"] = "; ".join(f"{where}: {', '.join(names)}" for where, names in lost.items())
        return row | {"asks": self.asks, "verdict": self.verdict(), "hash": "" if split is None else split.hash}


def _named(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more targets" if len(names) > 3 else "")
