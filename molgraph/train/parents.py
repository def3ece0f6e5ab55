"""Read measured molecules as a model's training did, and correct the model's predictions of their analogues."""

from __future__ import annotations

import logging
from copy import copy
from typing import Any, TypeVar

import numpy as np

from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.data.curves import curve_columns
from molgraph.data.levels import level_of
from molgraph.data.log import log_targets
from molgraph.data.read import is_named
from molgraph.data.reading.units import check_units
from molgraph.data.standardise import mark_no_molecules, standardise
from molgraph.data.table import Table
from molgraph.train.analogues import Analogues
from molgraph.train.class_codes import coded
from molgraph.train.confidence.intervals import NUMBERS
from molgraph.train.training_molecules import molecule_hashes

logger = logging.getLogger("molgraph")
M = TypeVar("M")  # a ``Model``, which imports this file


def read_measured(model: Any, data: Any, **columns: Any) -> Table:
    """The table of measured molecules, with the targets, classes and units of a model.

    Args:
        model: the ``Model`` whose training says how values are read.
        data: a path, a frame or a table that has the model's target columns.
        columns: as for ``Model.evaluate``.
    """
    settings = model.table_settings()
    reading = {
        name: settings[name] for name in ("decimal", "qualifiers", "unit", "log") if settings.get(name)
    } | columns
    if isinstance(data, str) and is_named(data):  # values that are read already
        reading = columns | {name: value for name, value in reading.items() if name == "log"}
    if isinstance(data, Table):
        table = log_targets(data) if reading.get("log") else data
    else:  # read as the model's own targets, so that classes keep their order and kinds are not guessed again
        table = model.read(data, **(curve_columns(settings) or {"targets": model.targets}), **reading)
    if columns.get("unit") != "none":
        check_units(table.units, model.card.units)
    if (level := level_of(model.targets)) != "row":
        logger.info("scores count %ss: all those of all rows, each alike", level)
    for note in table.notes:
        logger.info(note)
    table = coded(table.with_targets([t.name for t in model.targets]), model.targets)
    return table


def with_parents(model: M, data: Any, share: float | None = None, **columns: Any) -> M:
    """A model whose numbers are corrected by its errors on the nearest measured analogues.

    Its file does not keep them. Rows that the model learnt from are left out, since their errors say nothing.

    Args:
        model: a ``Model`` of single molecules and numbers.
        data: measured molecules with the columns of the model's targets, read as ``Model.evaluate`` does.
        share: the weight of one analogue, 0 to 1; None to estimate it (``molgraph.train.analogues``).
        columns: as for ``Model.evaluate``.

    Raises:
        UsageError: the model reads more than a molecule, predicts no number, or the share is none. EmptyError: no row
            remains, or too few to estimate the share.

    Example:
        >>> import molgraph
        >>> table = molgraph.read_table("builtin:chembl2321810")
        >>> model = molgraph.train(table.take(range(400)), model="linear", baseline=False).model
        >>> found = model.predict(["Oc1ccccc1"], parent=table.take(range(400, 500))).to_frame()
        >>> {"pActivity_plain", "pActivity_sd", "pActivity_parent"} < {*found}
        True
    """
    source: Any = model
    method = source.check_predicts()
    numbers = any(target.kind in NUMBERS and target.level == "row" for target in source.targets)
    if not numbers or [kind for kind, _ in source.columns_read] != ["molecule"]:
        words = "only numbers that are predicted of single molecules are corrected by analogues"
        raise UnsupportedError(words, hint="predict without parents")
    table = standardise(read_measured(model, data, **columns), source.standardiser)
    table = mark_no_molecules(table, source.standardiser)
    learnt = np.isin(molecule_hashes(table), [] if source.trained_on is None else source.trained_on)
    if learnt.any():
        logger.info(f"{int(learnt.sum()):,} of {len(table):,} parents are left out: the model learnt from them")
    if lost := int((~table.ok).sum()):
        logger.info(f"{lost:,} of {len(table):,} parents cannot be read")
    table = table.take(np.flatnonzero(~learnt & table.ok))
    if not len(table):
        raise EmptyError("no parent remains", hint="give molecules that were measured after the training")
    corrected = copy(source)
    corrected.analogues = Analogues.of(table, method.predict(table), share)
    return corrected
