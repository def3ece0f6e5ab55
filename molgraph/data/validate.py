"""Parse every molecule of a table, and mark those that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from molgraph.chem.parallel import map_texts
from molgraph.chem.smiles import why_unreadable
from molgraph.data.table import UNREADABLE, Table


def check_molecules(table: Table, *, workers: int | None = None) -> Table:
    """Parse every distinct molecule of the readable rows once.

    Example:
        >>> from molgraph.data.table import make_table
        >>> check_molecules(make_table(["CCO", "C(C"])).reason[1]
        'SMILES Parse Error: extra open parentheses while parsing: C(C (position 2)'
    """
    rows = np.flatnonzero(table.ok)
    codes, texts = pd.factorize(table.smiles[rows])
    reasons = np.array(map_texts(reasons_of, list(texts), label="molecules", workers=workers), dtype=object)
    if not len(reasons):
        return table
    each = reasons[codes]
    bad = each != ""
    return table.with_status(rows[bad], UNREADABLE, each[bad])


def reasons_of(texts: Sequence[str]) -> list[str]:
    """Why each text is no molecule; empty where it is one."""
    return [why_unreadable(text) for text in texts]
