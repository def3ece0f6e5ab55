"""Read the table that a training run learns from, settle its replicates, and describe its targets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from molgraph.api.censoring import limits_as_asked
from molgraph.api.check_config import READING, check_config, split_file, split_name
from molgraph.auxiliary.peers.groups import PeerMethod
from molgraph.auxiliary.tabular import TabularMethod
from molgraph.base.contracts import Trainable
from molgraph.base.errors import ConflictError, MissingOptionError
from molgraph.base.positions import MakesGeometry
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.curves import curve_of
from molgraph.data.editions import curate
from molgraph.data.labels import check_targets, with_kind
from molgraph.data.levels import level_of
from molgraph.data.limits import refuse_limits
from molgraph.data.log import log_targets
from molgraph.data.profile import WIDE, decades_of
from molgraph.data.read import is_named, read_table
from molgraph.data.reading.chunk import GEOMETRY
from molgraph.data.reading.roles import OPTIONS
from molgraph.data.reading.units import check_units
from molgraph.data.replicates import find_replicates
from molgraph.data.table import Table
from molgraph.train.array_labels import arrays_of, kinds_beside
from molgraph.train.atom_targets import check_level
from molgraph.train.inputs import choose_columns, encoder_names
from molgraph.train.method import GraphMethod

SHOWN = 5  # targets in a line
MAX_LOOK = 10  # different whole numbers that may be meant as classes
logger = logging.getLogger("molgraph")


def read_for_training(data: Any, config: RunConfig, learner: Trainable) -> Table:
    """The table that a recipe asks for, with its targets; one that the learner does not read is refused first."""
    check_config(config)
    if data is None:
        hint = "name a file, or put path = ... into the recipe's [data]"
        raise MissingOptionError("no data to learn from", hint=hint)
    asked, name = config.data, split_name(config)
    if name in ("time", "group", "column") and asked.split_column is None and not isinstance(data, Table):
        raise MissingOptionError(f"the split {name!r} needs a column", hint="name it: --split-column COLUMN")
    if isinstance(data, Table):
        table = limits_as_asked(data if asked.targets is None else data.with_targets(list(asked.targets)), config)
        table = _chosen(table, config)
    else:
        table = read_columns(data, config, asked.targets, split=asked.split_column)
    check_reads(learner, table)
    check_targets(table)  # before the split, which says no more than that a part is empty
    if isinstance(data, Table) and asked.log:
        table = log_targets(table)
    table = _settle_replicates(table, config)
    table = replace(table, notes=(*table.notes, *_range_notes(table)))
    for note in table.notes:
        logger.info(note)
    logger.info("learning %s", describe_targets(table, asked=asked.targets or ()))
    return table


def read_test(data: Any, config: RunConfig, table: Table) -> Table:
    """The test table of its own, read as ``table`` was, with its targets."""
    if not isinstance(data, Table):
        curve = curve_of(config.data.targets) is not None
        test = read_columns(data, config, config.data.targets if curve else table.targets)
    else:
        data = limits_as_asked(data, config)
        test = _chosen(log_targets(data) if config.data.log else data, config)
    if config.data.unit != "none":
        check_units(test.units, table.units)
    return test


def read_columns(data: Any, config: RunConfig, targets: Any, split: str | None = None) -> Table:
    """A table with those targets, read as the recipe says."""
    asked = config.data
    table = read_table(
        data,
        **entity_columns(config, data),
        targets=targets,
        id=asked.id,
        weight=asked.weight,
        features=asked.features,
        gaps=asked.gaps,
        split=split,
        on_error=asked.on_error,
        need_targets=True,
        concentration=asked.concentration,
        **asked.model_dump(include=set(READING)),
    )
    return _chosen(table, config)


def _chosen(table: Table, config: RunConfig) -> Table:
    """The table with the entity columns that the recipe names, where it names any."""
    return table if config.data.inputs is None else table.with_entities(config.data.inputs)


def check_reads(learner: Trainable, table: Table) -> None:
    """Refuse entity columns and targets that a learner does not read, before anything is computed from the table."""
    for part in learner.with_members:
        if isinstance(part, MakesGeometry):
            table = part.as_read(table)
    for part in learner.innermost:
        if isinstance(part, GraphMethod):
            objective = get("objective", part.objective)
            targets = table.targets if objective.labelled or objective.tasks else ()
            beside = kinds_beside(arrays_of(part.objective, part.callback))
            check_level(level_of(targets), choose_columns(table, part.encoder, part.inputs, beside))
        elif isinstance(part, TabularMethod | PeerMethod):
            table.check_one_molecule(part.name)


def entity_columns(config: RunConfig, data: Any) -> dict[str, Any]:
    """The columns of entities that are named, or those that a model of nothing but geometries reads in a file."""
    asked = config.data
    named = {name: getattr(asked, name) for name in OPTIONS.values()}
    if asked.inputs is not None and named["sequence"] is None:
        named["sequence"] = ()  # none is to be read: the inputs are named
    if is_named(data) or any(named.values()) or asked.conformers is not None:
        return named
    own = [e for e in encoder_names(config.model.name) if e in names("encoder")]
    reads = {kind for encoder in own for kind in get("encoder", encoder).reads}
    return named | ({"geometry": GEOMETRY} if reads == {"geometry"} else {})


def _settle_replicates(table: Table, config: RunConfig) -> Table:
    """The table with its replicates merged as the recipe asks, or a note on those that are learned as they are."""
    asked = config.data
    if asked.duplicates != "keep":
        refuse_limits(table, f"--duplicates {asked.duplicates}", "leave --duplicates out")
        if split_file(config) is not None:
            raise ConflictError(
                "merged duplicates change the rows that the split file counts",
                hint=f"merge them first: molgraph data curate FILE --duplicates {asked.duplicates} -o clean.csv",
            )
        made = curate(table, replicates=asked.duplicates, tolerance=asked.tolerance, replicates_alone=True)
        note = f"duplicates ({asked.duplicates}): {made.sentence}"
        check_targets(made.table)
        return replace(made.table, notes=(*made.table.notes, note, *filter(None, [made.apart])))
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


def describe_targets(table: Table, asked: Sequence[str] = ()) -> str:
    """What a table's targets are learnt as, and how to ask for classes where few whole numbers look like them.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> describe_targets(make_table(["C", "CC", "CCC"], targets=(Target("z"),), y=[0.0, 1.0, 2.0]))
        'z (regression; z:multiclass for classes)'
    """
    words = [f"{t.name} ({t.kind}, of each {t.level})" for t in table.targets if t.level != "row"]
    for j, target in enumerate(table.row_targets[:SHOWN]):
        advice = f"; {with_kind(target.name, 'multiclass')} for classes"
        told = f"{target.name}:{target.kind}" in asked
        looks = target.kind == "regression" and table.y is not None and _look_like_classes(table.y[:, j])
        words.append(f"{target.name} ({target.kind}{advice if looks and not told else ''})")
    more = len(table.targets) - len(words)
    return ", ".join(words) + (f" and {more:,} more" if more else "")


def _look_like_classes(values: np.ndarray) -> bool:
    distinct = np.unique(values[np.isfinite(values)])
    return len(distinct) != 2 and len(distinct) <= MAX_LOOK and bool((distinct == np.round(distinct)).all())
