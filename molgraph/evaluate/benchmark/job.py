"""Describe the work of a cell's process, its outcome and its machine, and make and fit the cell's method."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from molgraph.base.contracts import Generator, Trainable
from molgraph.base.parameters import check_params
from molgraph.base.registry import get
from molgraph.base.seeds import derive
from molgraph.base.version import package_versions
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splits
from molgraph.data.table import Table

CPU = (None, "cpu")
PACKAGES = [
    "numpy",
    "pandas",
    "scikit-learn",
    "torch",
    "rdkit",
    "lightning",
    "xgboost",
    "xgboost-cpu",
    "catboost",
    "gpytorch",
    "optuna",
]
VALID_SHARE = 0.1  # of the training rows, for methods that stop early by them


@dataclass(frozen=True)
class Job:
    """The work of one cell: files, method, search and budget."""

    name: str
    folder: str  # where the process writes; the runner makes it, and renames it when all is there
    table: str  # a file of table_parquet
    split: str  # the file of the frozen split
    factory: str  # dotted name of a function from a method's name and parameters to the method, module:function
    method: str
    imports: tuple[str, ...] = ()  # modules that register methods
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] | None = None  # the entity columns that the method is given; None for all
    seed: int = 0
    search: Mapping[str, Any] | None = None
    metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of each target, the one that leads first
    threads: int = 1
    kind: str = "method"  # or generator
    draws: int = 0  # of a generator
    most_train: int | None = None  # training molecules that a generator is given
    store: str | None = None  # a folder for features that the dataset's cells share
    seconds: float = 3600.0
    memory_gb: float = 8.0

    @property
    def on_cpu(self) -> bool:
        """Whether it asks for no device but the processor."""
        inner = self.params.get("params")
        asked = [self.params.get("device"), inner.get("device") if isinstance(inner, Mapping) else None]
        return all(device in CPU for device in asked)

    def make(self, params: Mapping[str, Any], seed: int) -> Any:
        """The method or generator with these parameters, and the run's settings (seed, threads, store) that it has."""
        make = make_generator if self.kind == "generator" else load_factory(self.factory)
        method: Trainable = make(self.method, **params)
        run = {"seed": seed, "threads": self.threads, "store": self.store}
        known = method.param_names()
        method.set_params(**{k: v for k, v in run.items() if k in known and k not in params and v is not None})
        return method


@dataclass(frozen=True)
class Outcome:
    """How a cell ended."""

    status: str  # ok, crashed, timeout, memory or refused; disk, a full one, ends the run
    reason: str  # one line where it is not ok
    found: Mapping[str, Any] = field(default_factory=dict)  # what the process told: seconds, notes, parameters chosen
    seconds: float = 0.0
    cpu_seconds: float | None = None
    peak_mb: float | None = None


def load_factory(dotted: str) -> Any:
    """The function of a dotted name ``module:function``."""
    module, _, name = dotted.partition(":")
    return getattr(import_module(module), name)


def maker(kind: str, factory: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a method, or a generator, from its name and parameters."""
    return factory if kind == "method" else make_generator


def make_generator(name: str, **params: Any) -> Generator:
    """A registered generator with these parameters, which are checked."""
    cls = get("generator", name)
    check_params(cls, params, owner=name)
    made: Generator = cls(**params)
    made.check_params()
    return made


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


def strip_labels(table: Table, inputs: Sequence[str] | None = None) -> Table:
    """The same rows without labels and targets, with the entity columns ``inputs`` alone where they are given.

    Example:
        >>> from molgraph.data.table import make_table
        >>> from molgraph.base.contracts import Target
        >>> hidden = strip_labels(make_table(["C"], targets=(Target("y"),), y=[1.0]))
        >>> hidden.y is None, hidden.targets
        (True, ())
    """
    return replace(_of(table, inputs), y=None, targets=(), packed={})


def fit(
    method: Trainable,
    train: Table,
    valid: Table | None,
    seed: int,
    outer: Split,
    inputs: Sequence[str] | None = None,
) -> None:
    """Fit on training rows; a method that stops early by validation rows gets a tenth of them where there are none.

    The tenth is divided off as ``outer`` divided the table, and from whole rows, so that it does not depend on the
    entity columns (``inputs``) that are read.
    """
    if not method.uses_valid:
        method.fit(_of(train, inputs))
        return
    if valid is None or not len(valid):
        (cut,) = inner_splits(train, outer, derive(seed, "valid") % 2**32, share=VALID_SHARE, part="valid")
        train, valid = train.take(cut.train), train.take(cut.valid)
    method.fit(_of(train, inputs), _of(valid, inputs))


def _of(table: Table, inputs: Sequence[str] | None) -> Table:
    return table if inputs is None else table.with_entities(inputs)
