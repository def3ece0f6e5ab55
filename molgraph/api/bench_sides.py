"""Add rows of the ligand alone and of the protein alone to a benchmark of models of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from molgraph.base.errors import MolgraphError
from molgraph.base.parts import split_model
from molgraph.data.cards import card
from molgraph.data.datasets import load_dataset
from molgraph.data.sides import Side
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe
from molgraph.train.make_method import make_method
from molgraph.train.one_side import method_sides, one_side

PAIRED = ("pair", "geometry")  # of a card's entity, those whose rows may have two sides


def with_sides(recipe: BenchRecipe, tables: Mapping[str, Table]) -> BenchRecipe:
    """The recipe with a row of each side alone beside each graph model of pairs, where the recipe has none of its own.

    Args:
        recipe: of methods; one of generators, or with ``sides = false``, stays as it is.
        tables: datasets of one's own by name.
    """
    if recipe.generates or not recipe.sides:
        return recipe
    paired = {name: table for name in recipe.datasets if (table := _paired(name, tables)) is not None}
    added: dict[str, BenchMethod] = {}
    for method in recipe.method:
        if method.kind != "method" or method.inputs is not None or method.side or ":" in method.name:
            continue
        for name, table in paired.items():
            with suppress(MolgraphError):  # a model that does not read the table is refused by its cells
                for side in method_sides(make_method(method.name, **method.params), table):
                    if any(_reads(other, side) for other in recipe.method):
                        continue
                    entry = _alone(method, side, table, [other for other in recipe.datasets if other != name])
                    if (known := added.get(entry.row)) is not None:  # on another dataset too
                        entry = known.model_copy(update={"skip": tuple(x for x in known.skip if x != name)})
                    added[entry.row] = entry
    return recipe.model_copy(update={"method": (*recipe.method, *added.values())}) if added else recipe


def _paired(name: str, tables: Mapping[str, Table]) -> Table | None:
    """A dataset's table where its rows may have two sides, and it can be had."""
    if name in tables:
        return tables[name]
    with suppress(MolgraphError):
        return load_dataset(name).table if card(name).entity in PAIRED else None
    return None


def _reads(method: BenchMethod, side: Side) -> bool:
    """Whether a row of the recipe is of that side alone already."""
    return method.side == side.name or (method.inputs is not None and {*method.inputs} <= {*side.columns})


def _alone(method: BenchMethod, side: Side, table: Table, others: list[str]) -> BenchMethod:
    name, params = one_side(*split_model(method.name, method.params), side, table)
    kept = {key: value for key, value in params.items() if key != "inputs"}
    skip = dict.fromkeys((*method.skip, *others))
    label = f"{method.row.replace(' ', '-')}-{side.name}-alone"
    return method.model_copy(
        update={"name": name, "params": kept, "label": label, "side": side.name, "skip": tuple(skip)}
    )
