"""Describe the job of a cell's process and its outcome as plain JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, Self

from molgraph.base.contracts import Method

CPU = (None, "cpu")


@dataclass(frozen=True)
class Job:
    """One cell's work.

    Args:
        name: what the cell is called where people read it.
        folder: where the process writes; the runner makes it, and renames it when all is there.
        table: the dataset as ``handed.write_table`` wrote it.
        split: the frozen split.
        factory: dotted name of a function from a method's name and parameters to the method, ``module:function``.
        imports: modules that register methods.
        method: its registered name.
        params: its parameters.
        inputs: the entity columns that it is given; None for all.
        seed: its seed, where it takes one.
        search: how parameters are searched, or None.
        metrics: metrics of each target, the one that leads first; the search follows it.
        threads: of the process.
        store: a folder for features that the dataset's cells share.
        seconds: wall time that it may take.
        memory_gb: memory that its process tree may hold.
    """

    name: str
    folder: str
    table: str
    split: str
    factory: str
    method: str
    imports: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] | None = None
    seed: int = 0
    search: Mapping[str, Any] | None = None
    metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    threads: int = 1
    store: str | None = None
    seconds: float = 3600.0
    memory_gb: float = 8.0

    @property
    def on_cpu(self) -> bool:
        """Whether it asks for no device but the processor."""
        inner = self.params.get("params")
        asked = [self.params.get("device"), inner.get("device") if isinstance(inner, Mapping) else None]
        return all(device in CPU for device in asked)

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Back from JSON."""
        raw = json.loads(text)
        metrics = {name: tuple(each) for name, each in raw["metrics"].items()}
        return cls(**raw | {"imports": tuple(raw["imports"]), "metrics": metrics})


@dataclass(frozen=True)
class Outcome:
    """How a cell ended.

    Args:
        status: ``ok``, ``crashed``, ``timeout``, ``memory`` or ``refused``; ``disk``, a full one, ends the run.
        reason: one line where it is not ok.
        found: what the process said of itself: seconds, notes, parameters chosen.
        seconds: wall time from its start to its end, as the runner saw it.
        cpu_seconds: processor time of its tree, where the system counts it.
        peak_mb: the most memory that its tree held.
    """

    status: str
    reason: str
    found: Mapping[str, Any]
    seconds: float
    cpu_seconds: float | None
    peak_mb: float | None


def load_factory(dotted: str) -> Any:
    """The function of a dotted name ``module:function``.

    Example:
        >>> load_factory("json:dumps") is json.dumps
        True
    """
    module, _, name = dotted.partition(":")
    return getattr(import_module(module), name)


def make(factory: Any, name: str, params: Mapping[str, Any], **run: Any) -> Method:
    """A method with its parameters, and with a run's settings (seed, threads, store) where it has them unset."""
    method: Method = factory(name, **params)
    known = method.param_names()
    method.set_params(**{k: v for k, v in run.items() if k in known and k not in params and v is not None})
    return method
