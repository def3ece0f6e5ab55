"""List the versions, hashes, budgets and method settings of a benchmark, and the rows that others submitted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pandas as pd

from molgraph.base.contracts import RUN_ONLY
from molgraph.evaluate.benchmark.run_folder import Records


def facts_of(records: Records) -> dict[str, str]:
    """What a repeat needs, from the cells' manifests."""
    manifests, recipe = [record.manifest for record in records.done], records.recipe
    out = {"recipe": f"{recipe.name}.toml", "recipe sha256": hashlib.sha256(recipe.to_toml().encode()).hexdigest()}
    days = sorted(str(m["made"])[:10] for m in manifests if m.get("made"))
    if days:
        out["computed"] = " to ".join(dict.fromkeys((days[0], days[-1])))
    versions = pd.DataFrame([dict(m.get("versions") or {}) for m in manifests])
    for name, each in versions.items():
        out[f"version of {name}"] = ", ".join(each.dropna().astype(str).unique())
    out["machine"] = "; ".join(filter(None, dict.fromkeys(_machine(m.get("machine") or {}) for m in manifests)))
    budgets, budget = {str(m["budget"]) for m in manifests if m.get("budget")}, recipe.budget
    out["budget of a cell"] = f"{budget.seconds:g} s, {budget.memory_gb:g} GB" + "; mixed" * (len(budgets) > 1)
    cpu = sum(float(m["cpu_seconds"]) for m in manifests if m.get("cpu_seconds"))
    out["CPU time of all cells"] = f"{cpu / 3600:.1f} h" if cpu >= 3600 else f"{cpu / 60:.1f} min"
    trials = {m.row: f"; {m.search.trials} trials of a search" for m in recipe.method if m.search is not None}
    for row, each in {row: e for problem in records.problems.values() for row, e in problem.resolved.items()}.items():
        out[f"settings of {row}"] = in_words(each) + trials.get(row, "")
    return out | {f"data hash of {name}": problem.data_hash for name, problem in records.problems.items()}


def in_words(params: Mapping[str, Any]) -> str:
    """Hyper-parameters on one line, without the machine's and those that nobody set.

    Example:
        >>> in_words({"depth": 3, "threads": None, "store": None, "code": "1f", "defaults": {"gin": {"depth": 5}}})
        'depth 3, gin depth 5'
    """
    words = []
    for name, value in params.items():
        if isinstance(value, Mapping):
            inner = in_words(value)
            words += [] if not inner else [inner if name in ("defaults", "params") else f"{name} {inner}"]
        elif value is not None and value != "" and name not in (*RUN_ONLY, "code", "seed"):
            words.append(f"{name} {value}")
    return ", ".join(words)


def entered_rows(records: Records, dataset: str) -> list[str]:
    """How the rows of a dataset that others submitted came about, in their words."""
    found = {}
    for cell, manifest in records.done:
        if cell.dataset == dataset and (about := manifest.get("external")) is not None:
            keys = ("code", "commit", "tuning", "pretraining", "hardware")
            words = [*manifest["notes"], *(f"{key} {about[key]}" for key in keys if about.get(key))]
            found[cell.method] = f"{cell.method} was entered by its predictions: {'; '.join(words)}"
    return list(found.values())


def _machine(machine: Mapping[str, Any]) -> str:
    return ", ".join(f"{value} cores" if key == "cores" else str(value) for key, value in machine.items() if value)
