"""Tiny methods for tests of benchmarks: good ones, and ones that crash, sleep, hog memory or peek."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.errors import DataError, UnknownNameError, nearest
from molgraph.base.search_space import Categorical, Float, Int
from molgraph.data.table import Table

FACTORY = "tests.evaluate.odd_methods:make"


class Ridge(Method):
    """Ridge regression on letter counts of the SMILES and the table's own features; ``log`` gets a line a fit."""

    name = "ridge"

    def __init__(self, alpha: float = 1.0, log: str | None = None, seed: int = 0, noise: float = 0.0) -> None:
        self.alpha, self.log, self.seed, self.noise = alpha, log, seed, noise

    @classmethod
    def space(cls) -> dict[str, Any]:
        return {"alpha": Float(1e-3, 1e6, log=True)}

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Ridge:
        note(self.log, {"fit": [str(i) for i in table.ids], "valid": None if valid is None else len(valid)})
        self.targets = table.row_targets
        x = letters(table)
        self.centre = x.mean(axis=0)
        use = [np.isfinite(column) for column in table.y.T]
        self.weights = [self._solve(x[u] - self.centre, y[u]) for u, y in zip(use, table.y.T, strict=True)]
        return self

    def _solve(self, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        if not len(y):
            return float("nan"), np.zeros(x.shape[1])
        grid = x.T @ x + self.alpha * np.eye(x.shape[1])
        return float(y.mean()), np.linalg.solve(grid, x.T @ (y - y.mean()))

    def predict(self, table: Table) -> Prediction:
        assert table.y is None and not table.targets, "labels of rows to predict were handed over"
        note(self.log, {"predict": [str(i) for i in table.ids]})
        x = letters(table) - self.centre
        value = np.stack([mean + x @ w for mean, w in self.weights], axis=1)
        value += self.noise * np.random.default_rng(self.seed).normal(size=value.shape)
        value[~table.ok] = np.nan
        return Prediction(table.ids, self.targets, value, table.status, table.reason)

    def state(self) -> State:
        return State({}, {})

    @classmethod
    def from_state(cls, state: State) -> Ridge:
        return cls()


class Early(Ridge):
    """Says that it stops early by validation rows."""

    name, uses_valid = "early", True


class Steps(Ridge):
    """A space of every kind of range; whole numbers above 2 fail."""

    name = "steps"

    def __init__(self, depth: int = 1, kind: str = "a", alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.depth, self.kind = depth, kind

    @classmethod
    def param_names(cls) -> tuple[str, ...]:
        return ("depth", "kind", "alpha")

    @classmethod
    def space(cls) -> dict[str, Any]:
        return {"depth": Int(1, 4), "kind": Categorical(("a", "b")), "alpha": Float(0.1, 10.0)}

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Steps:
        if self.depth > 2:
            raise DataError("too deep")
        super().fit(table)
        return self


class Odd(Ridge):
    """Ends in the way that ``how`` says."""

    name = "odd"

    def __init__(self, how: str = "raise", log: str | None = None, when: str | None = None) -> None:
        super().__init__(log=log)
        self.how, self.when = how, when

    @classmethod
    def param_names(cls) -> tuple[str, ...]:
        return ("how", "log", "when")

    @classmethod
    def space(cls) -> dict[str, Any]:
        return {}

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Odd:
        if self.when is None or Path(self.when).exists():
            WAYS[self.how]()
        super().fit(table)
        return self

    def predict(self, table: Table) -> Prediction:
        found = super().predict(table)
        if self.how == "declines":  # three rows of four
            found.value[np.arange(len(table)) % 4 > 0] = np.nan
        if self.how != "short":
            return found
        half = slice(None, len(table) // 2)
        return Prediction(found.ids[half], found.targets, found.value[half], found.status[half], found.reason[half])


def _raise() -> None:
    raise ValueError("no such\nthing")


def _refuse() -> None:
    raise DataError("this table is not for me", hint="take another")


def _exit() -> None:
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    os._exit(3)


def _hog() -> None:
    held = bytearray(700_000_000)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(60)


def _child_hogs() -> None:
    code = "import time; a = bytearray(700_000_000); a[::4096] = b'x' * len(a[::4096]); time.sleep(60)"
    subprocess.run([sys.executable, "-c", code], check=False)


WAYS = {
    "prints": lambda: print("µ"),
    "raise": _raise,
    "refuse": _refuse,
    "exit": _exit,
    "sleep": lambda: time.sleep(60),
    "hog": _hog,
    "child_hogs": _child_hogs,
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "memory_error": lambda: (_ for _ in ()).throw(MemoryError("too big")),
    "exits": lambda: sys.exit(0),
    "short": lambda: None,
    "declines": lambda: None,
    "slow": lambda: time.sleep(0.15),
}
KNOWN = {cls.name: cls for cls in (Ridge, Early, Steps, Odd)}


def make(name: str, **params: Any) -> Method:
    """A method of this page."""
    if name not in KNOWN:
        raise UnknownNameError(f"no model is named {name!r}", hint=nearest(name, KNOWN))
    for key in params:
        if key not in KNOWN[name].param_names():
            raise UnknownNameError(f"{name} has no parameter {key!r}", hint=nearest(key, KNOWN[name].param_names()))
    return KNOWN[name](**params)


def letters(table: Table) -> np.ndarray:
    """Counts of letters, float64 [n, 27], and the table's own features beside them."""
    counts = [[str(s).lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz="] for s in table.smiles]
    x = np.array(counts, dtype=np.float64).reshape(len(table), 27)
    return x if table.features is None else np.concatenate([x, table.features], axis=1)


def note(log: str | None, words: dict[str, Any]) -> None:
    """A line in a file, in one write, so that processes do not mix theirs."""
    if log is not None:
        with open(log, "ab", buffering=0) as file:
            file.write((json.dumps(words) + "\n").encode())
