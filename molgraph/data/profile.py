"""Describe the values of a target: range, histogram, balance of classes, outliers, activity cliffs, noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from molgraph.base.contracts import Kind, Target
from molgraph.base.seeds import generator
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import BitTable
from molgraph.data.replicates import replicate_sd

BLOCKS = " ▁▂▃▄▅▆▇█"
BINS = 24
OUTLIER_Z = 3.5  # Iglewicz and Hoaglin 1993, How to Detect and Handle Outliers
WIDE = 4  # decades of positive values that are better learned as logarithms
SIMILAR, APART = 0.85, 2.0  # of a cliff: Tanimoto similarity, and standard deviations between the values
CLIFF_MOLECULES = 4_000  # whose pairs are looked at; of more, a sample
_STEP = 500


@dataclass(frozen=True)
class Profile:
    """What the values of one target look like; of classes, range, mean and deviation are NaN."""

    target: str  # its name
    kind: Kind
    n: int  # rows with a value
    missing: int  # rows without one
    low: float = float("nan")  # of the values, as the next four
    median: float = float("nan")
    high: float = float("nan")
    mean: float = float("nan")
    sd: float = float("nan")
    # counts in equal bins from low to high, as one line of blocks; of logarithms, over many decades
    histogram: str = ""
    classes: dict[str, int] = field(default_factory=dict)  # values of each class, by label
    noise: float = float("nan")  # standard deviation of one measurement, by replicates
    noise_df: int = 0  # its degrees of freedom
    decades: float = 0.0  # log10 of the largest over the smallest value, where all are positive; else 0

    def lines(self) -> list[str]:
        """The profile in a few short lines."""
        missing = f", {self.missing:,} missing" if self.missing else ""
        lines = [f"{self.target} ({self.kind}): {self.n:,} values{missing}"]
        if not self.n:
            return lines
        if self.classes:
            shown = sorted(self.classes.items(), key=lambda item: -item[1])[:6]
            more = len(self.classes) - len(shown)
            counts = ", ".join(f"{label} {n:,} ({n / self.n:.1%})" for label, n in shown)
            return [*lines, f"  classes {counts}" + (f" and {more:,} more classes" if more else "")]
        scale = ", of logarithms" if self.decades > WIDE else ""
        lines.append(f"  {self.low:.4g} {self.histogram} {self.high:.4g}{scale}")
        lines.append(f"  mean {self.mean:.4g}, median {self.median:.4g}, standard deviation {self.sd:.4g}")
        if self.noise_df and self.noise:
            lines.append(f"  noise of one measurement {self.noise:.3g}, by replicates ({self.noise_df:,} df)")
        if self.decades > WIDE:
            lines.append(f"  positive values over {self.decades:.1f} decades: train --log learns their logarithms")
        return lines


def profile(target: Target, y: np.ndarray, molecule: np.ndarray) -> Profile:
    """Describe one target; rows of one molecule (-1: unreadable) have one number in ``molecule``.

    Example:
        >>> p = profile(Target("y"), np.array([1.0, 2.0, 4.0, np.nan]), np.array([0, 0, 1, 2]))
        >>> p.n, p.missing, p.median, round(p.noise, 3), p.noise_df
        (3, 1, 2.0, 0.707, 1)
    """
    values = y[np.isfinite(y)]
    start = (target.name, target.kind, len(values), len(y) - len(values))
    if target.kind in ("binary", "multiclass"):
        labels = target.classes or ("0", "1")
        return Profile(*start, classes={label: int((values == code).sum()) for code, label in enumerate(labels)})
    if not len(values):
        return Profile(*start)
    least, median, most, mean = map(float, (values.min(), np.median(values), values.max(), values.mean()))
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    noise, df = replicate_sd(molecule[molecule >= 0], y[molecule >= 0])
    shown, decades = draw(scaled(target, values)), decades_of(values)
    return Profile(*start, least, median, most, mean, sd, shown, {}, noise, df, decades)


def draw(values: np.ndarray) -> str:
    """A histogram in one line; a bin with any value shows at least the lowest block.

    Example:
        >>> draw(np.array([0.0, 1.0, 1.0, 1.0]))[::BINS - 1]
        '▃█'
    """
    small = values / (np.abs(values).max() or 1.0)  # so that no range overflows
    bins = np.minimum((small - small.min()) / (np.ptp(small) or 1.0) * BINS, BINS - 1).astype(int)
    counts = np.bincount(bins, minlength=BINS)
    level = np.ceil(counts / counts.max() * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[i] for i in level)


def decades_of(values: np.ndarray) -> float:
    """Powers of ten between the smallest and the largest value; 0 where not all are positive.

    Example:
        >>> decades_of(np.array([0.1, 1000.0])), decades_of(np.array([-1.0, 1000.0]))
        (4.0, 0.0)
    """
    if not len(values) or values.min() <= 0:
        return 0.0
    return float(np.log10(values.max()) - np.log10(values.min()))


def scaled(target: Target, y: np.ndarray) -> np.ndarray:
    """The values as they are compared: their logarithms where they go over many decades.

    Example:
        >>> scaled(Target("y"), np.array([1.0, 1e5])), scaled(Target("y"), np.array([1.0, 2.0]))
        (array([0., 5.]), array([1., 2.]))
    """
    wide = target.kind == "regression" and decades_of(y[np.isfinite(y)]) > WIDE
    return np.log10(y) if wide else y


def robust_z(values: np.ndarray) -> np.ndarray:
    """Distances from the median in robust standard deviations; 0 where the values have no spread.

    Half the values or more may be equal; then the mean deviation stands for the median one (Iglewicz and Hoaglin).

    Example:
        >>> robust_z(np.array([1.0, 2.0, 3.0, 100.0])).round(1).tolist()
        [-1.0, -0.3, 0.3, 65.8]
    """
    if not len(values):
        return values
    away = values - np.median(values)
    spread = 1.4826 * np.median(np.abs(away)) or 1.2533 * np.abs(away).mean()
    return away / spread if spread else np.zeros(len(values))


class Cliff(NamedTuple):
    """Two similar molecules whose values lie far apart: their rows, and their Tanimoto similarity."""

    first: int
    second: int
    similarity: float


class Pairs(NamedTuple):
    """Similar pairs of molecules: rows of the first and the second, their similarity, and how many were compared."""

    first: np.ndarray
    second: np.ndarray
    similarity: np.ndarray
    n_molecules: int


def similar_pairs(smiles: np.ndarray, rows: np.ndarray, seed: int = 0) -> Pairs:
    """All pairs of different molecules (object [n]) with alike Morgan fingerprints, by their rows (int64 [n]).

    Of more than 4,000 molecules a sample is compared.
    """
    if len(rows) > CLIFF_MOLECULES:
        chosen = np.sort(generator(seed, "activity cliffs").choice(len(rows), CLIFF_MOLECULES, replace=False))
        smiles, rows = smiles[chosen], rows[chosen]
    table = BitTable(morgan(smiles.tolist()).x)
    blocks = [np.empty((0, 3))]
    for start in range(0, len(rows), _STEP):
        similarity = table.take(slice(start, start + _STEP)).similarity(table)
        i, j = np.nonzero(similarity >= SIMILAR)
        above = i + start < j
        blocks.append(np.stack([i[above] + start, j[above], similarity[i[above], j[above]]], axis=1))
    pairs = np.concatenate(blocks)
    first, second = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    return Pairs(rows[first], rows[second], pairs[:, 2], len(rows))


def cliffs(target: Target, y: np.ndarray, pairs: Pairs) -> list[Cliff]:
    """Pairs whose values (float64 [rows]) lie two standard deviations apart, or whose classes differ; widest first."""
    y = scaled(target, y)
    apart = np.abs(y[pairs.first] - y[pairs.second])
    values = y[np.isfinite(y)]
    least = 0.5 if target.kind in ("binary", "multiclass") else APART * (values.std() if len(values) else np.inf)
    far = np.flatnonzero(apart > max(least, 0.0)) if least else np.arange(0)
    far = far[np.lexsort((pairs.first[far], -pairs.similarity[far], -apart[far]))]
    return [Cliff(int(pairs.first[k]), int(pairs.second[k]), float(pairs.similarity[k])) for k in far]
