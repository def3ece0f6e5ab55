"""Divide a table into training, validation, and test rows that are near to and far from the training molecules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import LabelError, MolgraphError
from molgraph.base.seeds import generator
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.splits import split_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.study.labelled_rows import labelled_rows

FEWEST, FAR, NEAR = 100, 0.25, 0.15  # rows; shares of far test rows, and of validation and of near test rows


class Parts(NamedTuple):
    """Rows of a table: to learn from, for temperatures and early stopping (drawn as those), and tested ones.

    Args:
        train, valid, test: tables.
        similarity: float64 [test rows], Tanimoto to the nearest training molecule.
        target: the one that is predicted.
        notes: what was left out.
    """

    train: Table
    valid: Table
    test: Table
    similarity: np.ndarray
    target: Target
    notes: tuple[str, ...]


def divide(table: Table, rows: int, seed: int) -> Parts:
    """A quarter of the rows tests by scaffolds of its own; of the others 15% validate and 15% test, at random.

    Raises:
        LabelError: no target of rows, or fewer than 100 labelled molecules, or labels all equal.
    """
    if not table.row_targets or table.y is None:
        raise LabelError("the table has no target of its rows", hint="name its column: -t COLUMN")
    target, more = table.row_targets[0], len(table.row_targets)
    notes = [f"of {more} targets the first, {target.name}"] * (more > 1)
    table = standardise(table.with_targets([target.name]), "standard")
    table, drawn = labelled_rows(table, rows, FEWEST, seed)
    notes += drawn
    fractions = (1 - FAR, 0.0, FAR)
    try:
        split = split_table(table, "scaffold/balanced", fractions=fractions, seed=seed, quiet=True)
    except MolgraphError:
        notes.append("too few scaffolds to test new ones: all test rows are drawn at random")
        split = split_table(table, "random", fractions=fractions, seed=seed, quiet=True)
    mixed, n = generator(seed, "near").permutation(split.train), round(NEAR * len(split.train))
    valid, near, train = mixed[:n], mixed[n : 2 * n], mixed[2 * n :]
    test = np.sort(np.concatenate([near, split.test]))
    prints = morgan([str(text) for text in table.smiles])
    similarity = find_nearest(prints.x[test], prints.x[train]).similarity
    return Parts(table.take(train), table.take(valid), table.take(test), similarity, target, tuple(notes))
