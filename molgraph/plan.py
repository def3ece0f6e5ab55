"""What a training run is asked to do: keywords and recipes in; one recipe, its table and its split out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from molgraph.base.errors import UsageError
from molgraph.base.recipe import Recipe
from molgraph.data.labels import check_targets
from molgraph.data.read import read_table
from molgraph.data.splits import Split, split_table
from molgraph.data.table import Table

#: keyword of ``train`` -> the recipe's keys that it sets
KEYS: dict[str, tuple[tuple[str, str], ...]] = {
    **{name: (("data", name),) for name in ("smiles", "targets", "id", "weight", "features", "split_column")},
    **{name: (("data", name),) for name in ("on_error", "standardise")},
    "split": (("split", "recipe"),),
    "fractions": (("split", "fractions"),),
    "model": (("model", "name"),),
    "params": (("model", "params"),),
    **{name: (("training", name),) for name in ("epochs", "batch_size", "learning_rate", "patience", "precision")},
    **{name: (("training", name),) for name in ("device", "threads", "ensemble", "baseline", "store")},
    "seed": (("split", "seed"), ("training", "seed")),
}


def recipe_of(recipe: Recipe | str | Path | None, given: Mapping[str, Any]) -> Recipe:
    """A recipe with the keywords of ``train`` that were given laid over it."""
    base = recipe if isinstance(recipe, Recipe) else Recipe() if recipe is None else Recipe.from_toml(recipe)
    values = base.model_dump()
    for name, value in given.items():
        for section, key in KEYS[name]:
            if name in ("targets", "features") and isinstance(value, str):
                value = (value,)
            values[section][key] = {**values[section][key], **value} if name == "params" else value
    return Recipe.from_dict(values)


def read_for_training(data: Any, plan: Recipe) -> Table:
    """The table that a recipe asks for, with its targets."""
    if data is None:
        raise UsageError("no data to learn from", hint="name a file, or put path = ... into the recipe's [data]")
    said = plan.data
    if isinstance(data, Table):
        table = data if said.targets is None else data.with_targets(list(said.targets))
    else:
        table = _read(data, plan)
    check_targets(table)  # before the split, which says no more than that a part is empty
    return table


def _read(data: Any, plan: Recipe) -> Table:
    said = plan.data
    columns: dict[str, Any] = {"smiles": said.smiles, "targets": said.targets, "id": said.id, "weight": said.weight}
    return read_table(
        data,
        **columns,
        features=said.features,
        split=said.split_column,
        on_error=said.on_error,
        need_targets=True,
    )


def divide(table: Table, plan: Recipe) -> Split:
    """The split that a recipe asks for: by a recipe's name, by the table's own column, or as a file says."""
    asked = plan.split.recipe
    options: dict[str, Any] = {"fractions": plan.split.fractions, "seed": plan.split.seed}
    if asked.endswith((".json", ".csv")):
        return split_table(table, "file", path=asked, **options)
    if plan.data.split_column is not None and asked not in ("time", "group"):
        asked = "column"
    return split_table(table, asked, **options)
