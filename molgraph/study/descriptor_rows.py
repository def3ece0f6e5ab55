"""Get RDKit's descriptors of a study's labelled rows, standardised, with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError
from molgraph.chem.descriptors import rdkit_descriptors
from molgraph.study.labelled_rows import first_target
from molgraph.study.study import Subject


class DescriptorRows(NamedTuple):
    """Rows of descriptors.

    Args:
        x: float64 [n, d], standardised and within 5 deviations; no column is constant.
        y: float64 [n], labels as they are.
        target: that they are of.
        notes: what was left out.
    """

    x: np.ndarray
    y: np.ndarray
    target: Target
    notes: list[str]


def scaled_descriptors(texts: Sequence[str]) -> np.ndarray:
    """float64 [n, d]: RDKit's descriptors of SMILES in deviations from the mean, at most 5, without constant columns.

    Example:
        >>> x = scaled_descriptors(["CCO", "CCN", "c1ccccc1"])
        >>> len(x), bool(abs(x.mean(axis=0)).max() < 1e-6)
        (3, True)
    """
    x = np.nan_to_num(rdkit_descriptors(texts, workers=1).x.astype(np.float64), posinf=0, neginf=0)
    spread = x.std(axis=0)
    kept = spread > 1e-9
    return ((x[:, kept] - x[:, kept].mean(axis=0)) / spread[kept]).clip(-5, 5)


def descriptor_rows(subject: Subject, *, rows: int, fewest: int, seed: int) -> DescriptorRows:
    """The descriptors of the rows with a label of the first target.

    Args:
        subject: data.
        rows: that are used, at most, drawn at random.
        fewest: rows that are needed.
        seed: of the draw.

    Raises:
        LabelError: no target of rows, or too few labels.
        UnsupportedError: a target of several classes.
    """
    table, target, notes = first_target(subject.table(), rows, fewest, seed)
    if target.kind == "multiclass":
        raise UnsupportedError(f"{target.name} has several classes", hint="name a target of two, or of numbers")
    x = scaled_descriptors([str(text) for text in table.smiles])
    return DescriptorRows(x, np.asarray(table.y)[:, 0].astype(np.float64), target, notes)
