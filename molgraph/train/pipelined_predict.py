"""Predict tables one after another, making the graphs of the next ones in other processes meanwhile."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar

from molgraph.base.contracts import Prediction, PredictsGraphs, Trainable
from molgraph.base.cores import cores
from molgraph.base.errors import MolgraphError
from molgraph.base.worker import POSSIBLE, Worker, start_worker
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.standardise import as_given, mark_no_molecules, standardise
from molgraph.data.table import Table
from molgraph.train.inputs import Input, input_graphs
from molgraph.train.model import Model

MOST = 8
"""Processes: each holds about 0.2 GB."""
K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")


def predict_tables(model: Any, tables: Iterator[tuple[K, Table]], *, many: bool) -> Generator[tuple[K, Prediction]]:
    """The prediction of every table, in order, each with its key.

    Args:
        model: what predicts. Of a ``Model`` whose method ``PredictsGraphs`` and where there are many tables, the
            graphs are made ahead, and the network computes on fewer threads.
        tables: keys and tables, taken one at a time.
        many: whether the input has more than one table, even if an earlier run has predicted the others: sums may
            depend on the number of threads, and a run that goes on must compute as the one before did.
    """
    method = graph_method(model) if many else None
    if method is None:
        yield from ((key, model.predict(table)) for key, table in tables)
        return
    workers, threads = shares(_cores(method))
    make = partial(standard_graphs, model.standardiser, method.graph_inputs())
    items = (((key, table), table) for key, table in tables)
    with computing_on(method, threads), closing(map_ahead(make, items, workers)) as results:
        for (key, table), (clean, graphs) in results:
            yield key, predict_made(model, table, clean, graphs)


def graph_method(model: Any) -> Any:
    """The method of a model whose graphs can be made ahead, or None."""
    method = model.method if isinstance(model, Model) else None
    return method if isinstance(method, PredictsGraphs) and method.graph_inputs() else None


def predict_made(model: Model, table: Table, clean: Table, graphs: tuple[CachedGraphs, ...]) -> Prediction:
    """The prediction of a table that is standardised and whose graphs are made, with intervals and domain."""
    prediction = model.method.predict_graphs(clean, graphs)  # type: ignore[attr-defined]
    if model.confidence is not None:
        prediction = model.confidence.extend(prediction, clean)
    if model.analogues is not None:
        prediction = model.analogues.correct(prediction, clean)
    return as_given(prediction, table, clean, model.standardiser)


@contextmanager
def computing_on(method: Trainable, threads: int) -> Iterator[None]:
    """Let the networks of a method compute on so many threads meanwhile."""
    parts = {part: part.get_params()["threads"] for part in method.with_members if "threads" in part.param_names()}
    try:
        for part in parts:
            part.set_params(threads=threads)
        yield
    finally:
        for part, asked in parts.items():
            part.set_params(threads=asked)


def network_threads(model: Any, *, many: bool) -> int:
    """The threads on which ``predict_tables`` computes a network, or any other method."""
    if not isinstance(model, Model):
        return 1
    n = _cores(model.method)
    return shares(n)[1] if many and graph_method(model) is not None else n


def predict_shard(model: Any, table: Table, *, many: bool, threads: int) -> Prediction:
    """One of the tables of ``predict_tables``, computed in this process alone, to the same bytes.

    Args:
        model: what predicts.
        table: one of them.
        many: as for ``predict_tables``.
        threads: of ``network_threads`` there.
    """
    method = graph_method(model) if many else None
    if method is None:
        return model.predict(table)
    with computing_on(method, threads):
        return predict_made(model, table, *standard_graphs(model.standardiser, method.graph_inputs(), table))


def standard_graphs(preset: str, inputs: tuple[Input, ...], table: Table) -> tuple[Table, tuple[CachedGraphs, ...]]:
    """The table standardised, and its graphs: all that comes before a network."""
    clean = mark_no_molecules(standardise(table, preset), preset)
    return clean, input_graphs(clean, inputs)


def map_ahead(function: Callable[[T], R], items: Iterable[tuple[K, T]], workers: int) -> Generator[tuple[K, R]]:
    """``function`` of each item, in order and with its key; ``workers`` items are under way while the caller works.

    The processes are fresh interpreters (``molgraph.base.worker``), so nothing is forked beside torch's threads; on
    Windows and with 0 workers there are none. What the function raised for an item is raised when its turn comes.

    Example:
        >>> list(map_ahead(len, [("x", "a"), ("y", "bb")], workers=1))
        [('x', 1), ('y', 2)]
    """
    if workers < 1 or not POSSIBLE:
        yield from ((key, function(item)) for key, item in items)
        return
    idle: list[Worker] = []
    busy: deque[tuple[K, Worker]] = deque()

    def answer() -> tuple[K, R]:
        with _alive():
            result: R = busy[0][1].receive()
        key, worker = busy.popleft()
        idle.append(worker)
        return key, result

    try:
        for key, item in items:
            answers = [answer()] if len(busy) == workers else []
            busy.append((key, idle.pop() if idle else start_worker()))
            with _alive():
                busy[-1][1].send(function, item)
            yield from answers
        while busy:
            yield answer()
    finally:
        for worker in (*idle, *(worker for _, worker in busy)):
            worker.stop()


@contextmanager
def _alive() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        hint = "killed, or out of memory? --threads 1 needs no such process"
        raise MolgraphError("a process that works ahead has died", hint=hint) from None


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


def _cores(method: Trainable) -> int:
    """The cores that a method may use: those asked for, else all that this process has."""
    asked = (part.get_params().get("threads") for part in method.with_members)
    return cores(min(filter(None, asked), default=None))
