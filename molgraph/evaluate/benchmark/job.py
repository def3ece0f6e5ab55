"""Describe the work of a cell's process, its outcome and its machine, and make and fit the cell's method."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from molgraph.base.contracts import Generator, Trainable
from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.parameters import check_params
from molgraph.base.registry import get
from molgraph.base.version import package_versions
from molgraph.data.sides import Side, sides_of
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splitter, stopping_rows
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.recipe import BenchMethod, Budget, Generation, RunSection

CPU = (None, "cpu")
_MODELS = ("torch", "rdkit", "lightning", "xgboost", "xgboost-cpu", "catboost", "gpytorch", "optuna")
PACKAGES = ["numpy", "pandas", "scikit-learn", *_MODELS]


@dataclass(frozen=True)
class Job:
    """The work of one cell: its files, and the parts of the recipe that its process needs."""

    folder: str  # where the process writes; the runner makes it, and renames it when all is there
    table: str  # a file of table_parquet
    split: str  # the file of the frozen split
    factory: str  # dotted name of a function from a method's name and parameters to the method, module:function
    method: BenchMethod
    seed: int = 0
    metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of each target, the one that leads first
    run: RunSection = field(default_factory=RunSection)
    budget: Budget = field(default_factory=Budget)
    generation: Generation = field(default_factory=Generation)
    noise: float = 0.0  # standard deviation of the labels, by the dataset's card
    store: str | None = None  # a folder for features that the dataset's cells share
    side: Side | None = None  # the side of pairs that the method is given; all of them without

    @property
    def on_cpu(self) -> bool:
        """Whether it asks for no device but the processor."""
        params = self.method.params
        inner = params.get("params")
        asked = [params.get("device"), inner.get("device") if isinstance(inner, Mapping) else None]
        return all(device in CPU for device in asked)

    def make(self, params: Mapping[str, Any], seed: int) -> Any:
        """The method or generator with these parameters, and the run's settings (seed, threads, store) that it has."""
        method = make_method(self.method, self.factory, params)
        run = {"seed": seed, "threads": self.run.threads, "store": self.store}
        known = method.param_names()
        method.set_params(**{k: v for k, v in run.items() if k in known and k not in params and v is not None})
        return method

    def side_in(self, table: Table) -> Side | None:
        """The side of a whole table's pairs that the method is given; None where it is given all, or named columns."""
        if not self.method.side or self.method.inputs is not None:
            return None
        known = {side.name: side for side in sides_of(table)}
        if self.method.side not in known:
            words = f"the table has no side {self.method.side!r}"
            raise UnknownNameError(
                words, hint=nearest(self.method.side, known) if known else "a row is one thing there"
            )
        return known[self.method.side]

    def given(self, table: Table) -> Table:
        """The rows with those of their entity columns that the method reads, of complexes the atoms of its side."""
        if self.method.inputs is not None:
            return table.with_entities(self.method.inputs)
        return self.side.of(table) if self.side is not None else table

    def hidden(self, table: Table) -> Table:
        """The rows as the method reads them, without labels and targets."""
        return replace(self.given(table), y=None, targets=(), packed={})

    def fit(self, method: Trainable, train: Table, valid: Table | None, outer: Split, seed: int) -> None:
        """Fit on training rows; a method that stops early by validation rows gets a tenth of them if there are none.

        The tenth is divided off as ``outer`` divided the table, by all entity columns, whichever the method reads.
        """
        if getattr(method, "follows_split", False) and "split" not in self.method.params:
            method.set_params(split=inner_splitter(outer))
        if not method.uses_valid:
            method.fit(self.given(train))
            return
        if valid is None or not len(valid):
            train, valid = stopping_rows(train, outer, seed)
        method.fit(self.given(train), self.given(valid))


@dataclass(frozen=True)
class Outcome:
    """How a cell ended."""

    status: str  # ok, crashed, timeout, memory or refused; disk, a full one, ends the run; lost: its server died
    reason: str  # one line where it is not ok
    found: Mapping[str, Any] = field(default_factory=dict)  # what the process told: seconds, notes, parameters chosen
    seconds: float = 0.0
    cpu_seconds: float | None = None
    peak_mb: float | None = None


def make_method(method: BenchMethod, factory: str, params: Mapping[str, Any]) -> Any:
    """A recipe's method or generator with these parameters, which are checked."""
    make_named = make_generator if method.kind == "generator" else resolve_name(factory)
    return make_named(method.name, **params)


def make_generator(name: str, **params: Any) -> Generator:
    """A registered generator with these parameters, which are checked."""
    cls = get("generator", name)
    check_params(cls, params, owner=name)
    generator: Generator = cls(**params)
    generator.check_params()
    return generator


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that a result depends on."""
    return package_versions(PACKAGES)


@cache
def machine() -> dict[str, Any]:
    """What the cells ran on; not its name."""
    info, model = Path("/proc/cpuinfo"), platform.processor() or platform.machine()
    if info.is_file():
        named = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = named[0] if named else model
    return {"system": f"{platform.system()} {platform.machine()}", "cores": os.cpu_count(), "cpu": model}
