"""Find the rows of one molecule, and estimate the noise of measurements from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from molgraph.chem.identity import molecule_keys
from molgraph.data.table import Table

ROUNDING = 1e-9  # labels that differ by less, relative to their size, are equal


class Replicates(NamedTuple):
    """Rows of molecules that a table has more than once."""

    rows: np.ndarray  # int64 [k], row numbers from 0
    group: np.ndarray  # int64 [k], the molecule of each
    contradictory: np.ndarray  # bool [k], whether a target's labels differ within the molecule


def find_replicates(table: Table) -> Replicates:
    """Find the rows of molecules (largest fragment, neutral, stereo kept), or of pairs, that stand in several rows.

    Example:
        >>> from molgraph.data.table import make_table
        >>> find_replicates(make_table(["CCO", "C(C", "CCN", "OCC", "[Na+].CC[O-]"])).rows.tolist()
        [0, 3, 4]
    """
    if "molecule" not in [e.kind for e in table.entities]:
        none = np.zeros(0, np.int64)
        return Replicates(none, none, np.zeros(0, bool))
    rows = np.flatnonzero(table.ok)
    parents = molecule_keys(table.smiles[rows], stereo=True, label="replicates").values
    rows, parents = rows[parents != ""], parents[parents != ""]
    group = group_rows(table, rows, parents)
    twice = np.bincount(group, minlength=1)[group] > 1 if len(group) else np.zeros(0, dtype=bool)
    rows, group = rows[twice], group[twice]
    return Replicates(rows, group, contradictory(table, rows, group))


def group_rows(table: Table, rows: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """int64 [rows]: numbers that rows share whose parents and partners are the same."""
    group = pd.factorize(parents)[0]
    for other in partners(table)[rows].T:
        group = pd.factorize(group * (other.max(initial=0) + 2) + other)[0]
    return group


def partners(table: Table) -> np.ndarray:
    """int64 [rows, k]: numbers that rows share where they have the same entity beside the first molecule.

    Molecules are the same where their largest fragments are, neutral, stereo kept; sequences where their letters are.
    """
    out = [np.empty((len(table), 0), np.int64)]
    first = next((e for e in table.entities if e.kind == "molecule"), None)
    for entity in table.entities:
        if entity is first or entity.kind not in ("molecule", "sequence"):
            continue
        same = entity.values
        if entity.kind == "molecule":
            parents = molecule_keys(same, stereo=True, label="replicates").values
            same = np.array([parent or text for parent, text in zip(parents, same, strict=True)], dtype=object)
        code = pd.factorize(same)[0]
        out.append(code[:, None].astype(np.int64))
    return np.concatenate(out, axis=1)


def ranges(y: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The lowest and the highest value of each row's group, and whether they differ."""
    by_group = pd.Series(y).groupby(group)
    low, high = by_group.transform("min").to_numpy(), by_group.transform("max").to_numpy()
    return low, high, high - low > ROUNDING * np.maximum(1.0, np.abs(high))


def contradictory(table: Table, rows: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Whether the group of each row has different labels of a target, bool [rows]."""
    out = np.zeros(len(rows), dtype=bool)
    for y in [] if table.y is None else table.y[rows].T:
        out |= ranges(y, group)[2]
    return out


def replicate_sd(keys: Sequence[str] | np.ndarray, y: np.ndarray) -> tuple[float, int]:
    """Standard deviation of a single measurement, pooled over molecules that were measured more than once.

    Args:
        keys: n texts that are equal for the same molecule.
        y: float [n]; NaN rows are left out.

    Returns:
        The deviation (NaN without replicates) and the degrees of freedom that it stands on.

    Example:
        >>> replicate_sd(["a", "a", "b"], np.array([1.0, 3.0, 9.0]))
        (1.4142135623730951, 1)
    """
    use = np.isfinite(y)
    _, code = np.unique(np.asarray(keys, dtype=str)[use], return_inverse=True)
    value = y[use]
    n = np.bincount(code)
    mean = np.bincount(code, value) / np.maximum(n, 1)
    df = int((n - 1).sum())
    return (float(np.sqrt(((value - mean[code]) ** 2).sum() / df)) if df else float("nan")), df
