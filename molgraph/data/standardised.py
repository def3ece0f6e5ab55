"""A table in, the same rows with standardised molecules out; what could not be read is marked."""

from __future__ import annotations

import numpy as np

from molgraph.chem.standardise import standardise_smiles
from molgraph.data.table import UNREADABLE, Table


def standardise(table: Table, preset: str = "standard") -> Table:
    """Apply a standardiser preset to the molecule column of a table.

    Args:
        table: any table with a molecule column.
        preset: ``none``, ``desalt`` or ``standard``.

    Returns:
        The same rows in the same order; rows whose text the step could not read are ``unreadable``.

    Example:
        >>> from molgraph.data.table import make_table
        >>> standardise(make_table(["CC(=O)[O-].[Na+]"])).smiles[0]
        'CC(=O)O'
    """
    done = standardise_smiles(table.smiles, preset)
    bad = np.flatnonzero(done.reasons != "")
    return table.with_smiles(done.values).with_status(bad, UNREADABLE, done.reasons[bad])
