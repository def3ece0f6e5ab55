"""Read the rows that a training run learns from: which columns, targets, limits and replicates."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from molgraph.auxiliary.peers.groups import PeerMethod
from molgraph.auxiliary.tabular import TabularMethod
from molgraph.base.contracts import Trainable
from molgraph.base.errors import ConflictError, MissingOptionError
from molgraph.base.positions import MakesGeometry
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.curate import curate
from molgraph.data.curves import curve_of
from molgraph.data.labels import check_targets
from molgraph.data.levels import level_of
from molgraph.data.limits import limits_as_values, refuse_limits, without_limits
from molgraph.data.log import log_targets
from molgraph.data.read import is_named, read_table
from molgraph.data.reading.chunk import GEOMETRY
from molgraph.data.reading.roles import OPTIONS
from molgraph.data.reading.units import check_units
from molgraph.data.replicates import find_replicates
from molgraph.data.table import Table
from molgraph.run.config import check_config, split_file, split_name
from molgraph.run.target_notes import describe_targets, range_notes
from molgraph.train.array_labels import arrays_of, kinds_beside
from molgraph.train.atom_targets import check_level
from molgraph.train.inputs import choose_columns, encoder_names
from molgraph.train.method import GraphMethod

READING = {"decimal", "qualifiers", "unit", "log"}  # how cells of values are read
logger = logging.getLogger("molgraph")


def read_rows(data: Any, config: RunConfig, learner: Trainable) -> Table:
    """The table that a configuration asks for, with its targets; one that the learner does not read is refused."""
    check_config(config)
    check_source(data)
    section, name = config.data, split_name(config)
    if name in ("time", "group", "column") and section.split_column is None and not isinstance(data, Table):
        raise MissingOptionError(f"the split {name!r} needs a column", hint="name it: --split-column COLUMN")
    if isinstance(data, Table):
        table = data if section.targets is None else data.with_targets(list(section.targets))
        table = chosen_columns(_with_limits(table, config), config)
    else:
        table = read_columns(data, config, section.targets, split=section.split_column)
    check_reads(learner, table)
    check_targets(table)  # before the split, which says no more than that a part is empty
    if isinstance(data, Table) and section.log:
        table = log_targets(table)
    table = _settle_replicates(table, config)
    table = replace(table, notes=(*table.notes, *range_notes(table)))
    for note in table.notes:
        logger.info(note)
    logger.info("learning %s", describe_targets(table, section.targets or ()))
    return table


def read_test(data: Any, config: RunConfig, table: Table) -> Table:
    """The test table of its own, read as ``table`` was, with its targets."""
    if not isinstance(data, Table):
        curve = curve_of(config.data.targets) is not None
        test = read_columns(data, config, config.data.targets if curve else table.targets)
    else:
        data = _with_limits(data, config)
        test = chosen_columns(log_targets(data) if config.data.log else data, config)
    if config.data.unit != "none":
        check_units(test.units, table.units)
    return test


def read_columns(data: Any, config: RunConfig, targets: Any, split: str | None = None) -> Table:
    """A table with those targets, read as the configuration says."""
    section = config.data
    table = read_table(
        data,
        **entity_columns(config, data),
        targets=targets,
        id=section.id,
        weight=section.weight,
        features=section.features,
        gaps=section.gaps,
        split=split,
        on_error=section.on_error,
        need_targets=True,
        concentration=section.concentration,
        **section.model_dump(include=READING),
    )
    return chosen_columns(table, config)


def check_source(data: Any) -> None:
    """Refuse to learn from nothing."""
    if data is None:
        hint = "name a file, or put path = ... into the recipe's [data]"
        raise MissingOptionError("no data to learn from", hint=hint)


def chosen_columns(table: Table, config: RunConfig) -> Table:
    """The table with the entity columns that the configuration names, where it names any."""
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
    section = config.data
    columns = {name: getattr(section, name) for name in OPTIONS.values()}
    if section.inputs is not None and columns["sequence"] is None:
        columns["sequence"] = ()  # none is to be read: the inputs are named
    if is_named(data) or any(columns.values()) or section.conformers is not None:
        return columns
    encoders = [name for name in encoder_names(config.model.name) if name in names("encoder")]
    reads = {kind for encoder in encoders for kind in get("encoder", encoder).reads}
    return columns | ({"geometry": GEOMETRY} if reads == {"geometry"} else {})


def _with_limits(table: Table, config: RunConfig) -> Table:
    """A ready table with its limits learnt, dropped or taken as values, as the configuration says.

    Raises:
        LabelError: there are limits, and nothing is said of them.
    """
    qualifiers = config.data.qualifiers
    if qualifiers == "refuse":
        refuse_limits(table, "a training that says nothing of them", "qualifiers='learn' learns them")
    if qualifiers == "strip":
        return limits_as_values(table)
    return table if qualifiers == "learn" else without_limits(table)


def _settle_replicates(table: Table, config: RunConfig) -> Table:
    """The table with its replicates merged as the configuration asks, or a note on those that are learned."""
    section = config.data
    if section.duplicates != "keep":
        refuse_limits(table, f"--duplicates {section.duplicates}", "leave --duplicates out")
        if split_file(config) is not None:
            raise ConflictError(
                "merged duplicates change the rows that the split file counts",
                hint=f"merge them first: molgraph data curate FILE --duplicates {section.duplicates} -o clean.csv",
            )
        edition = curate(table, replicates=section.duplicates, tolerance=section.tolerance, replicates_alone=True)
        note = f"duplicates ({section.duplicates}): {edition.sentence}"
        check_targets(edition.table)
        return replace(edition.table, notes=(*edition.table.notes, note, *filter(None, [edition.apart])))
    replicates = find_replicates(table)
    if not len(replicates.rows):
        return table
    note = f"duplicates: {len(np.unique(replicates.group)):,} molecules stand in {len(replicates.rows):,} rows"
    if contradictory := int(replicates.contradictory.sum()):
        note += f", {contradictory:,} of them with contradictory labels"
    note += ": all are learned as they stand; --duplicates mean, median or drop merges them"
    return replace(table, notes=(*table.notes, note))
