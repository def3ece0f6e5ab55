"""Forecast how long the cells that are left will take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from molgraph.evaluate.benchmark.cells import Cell


class Forecast:
    """Seconds of cells to come: like those of the same dataset and method, else of the method by rows, else of any.

    Args:
        rows: of each dataset.

    Example:
        >>> forecast = Forecast({"a": 10, "b": 20})
        >>> forecast.add(Cell("a", "random", 0, 0, "mean", 0, ""), 3.0)
        >>> forecast.left([Cell("b", "random", 0, 0, "mean", 0, "")], jobs=2)
        3.0
    """

    def __init__(self, rows: Mapping[str, int]) -> None:
        self.rows = rows
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.by_method: dict[str, list[float]] = defaultdict(list)

    def add(self, cell: Cell, seconds: float) -> None:
        """Learn from a cell that ended."""
        self.seconds[cell.dataset, cell.method].append(seconds)
        self.by_method[cell.method].append(seconds / max(1, self.rows[cell.dataset]))

    def left(self, cells: Iterable[Cell], jobs: int) -> float:
        """Seconds until these cells are done, that many at once; 0 where nothing is known yet."""
        if not self.by_method:
            return 0.0
        same = {key: sum(found) / len(found) for key, found in self.seconds.items()}
        method = {key: sum(found) / len(found) for key, found in self.by_method.items()}
        dearest = max(method.values())  # cheap methods come first: what is not known yet will hardly be cheaper
        rates = ((c, method.get(c.method, dearest)) for c in cells)
        whole = sum(same.get((c.dataset, c.method), rate * self.rows[c.dataset]) for c, rate in rates)
        return whole / jobs


def in_words(seconds: float) -> str:
    """A duration as people say it.

    Example:
        >>> in_words(40), in_words(400), in_words(9000)
        ('40 s', '7 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
