"""What a training run is asked to do: keywords and recipes in; one recipe, its table and its split out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.errors import MolgraphError, UsageError
from molgraph.base.paths import missing_file
from molgraph.base.recipe import Recipe
from molgraph.base.registry import full_name, get
from molgraph.chem.standardise import preset
from molgraph.data.columns import with_kind
from molgraph.data.editions import curate
from molgraph.data.labels import check_targets
from molgraph.data.log import PREFIX, log_targets
from molgraph.data.profile import WIDE, decades_of
from molgraph.data.read import read_table
from molgraph.data.replicates import find_replicates
from molgraph.data.splits import Split, few_of_a_class, split_table
from molgraph.data.splits.split import content_hash, row_contents
from molgraph.data.table import Table

SHOWN = 5  # targets in a line
MAX_LOOK = 10  # different whole numbers that may be meant as classes
logger = logging.getLogger("molgraph")

READING = ("decimal", "qualifiers", "unit", "log")  # how cells of values are read

#: keyword of ``train`` -> the recipe's keys that it sets
KEYS: dict[str, tuple[tuple[str, str], ...]] = {
    "path": (("data", "path"),),
    "test": (("data", "test"),),
    **{name: (("data", name),) for name in ("smiles", "targets", "id", "weight", "features", "split_column")},
    **{name: (("data", name),) for name in ("on_error", "standardise", *READING, "duplicates", "tolerance")},
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
    values = base.model_dump(exclude_unset=True)
    for name, value in given.items():
        for section, key in KEYS[name]:
            if name in ("targets", "features") and isinstance(value, str):
                value = (value,)
            own = values.setdefault(section, {})
            own[key] = {**own.get(key, {}), **value} if name == "params" else value
    if recipe is None and "split" not in given and (advised := advised_split(given.get("path"))):
        values.setdefault("split", {})["recipe"] = advised
    return Recipe.from_dict(values)


def advised_split(path: str | None) -> str:
    """The split that the card of ``dataset:NAME`` recommends; empty for other sources, and for a column of its own.

    Example:
        >>> advised_split("dataset:bbbp"), advised_split("assay.csv")
        ('scaffold/deepchem', '')
    """
    if path is None or not path.startswith("dataset:"):
        return ""
    from molgraph.data.cards import card

    advised = card(path.removeprefix("dataset:")).split
    return "" if advised == "column" else advised


def check_plan(plan: Recipe) -> None:
    """Refuse what can be known to be wrong without a look at the data.

    Raises:
        UsageError: an unknown split or standardiser, or a split that needs a column and has none.
        StorageError: no such split file or test table.
    """
    preset(plan.data.standardise)
    path, name = split_file(plan), split_name(plan)
    if path is not None and not path.is_file():
        raise missing_file(path, "split file")
    get("split", name)
    test = plan.data.test
    if test is not None and not test.startswith(("dataset:", "builtin:")) and test != "-" and not Path(test).is_file():
        raise missing_file(test, "test table")


def check_report(plan: Recipe) -> None:
    """Refuse a report on a run whose fractions leave nothing to test."""
    if plan.data.test is None and plan.split.fractions[2] == 0 and get("split", split_name(plan)).uses_fractions:
        raise UsageError(
            "a report needs a test part, and the fractions leave none", hint="as in --fractions 0.8,0.1,0.1"
        )


def split_file(plan: Recipe) -> Path | None:
    """The file that says how to split, where the recipe names one."""
    asked = plan.split.recipe
    return Path(asked) if asked.endswith((".json", ".csv")) else None


def split_name(plan: Recipe) -> str:
    """The split's registered name: a recipe's, or ``file``, or ``column`` where the table has one of its own."""
    if split_file(plan) is not None:
        return "file"
    own = plan.data.split_column is not None and plan.split.recipe not in ("time", "group")
    return "column" if own else full_name("split", plan.split.recipe)


def read_for_training(data: Any, plan: Recipe) -> Table:
    """The table that a recipe asks for, with its targets."""
    check_plan(plan)
    if data is None:
        raise UsageError("no data to learn from", hint="name a file, or put path = ... into the recipe's [data]")
    said, name = plan.data, split_name(plan)
    if name in ("time", "group", "column") and said.split_column is None and not isinstance(data, Table):
        raise UsageError(f"the split {name!r} needs a column", hint="name it: --split-column COLUMN")
    if isinstance(data, Table):
        table = data if said.targets is None else data.with_targets(list(said.targets))
    else:
        table = _read(data, plan, said.targets, split=said.split_column)
    check_targets(table)  # before the split, which says no more than that a part is empty
    if isinstance(data, Table) and said.log:
        table = log_targets(table)
    table = _settle_replicates(table, plan)
    table = replace(table, notes=(*table.notes, *_range_notes(table)))
    for note in table.notes:
        logger.info(note)
    logger.info("learning %s", describe_targets(table, asked=said.targets or ()))
    return table


def _settle_replicates(table: Table, plan: Recipe) -> Table:
    """The table with its replicates merged as the recipe asks, or a note on those that are learned as they are."""
    said = plan.data
    if said.duplicates != "keep":
        if split_file(plan) is not None:
            raise UsageError(
                "merged duplicates change the rows that the split file counts",
                hint=f"merge them first: molgraph data curate FILE --duplicates {said.duplicates} -o clean.csv",
            )
        made = curate(table, replicates=said.duplicates, tolerance=said.tolerance, replicates_alone=True)
        note = f"duplicates ({said.duplicates}): {made.sentence}"
        check_targets(made.table)
        return replace(made.table, notes=(*made.table.notes, note))
    found = find_replicates(table)
    if not len(found.rows):
        return table
    differ = f", {int(found.contradictory.sum()):,} of them with contradictory labels"
    many = f"{len(np.unique(found.group)):,} molecules stand in {len(found.rows):,} rows"
    note = f"duplicates: {many}{differ * bool(found.contradictory.any())}"
    way = "all are learned as they stand; --duplicates mean, median or drop merges them"
    return replace(table, notes=(*table.notes, f"{note}: {way}"))


def _range_notes(table: Table) -> list[str]:
    """A note on each regression target whose positive values go over many decades, or which holds two numbers alone."""
    notes = []
    for j, target in enumerate(table.row_targets):
        values = np.empty(0) if table.y is None else table.y[~np.isnan(table.y[:, j]), j]
        if target.kind != "regression" or not len(values):
            continue
        if (decades := decades_of(values)) > WIDE:
            notes.append(f"{target.name}: positive values over {decades:.1f} decades; --log learns their logarithms")
        if len(pair := np.unique(values)) == 2:
            way = with_kind(target.name, "multiclass")
            notes.append(
                f"{target.name}: holds {pair[0]:g} and {pair[1]:g} alone and is learned as numbers; {way} for classes"
            )
    return notes


def units_of(table: Table, plan: Recipe) -> dict[str, str]:
    """The unit of each regression target, where all values were brought to one."""
    unit = plan.data.unit
    names = [t.name for t in table.row_targets if t.kind == "regression"] if unit else []
    return {name: f"log10({unit})" if name.startswith(PREFIX) else str(unit) for name in names}


def describe_targets(table: Table, asked: Sequence[str] = ()) -> str:
    """What a table's targets are learnt as, and how to ask for classes where few whole numbers look like them.

    Args:
        table: with targets.
        asked: as a person asked for them, ``z`` or ``z:multiclass``; who gave a kind needs no advice.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> describe_targets(make_table(["C", "CC", "CCC"], targets=(Target("z"),), y=[0.0, 1.0, 2.0]))
        'z (regression; z:multiclass for classes)'
    """
    words = []
    for j, target in enumerate(table.row_targets[:SHOWN]):
        advice = f"; {with_kind(target.name, 'multiclass')} for classes"
        told = f"{target.name}:{target.kind}" in asked
        looks = target.kind == "regression" and table.y is not None and _look_like_classes(table.y[:, j])
        words.append(f"{target.name} ({target.kind}{advice if looks and not told else ''})")
    more = len(table.row_targets) - len(words)
    return ", ".join(words) + (f" and {more:,} more" if more else "")


def _look_like_classes(values: np.ndarray) -> bool:
    distinct = np.unique(values[np.isfinite(values)])
    return len(distinct) != 2 and len(distinct) <= MAX_LOOK and bool((distinct == np.round(distinct)).all())


def read_test(data: Any, plan: Recipe, table: Table) -> Table:
    """The test table of its own, read as ``table`` was, with its targets."""
    if not isinstance(data, Table):
        return _read(data, plan, table.row_targets)
    return log_targets(data) if plan.data.log else data


def _read(data: Any, plan: Recipe, targets: Any, split: str | None = None) -> Table:
    said = plan.data
    columns: dict[str, Any] = {"smiles": said.smiles, "targets": targets, "id": said.id, "weight": said.weight}
    return read_table(
        data,
        **columns,
        features=said.features,
        split=split,
        on_error=said.on_error,
        need_targets=True,
        **said.model_dump(include=set(READING)),
    )


def divide(table: Table, plan: Recipe, written: Table) -> Split:
    """The split that a recipe asks for: by a recipe's name, by the table's own column, or as a file says.

    Args:
        table: the rows with standardised molecules.
        plan: the recipe.
        written: the same rows with molecules as they were read. Other people's recipes are asked of these, for a
            standardised molecule may have another scaffold; so is a file that was not made of standardised ones.
    """
    path, name = split_file(plan), split_name(plan)
    params: dict[str, Any] = {} if path is None else {"path": path}
    as_written = get("split", name).reproduces or (path is not None and _is_split_of_another(path, table))
    asked = written if as_written else table
    settings: dict[str, Any] = {"fractions": plan.split.fractions, "seed": plan.split.seed, "quiet": True}
    made = split_table(asked, name, **settings, **params)
    for note in few_of_a_class(table, made):
        logger.info(note)
    return made


def _is_split_of_another(path: Path, table: Table) -> bool:
    """Whether a file is a molgraph split that was made for other molecules than these."""
    try:
        return Split.load(path).content != content_hash(row_contents(table))
    except MolgraphError:
        return False  # a list of row numbers, or nothing that can be read: who reads it says so
