"""List the versions, hashes, budgets and method settings of a benchmark, and the rows that others submitted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from molgraph.base.contracts import RUN_ONLY
from molgraph.evaluate.benchmark.run_folder import Records


def facts_of(records: Records) -> dict[str, str]:
    """What a repeat needs, from the cells' manifests."""
    manifests, recipe = [record.manifest for record in records.done], records.recipe
    out = {"recipe": f"{recipe.name}.toml", "recipe sha256": hashlib.sha256(recipe.to_toml().encode()).hexdigest()}
    days = sorted(str(m["made"])[:10] for m in manifests if m.get("made"))
    if days:
        out["computed"] = " to ".join(dict.fromkeys((days[0], days[-1])))
    named: dict[str, dict[str, None]] = {}
    for m in manifests:
        for name, value in dict(m.get("versions") or {}).items():
            named.setdefault(name, {})[str(value)] = None
    out |= {f"version of {name}": ", ".join(values) for name, values in named.items()}
    out["machine"] = "; ".join(filter(None, dict.fromkeys(_machine(m.get("machine") or {}) for m in manifests)))
    budgets, budget = {str(m["budget"]) for m in manifests if m.get("budget")}, recipe.budget
    out["budget of a cell"] = f"{budget.seconds:g} s, {budget.memory_gb:g} GB" + "; mixed" * (len(budgets) > 1)
    cpu = sum(float(m["cpu_seconds"]) for m in manifests if m.get("cpu_seconds"))
    out["CPU time of all cells"] = f"{cpu / 3600:.1f} h" if cpu >= 3600 else f"{cpu / 60:.1f} min"
    resolved = {row: each for problem in records.problems.values() for row, each in problem.resolved.items()}
    searched = {method.row: method.search for method in recipe.method}
    for row, each in resolved.items():
        tuned = f"; {search.trials} trials of a search" if (search := searched.get(row)) is not None else ""
        out[f"settings of {row}"] = in_words(each) + tuned
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


def entered_rows(records: Records) -> dict[tuple[str, str], str]:
    """(row, dataset) -> how a row that others submitted came about, in their words."""
    found = {}
    for record in records.done:
        if (about := record.manifest.get("external")) is not None:
            said = {
                key: about[key] for key in ("code", "commit", "tuning", "pretraining", "hardware") if about.get(key)
            }
            words = "; ".join([*record.manifest["notes"], *(f"{key} {value}" for key, value in said.items())])
            found[record.cell.method, record.cell.dataset] = (
                f"{record.cell.method} was entered by its predictions: {words}"
            )
    return found


def _machine(machine: Mapping[str, Any]) -> str:
    return ", ".join(f"{value} cores" if key == "cores" else str(value) for key, value in machine.items() if value)
