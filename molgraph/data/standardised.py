"""Standardise the molecules of a table; rows that cannot be read are marked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.chem.standardise import standardise_smiles
from molgraph.data.table import UNREADABLE, Table


def standardise(table: Table, preset: str = "standard") -> Table:
    """Apply a standardiser preset to the molecule columns of a table.

    Args:
        table: any table.
        preset: ``none``, ``desalt`` or ``standard``.

    Returns:
        The same rows in the same order; rows whose text the step could not read are ``unreadable``. Other entities than
        molecules stay as they are.

    Example:
        >>> from molgraph.data.table import make_table
        >>> standardise(make_table(["CC(=O)[O-].[Na+]"])).smiles[0]
        'CC(=O)O'
    """
    for place, column in enumerate(table.entities):
        if column.kind != "molecule":
            continue
        done = standardise_smiles(column.values, preset)
        bad = np.flatnonzero(done.reasons != "")
        changed = replace(column, values=done.values)
        entities = (*table.entities[:place], changed, *table.entities[place + 1 :])
        table = replace(table, entities=entities).with_status(bad, UNREADABLE, done.reasons[bad])
    return table
