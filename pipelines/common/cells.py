"""Keep the finished cells of a long comparison in a JSON file, so that a run that was stopped goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.paths import atomic_write


class Cells:
    """The cells of one comparison, each a mapping of what was run to what was found.

    Args:
        path: their file; it is written after each cell.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.all: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []

    def once(self, key: Mapping[str, Any], run: Callable[[], Mapping[str, Any]]) -> None:
        """Run a cell, unless one of these values is there."""
        if any(key.items() <= cell.items() for cell in self.all):
            return
        started = time.perf_counter()
        found = dict(run())
        cell = {**key, **found, "seconds": round(time.perf_counter() - started, 1)}
        self.all.append(cell)
        with atomic_write(self.path, "w") as file:
            file.write("[\n" + ",\n".join(json.dumps(each) for each in self.all) + "\n]\n")
        print(json.dumps(cell), flush=True)

    def of(self, **key: Any) -> list[dict[str, Any]]:
        """The cells with these values."""
        return [cell for cell in self.all if key.items() <= cell.items()]

    def values(self, name: str) -> list[Any]:
        """The different values that the cells have of a name, in the order in which they came."""
        return list(dict.fromkeys(cell[name] for cell in self.all))


def spread(values: Sequence[float], digits: int) -> str:
    """Mean and sample standard deviation in words; the mean alone of one value."""
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def write(path: Path, lines: Sequence[str]) -> None:
    """Write a page and show it."""
    text = "\n".join([*lines, ""])
    with atomic_write(path, "w") as file:
        file.write(text)
    print(text)
