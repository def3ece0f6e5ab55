"""Draw from a generator at several temperatures, and compare whole frontiers of quality and diversity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.contracts import Generator
from molgraph.base.csv_text import csv_text
from molgraph.base.errors import (
    BadValueError,
    EmptyError,
    MissingOptionError,
    UnknownNameError,
    UnsupportedError,
    nearest,
)
from molgraph.base.paths import check_ending, write_whole
from molgraph.evaluate.generation.embeddings import check_embedding, default_embedding
from molgraph.evaluate.generation.judge import (
    HALVES,
    half_samples,
    interval,
    known_keys,
    reference_sample,
    standardised,
)
from molgraph.evaluate.generation.measures import MEASURES, Comparison, Measure, chosen
from molgraph.evaluate.generation.sample import describe
from molgraph.evaluate.statistics import Interval

TEMPERATURES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
DIVERSITY = "int_div"
GRID = 101  # matched diversities


@dataclass(frozen=True)
class Sweep:
    """A generator's metrics at several temperatures.

    Args:
        name: the generator's.
        temperatures: ascending.
        n: draws at each.
        values: name of a measure -> float [temperatures, 1 + halves]: of all draws, then of half-samples.
        standardiser: what all molecules went through before they were compared.
    """

    name: str
    temperatures: tuple[float, ...]
    n: int
    values: Mapping[str, np.ndarray]
    standardiser: str = "none"

    @property
    def about(self) -> str:
        """How the numbers were made, in words."""
        compared = "as written" if self.standardiser == "none" else f"standardised ({self.standardiser})"
        return f"{self.n:,} draws a temperature; molecules {compared}"

    def column(self, name: str) -> np.ndarray:
        """float [temperatures, 1 + halves] of a measure, turned so that more is better."""
        if name not in self.values:
            raise UnknownNameError(f"the sweep has no {name!r}", hint=nearest(name, self.values))
        return self.values[name] * (-1 if _measure(name).higher is False else 1)

    def front(self, quality: str | None = None, diversity: str = DIVERSITY) -> list[float]:
        """The temperatures of the Pareto front: no other one is better in both."""
        q, d = self.column(quality or telling_quality(self))[:, 0], self.column(diversity)[:, 0]
        return [self.temperatures[i] for i in _front(q, d)]

    def to_frame(self) -> pd.DataFrame:
        """A row a temperature: each measure with the ends of its 95% interval."""
        columns: dict[str, list[float]] = {"temperature": list(self.temperatures)}
        for name, values in self.values.items():
            intervals = [interval(row) for row in values]
            columns |= {name: [m.value for m in intervals], f"{name}_low": [m.low for m in intervals]}
            columns[f"{name}_high"] = [m.high for m in intervals]
        return pd.DataFrame(columns)

    def save(self, path: str | Path, *, quality: str | None = None, diversity: str = DIVERSITY) -> Path:
        """Write the curve as a picture (.png, .svg), or the frame (.csv)."""
        return _save(path, [self], quality or telling_quality(self), diversity, self.to_frame())

    def picture(self, form: str, quality: str, diversity: str = DIVERSITY) -> bytes:
        """The curve as ``png`` or ``svg``."""
        return _picture([self], quality, diversity, form)

    def __repr__(self) -> str:
        shown = self.to_frame().set_index("temperature")[list(self.values)]
        return f"Sweep of {self.name}, {self.n:,} draws a temperature\n{shown.to_string(float_format='{:.3f}'.format)}"


@dataclass(frozen=True)
class FrontierReport:
    """Two frontiers, compared at every diversity that both reach.

    Args:
        a, b: the sweeps.
        quality, diversity: names of the measures on the two axes.
        grid: float [k], matched diversities, turned so that more is better; empty where there is none.
        difference: quality of b less that of a, an interval at each of them.
        area: the mean of the difference over the grid.
    """

    a: Sweep
    b: Sweep
    quality: str
    diversity: str
    grid: np.ndarray
    difference: tuple[Interval, ...]
    area: Interval

    @property
    def b_dominates(self) -> float:
        """Share of the matched diversities at which b is better, its interval above 0."""
        return float(np.mean([interval.low > 0 for interval in self.difference])) if self.difference else float("nan")

    @property
    def a_dominates(self) -> float:
        """Share of the matched diversities at which a is better."""
        return float(np.mean([interval.high < 0 for interval in self.difference])) if self.difference else float("nan")

    @property
    def tie(self) -> bool:
        """Whether the areas under the two frontiers cannot be told apart."""
        return bool(self.area.low <= 0 <= self.area.high)

    @property
    def sentence(self) -> str:
        """Which frontier lies above the other, in words."""
        if not self.difference:
            return f"{self.a.name} and {self.b.name} reach no diversity in common: sweep more temperatures"
        label, other = _measure(self.quality).label, _measure(self.diversity).label
        share = f"{self.b.name} dominates {self.a.name} at {self.b_dominates:.0%} of matched {other}, "
        share += f"and is dominated at {self.a_dominates:.0%}"
        gap = f"mean difference of {label} {self.area.value:+.4f} ({self.area.low:+.4f} to {self.area.high:+.4f})"
        return f"{share}; {gap}: {'a tie' if self.tie else 'not a tie'}"

    def to_frame(self) -> pd.DataFrame:
        """A row a matched diversity: the difference of quality, b less a, with its interval."""
        sign = -1 if _measure(self.diversity).higher is False else 1
        return pd.DataFrame(self.difference, columns=["difference", "low", "high"]).assign(diversity=sign * self.grid)

    def save(self, path: str | Path) -> Path:
        """Write both curves as a picture (.png, .svg), or the frame (.csv)."""
        return _save(path, [self.a, self.b], self.quality, self.diversity, self.to_frame())

    def __repr__(self) -> str:
        return self.sentence


def sweep_temperatures(
    name: str,
    generator: Generator,
    temperatures: Sequence[float] = TEMPERATURES,
    *,
    n: int = 1000,
    reference: Sequence[str] | None = None,
    train: Sequence[str] | None = None,
    embedding: str | None = None,
    measures: Sequence[str] | None = None,
    halves: int = HALVES,
    seed: int = 0,
    standardiser: str = "none",
    each: Callable[[Sweep], None] | None = None,
) -> Sweep:
    """Draw ``n`` at each temperature, the same seed at each, and measure them; see ``molgraph.temperature_sweep``."""
    if "temperature" not in generator.param_names():
        hint = "sweep a generator that draws from a softmax"
        raise UnsupportedError(f"{generator.name} has no temperature", hint=hint)
    asked = tuple(sorted({float(each) for each in temperatures}))
    if not asked:
        raise MissingOptionError("no temperatures are given", hint="as in 0.5,0.75,1,1.25,1.5")
    if n < 2:
        raise BadValueError(f"{n} draws a temperature tell nothing", hint="ask for 1000 or more")
    space = default_embedding() if embedding is None else embedding
    check_embedding(space)
    before, rows = generator.get_params(), list[dict[str, np.ndarray]]()
    try:
        for temperature in asked:  # refused before the first draw
            generator.set_params(temperature=temperature).check_params()
        theirs = None if reference is None else reference_sample(reference, standardiser=standardiser)
        known = None if train is None else known_keys(standardised(train, standardiser)) - {""}
        masks = half_samples(n, halves, seed)
        for temperature in progress.track(asked, label=name):
            generator.set_params(temperature=temperature)
            drawn = standardised(generator.sample(n, seed), standardiser)
            compared = Comparison(describe(drawn, f"{name} at {temperature:g}"), theirs, known, space)
            wanted = [m for m in chosen(measures) if m.needs in ("", *compared.known)]
            rows.append({m.name: m.values(compared, masks) for m in wanted})
            values = {m: np.stack([row[m] for row in rows]) for m in rows[0]}
            sweep = Sweep(name, asked[: len(rows)], n, values, standardiser)
            if each is not None:
                each(sweep)
    finally:
        generator.set_params(**before)
    return sweep


def telling_quality(*sweeps: Sweep) -> str:
    """The measure of quality that tells most of what the sweeps have.

    Fréchet's distance where there was a reference; else validity; of generators that draw nothing invalid, at all
    temperatures, how many molecules pass the filters.
    """
    in_all = [name for name in ("frechet", "valid", "filters") if all(name in sweep.values for sweep in sweeps)]
    perfect = all((sweep.values["valid"][:, 0] == 1).all() for sweep in sweeps if "valid" in sweep.values)
    chosen = [name for name in in_all if name != "valid" or not perfect]
    return (chosen or in_all or ["valid"])[0]


def frontier_report(a: Sweep, b: Sweep, *, quality: str | None = None, diversity: str = DIVERSITY) -> FrontierReport:
    """Compare two generators along their whole frontiers, as one temperature of each compares nothing.

    At each diversity that both reach, the quality of a generator is that of its Pareto front there, linear between two
    temperatures (a mixture of the two draws reaches it). Caccia et al. 2020, "Language GANs Falling Short".

    Args:
        a, b: what ``temperature_sweep`` gave.
        quality: a measure's name, such as ``valid``, ``snn`` or ``frechet``; by default ``telling_quality``.
        diversity: another one, such as ``int_div``, ``unique`` or ``novel``.

    Raises:
        UnknownNameError: a sweep lacks a measure. EmptyError: too few temperatures gave molecules.

    Example:
        >>> flat = np.array([[0.5], [0.7], [0.9]])
        >>> one = Sweep("one", (0.5, 1.0, 1.5), 9, {"int_div": flat, "valid": 1 - flat})
        >>> two = Sweep("two", (0.5, 1.0, 1.5), 9, {"int_div": flat, "valid": 1.1 - flat})
        >>> round(frontier_report(one, two).area.value, 6)
        0.1
    """
    quality = quality or telling_quality(a, b)
    pairs = [(sweep.column(quality), sweep.column(diversity)) for sweep in (a, b)]
    fronts = [_front(q[:, 0], d[:, 0]) for q, d in pairs]
    if min(map(len, fronts)) < 1:
        raise EmptyError("a sweep has no temperature with molecules", hint="sweep lower temperatures")
    reach = [(d[front, 0].min(), d[front, 0].max()) for (_, d), front in zip(pairs, fronts, strict=True)]
    low, high = max(bounds[0] for bounds in reach), min(bounds[1] for bounds in reach)
    nothing = Interval(float("nan"), float("nan"), float("nan"))
    if low > high:
        return FrontierReport(a, b, quality, diversity, np.zeros(0), (), nothing)
    grid, draws = np.linspace(low, high, GRID), min(q.shape[1] for q, _ in pairs)
    curves = [
        np.stack([np.interp(grid, *_ordered(d[front, k], q[front, k])) for k in range(draws)])
        for (q, d), front in zip(pairs, fronts, strict=True)
    ]
    gap = curves[1] - curves[0]  # [1 + halves, grid]
    return FrontierReport(
        a, b, quality, diversity, grid, tuple(interval(column) for column in gap.T), interval(gap.mean(axis=1))
    )


def _front(quality: np.ndarray, diversity: np.ndarray) -> np.ndarray:
    """Rows that no other one beats in both, by diversity."""
    rows = np.flatnonzero(np.isfinite(quality) & np.isfinite(diversity))
    q, d = quality[rows], diversity[rows]
    beaten = [((q >= a) & (d >= b) & ((q > a) | (d > b))).any() for a, b in zip(q, d, strict=True)]
    kept = rows[~np.array(beaten, dtype=bool)]
    return kept[np.argsort(diversity[kept])]


def _ordered(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(x)
    return x[order], y[order]


def _measure(name: str) -> Measure:
    return next(measure for measure in MEASURES if measure.name == name)


def _axis(name: str) -> str:
    """A measure as an axis is labelled, with a word where less is better."""
    measure = _measure(name)
    return f"{measure.label} (lower is better)" if measure.higher is False else measure.label


def _save(path: str | Path, sweeps: Sequence[Sweep], quality: str, diversity: str, frame: pd.DataFrame) -> Path:
    path = Path(path)
    check_ending(path, ".png", ".svg", ".csv")
    if path.suffix == ".csv":
        return write_whole(path, csv_text(frame))
    return write_whole(path, _picture(sweeps, quality, diversity, path.suffix[1:]))


def _picture(sweeps: Sequence[Sweep], quality: str, diversity: str, form: str) -> bytes:
    from molgraph.evaluate.generation.report_frontier import draw_frontier  # with matplotlib, which few runs need

    curves = [(s.name, s.temperatures, s.values[diversity], s.values[quality], s.front(quality, diversity))
              for s in sweeps]  # fmt: skip
    return draw_frontier(curves, _axis(diversity), _axis(quality), form)
