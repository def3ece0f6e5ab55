"""Add RDKit's descriptors of the molecules to a table's features, for the head of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from molgraph.base.errors import UnsupportedError
from molgraph.chem.descriptors import NAMES, rdkit_descriptors
from molgraph.data.table import Table

PREFIX = "rdkit:"  # of their names, so that no column of a file is taken for one


def with_rdkit_features(table: Table, *, workers: int | None = None) -> Table:
    """The table with the descriptors of its molecules as further features; NaN where one has no value.

    Raises:
        UnsupportedError: no column of molecules, or several.
    """
    columns = [entity for entity in table.entities if entity.kind == "molecule"]
    if len(columns) != 1:
        words = f"descriptors are of one column of molecules, the table has {len(columns)}"
        raise UnsupportedError(words, hint="leave descriptors out, or name the molecules to read as the only ones")
    descriptors = rdkit_descriptors([str(text) for text in columns[0].values], workers=workers).x
    features = np.zeros((len(table), 0)) if table.features is None else table.features
    names = (*table.feature_names, *(PREFIX + name for name in NAMES))
    return replace(table, features=np.concatenate([features, descriptors], axis=1), feature_names=names)


def for_model(table: Table, names: Sequence[str]) -> Table:
    """The table with RDKit's descriptors where a model's feature names ask for them."""
    asked = any(name.startswith(PREFIX) for name in names)
    there = any(name.startswith(PREFIX) for name in table.feature_names)
    return with_rdkit_features(table) if asked and not there else table
