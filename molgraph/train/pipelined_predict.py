"""Predict tables one after another, making the graphs of the next ones in other processes meanwhile."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any, Protocol

from molgraph.base.contracts import Method, Prediction, PredictsGraphs
from molgraph.base.cores import cores
from molgraph.data.graph_cache import Graphs
from molgraph.data.standardise import as_given, standardise
from molgraph.data.table import Table
from molgraph.train.inputs import Input, input_graphs
from molgraph.train.model import Model
from molgraph.train.worker_pool import map_ahead

MOST = 8
"""Processes: each holds about 0.2 GB."""


class Predictor(Protocol):
    """What predicts a table: a ``Model``."""

    def predict(self, data: Any) -> Prediction: ...


def predict_tables(
    model: Predictor, tables: Iterator[Table], *, many: bool = False
) -> Generator[tuple[Table, Prediction]]:
    """Every table with its prediction, in order.

    Args:
        model: where it is a ``Model`` whose method ``PredictsGraphs`` and there is more than one table, the graphs are
            made ahead, and the network computes on fewer threads.
        tables: taken one at a time.
        many: whether there was more than one table, some of which an earlier run has predicted. A run that goes on
            must compute as the one before did, since sums may depend on the number of threads.
    """
    first = list(islice(tables, 2))
    tables = chain(first, tables)
    method = model.method if isinstance(model, Model) else None
    if not (many or len(first) > 1) or not isinstance(method, PredictsGraphs) or not method.graph_inputs():
        yield from ((table, model.predict(table)) for table in tables)
        return
    workers, threads = shares(_cores(method))
    read: deque[Table] = deque()

    def remembered() -> Iterator[Table]:
        for table in tables:
            read.append(table)
            yield table

    make = partial(standard_graphs, model.standardiser, method.graph_inputs())
    with _threads(method, threads), closing(map_ahead(make, remembered(), workers)) as made:
        for clean, graphs in made:
            table = read.popleft()
            yield table, as_given(method.predict_graphs(clean, graphs), table, clean, model.standardiser)


def standard_graphs(preset: str, inputs: tuple[Input, ...], table: Table) -> tuple[Table, tuple[Graphs, ...]]:
    """The table standardised, and its graphs: all that comes before a network."""
    clean = standardise(table, preset)
    return clean, input_graphs(clean, inputs)


def shares(cores: int) -> tuple[int, int]:
    """How many processes make graphs, and how many threads the network gets beside them.

    Standardising and reading a molecule costs about three times what its network costs.

    Example:
        >>> [shares(cores) for cores in (1, 2, 4, 8, 16)]
        [(0, 1), (2, 1), (3, 1), (6, 2), (8, 8)]
    """
    if cores < 2 or not sys.executable:
        return 0, cores
    workers = min((3 * cores + 2) // 4, MOST)
    return workers, max(cores - workers, 1)


def _cores(method: Method) -> int:
    """The cores that a method may use: those asked for, else all that this process has."""
    asked = (part.get_params().get("threads") for part in method.with_members)
    return cores(min(filter(None, asked), default=None))


@contextmanager
def _threads(method: Method, threads: int) -> Iterator[None]:
    """A method's threads, and its members', set while the block runs."""
    parts = [part for part in method.with_members if "threads" in part.param_names()]
    before = [part.get_params()["threads"] for part in parts]
    try:
        for part in parts:
            part.set_params(threads=threads)
        yield
    finally:
        for part, asked in zip(parts, before, strict=True):
            part.set_params(threads=asked)
