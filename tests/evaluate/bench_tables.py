"""What tests of benchmarks stand on: a small table, a recipe for it, and a run of that recipe with tiny methods."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.data.table import Table, make_table
from molgraph.evaluate.benchmark.local import LocalEngine
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.run import Ran, run_benchmark
from tests.evaluate.odd_methods import FACTORY

KEYS = ["dataset", "split", "repeat", "fold", "seed", "method", "target", "metric"]
GROUPS = ("O", "N", "S", "Cl", "F", "Br", "C(=O)O", "C#N", "c1ccccc1", "C=C")


def small(n: int = 60, seed: int = 0, kind: str = "regression", **columns: Any) -> Table:
    """Chains with end groups, and a value that follows the number of carbons (or whether it is above the median)."""
    smiles = ["C" * (1 + i // len(GROUPS)) + GROUPS[i % len(GROUPS)] for i in range(n)]
    y = np.array([s.count("C") + s.count("c") for s in smiles], dtype=float)
    y += np.random.default_rng(seed).normal(size=n) * 0.2
    if kind == "binary":
        y = (y > np.median(y)).astype(float)
    return make_table(smiles, targets=(Target("y", kind),), y=y, **columns)


def recipe(*methods: str | dict[str, Any], **more: Any) -> BenchRecipe:
    """One table called ``small``, five folds, those methods."""
    given = [{"name": m} if isinstance(m, str) else m for m in methods]
    values: dict[str, Any] = {"name": "test", "datasets": ["small"], "split": [{"splitter": "random", "folds": 5}]}
    return BenchRecipe.from_dict(values | {"method": given} | more)


@cache
def engine() -> LocalEngine:
    """One fork server for all tests of a process."""
    made = LocalEngine((FACTORY.split(":")[0],), 2)
    atexit.register(made.close)
    return made


def go(out: Path, asked: BenchRecipe, tables: dict[str, Table] | None = None, **options: Any) -> Ran:
    """Run it on ``small``, or other tables, where no engine is named on the one that all tests share."""
    options = {"engine": engine(), "factory": FACTORY} | options
    return run_benchmark(asked, out, tables=tables or {"small": small()}, **options)


def three_and_a_failure(out: Path, tables: dict[str, Table], **more: Any) -> Path:
    """A run of three good methods, one of them the forest by name, and one that fails; its folder."""
    good = {"name": "ridge", "label": "random_forest"}
    noisy = [{"name": "ridge", "label": f"noise{n}", "params": {"noise": float(n)}} for n in (1, 3)]
    fails = {"name": "odd", "label": "broken", "params": {"how": "raise"}}
    go(out, recipe(good, *noisy, fails, datasets=list(tables), **more), tables=tables)
    return out


def plain(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores without what differs from run to run: seconds and memory."""
    kept = scores.drop(columns=["seconds", "cpu_seconds", "peak_mb"])
    return kept.sort_values(KEYS).reset_index(drop=True)
