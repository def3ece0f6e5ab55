"""Curate a table by a rule, with a reason for every row that is taken out or merged."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from molgraph.base.errors import UnknownNameError, UnsupportedError, nearest
from molgraph.base.table import VALUES
from molgraph.chem.identity import Identity, first_parents, identities_of
from molgraph.data.replicates import partners
from molgraph.data.standardise import standardise
from molgraph.data.table import Table

#: Rules by name, as they stand on the cards.
RULES = {
    "c1": (
        "Rows that RDKit cannot read, or whose parent has no carbon, are out. Molecules are standardised by the preset "
        "'standard' (largest fragment, neutral). Rows of one parent, stereo kept, are replicates: a label that differs "
        "between them (a value by more than the tolerance) is out, the others become the mean (of classes: the one "
        "that all have). A row without any label left is out; replicates become one row, that of the first."
    ),
    "c2": (
        "As c1, by what is a molecule now: rows that hold none (no organic part, a metal complex, an open attachment "
        "point) are out, covalent salts are taken apart, and atom maps do not count."
    ),
}
COLUMNS = ["row", "id", "smiles", "action", "target", "reason", "kept_as", "kept_row"]
REPLICATES = ("mean", "median", "drop")  # dropped where they differ at all
Note = tuple[int, str, str, str, int | None]  # row, action, target, reason, the row that stands for it
ROUNDING = 1 + 1e-9  # 1.6 - 1.0 is more than 0.6 by the last bit


@dataclass(frozen=True)
class Curated:
    """A curated edition."""

    table: Table  # the rows that stayed, in the order of the first row of each, with that row's id
    # what was done to which row (from 1): ``out`` (a row), ``merged`` (a row, into ``kept_row`` of the id
    # ``kept_as``), ``label out`` (one label)
    taken_out: pd.DataFrame
    rows: np.ndarray  # int64, the rows of the raw table that stayed, from 0
    apart: str = ""  # a warning of merged labels that lie far apart; empty where none do

    @property
    def counts(self) -> dict[str, int]:
        """Rows (of ``label out``: labels) by what was done and why, in few words."""
        words = self.taken_out["action"] + ": " + self.taken_out["reason"].str.split(";").str[0]
        return {str(word): int(n) for word, n in words.value_counts(sort=False).items()}

    @property
    def sentence(self) -> str:
        """The counts in a line.

        Example:
            >>> from molgraph.data.table import make_table
            >>> curate(make_table(["CCO", "OCC", "C(C"])).sentence
            '1 of 3 rows stay (out: unreadable 1; merged: replicate 1)'
        """
        n_out = self.taken_out[self.taken_out["action"] != "label out"]["row"].nunique()
        counts = "; ".join(f"{action} {n:,}" for action, n in self.counts.items())
        return f"{len(self.rows):,} of {len(self.rows) + n_out:,} rows stay" + (f" ({counts})" if counts else "")


def identify(table: Table, *, workers: int | None = None) -> list[Identity | None]:
    """Who the molecule of each row is; None where the reader has found none. Each different text is parsed once."""
    identities = iter(identities_of(table.smiles[table.ok], workers=workers))
    return [next(identities) if ok else None for ok in table.ok]


def curate(
    table: Table,
    rule: str = "c2",
    *,
    replicates: str = "mean",
    tolerance: float | Mapping[str, float] | None = None,
    replicates_alone: bool = False,
    standardiser: str = "standard",
    workers: int | None = None,
    who: list[Identity | None] | None = None,
) -> Curated:
    """Apply a curation rule to a table of molecules; nothing is changed in place.

    Replicates are rows of one molecule (largest organic fragment, neutral, stereo kept) that agree in whatever else the
    table says of them: descriptors, the other entities of a pair, the split.

    Args:
        table: with a molecule column and targets.
        rule: ``c2``, or ``c1`` of the published editions, see ``RULES``.
        replicates: what replicates become: their ``mean`` (weighted where rows have weights, which are summed) or
            ``median`` (classes: the one that all have), or ``drop``, which takes every label out that differs between
            them. Rows of weight 0 have no say beside others.
        tolerance: how far replicates of a value may lie apart, in the target's unit; a label beyond is taken out. None
            sets no bound (with ``drop``: 0); a mapping says it for each target, and those that it leaves out may not
            differ.
        replicates_alone: whether what cannot be read or is no molecule stays, and molecules as they are
            written.
        standardiser: the preset that molecules of the edition go through.
        workers: processes; None decides by the number of molecules.
        who: what ``identify`` gave for the table, where that is known already.

    Returns:
        The edition; every row of ``table`` is in it, or in ``taken_out`` with a reason.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> smiles, y = ["CCO", "OCC", "CCN", "NCC", "C(C"], [1, 1, 0, 1, 1]
        >>> edition = curate(make_table(smiles, targets=(Target("y", "binary"),), y=y))
        >>> edition.table.ids, edition.counts
        (array(['0'], dtype=object), {'out: unreadable': 1, 'merged: replicate': 1, 'out: contradictory': 2})
    """
    if rule not in RULES:
        raise UnknownNameError(f"no curation rule is named {rule!r}", hint=nearest(rule, RULES))
    if replicates not in REPLICATES:
        raise UnknownNameError(f"replicates is {replicates!r}", hint=nearest(replicates, REPLICATES))
    if table.packed:
        message = "replicates of atoms' or bonds' values are not merged"
        raise UnsupportedError(message, hint="curate targets of whole rows")
    identities = identify(table, workers=workers) if who is None else who
    notes: list[Note] = []
    others, parents = partners(table), _parents(table, rule, identities, workers)
    groups: dict[Hashable, list[int]] = {}
    for row, (identity, (parent, reason)) in enumerate(zip(identities, parents, strict=True)):
        readable = identity is not None and not identity.reason
        if not readable:
            reason = f"unreadable; {identity.reason if identity else table.reason[row]}"
        if readable and (replicates_alone or not reason):
            groups.setdefault((parent, _condition(table, others, row)), []).append(row)
        elif replicates_alone:
            groups[row] = [row]
        else:
            notes.append((row, "out", "", reason, None))
    y = np.empty((len(table), 0)) if table.y is None else table.y.copy()
    weights = np.ones(len(table)) if table.weights is None else table.weights.copy()
    bounds = _bounds(table, replicates, tolerance)
    kept = []
    for rows in groups.values():
        if not (replicates_alone and len(rows) == 1):
            labels, of_group = _settle(table, y, weights, rows, bounds, replicates, parents[rows[0]][0])
            notes += of_group
            if labels is None:
                continue
            y[rows[0]], weights[rows[0]] = labels, weights[rows].sum()
        kept.append(rows[0])
    at = np.array(sorted(kept), dtype=np.int64)
    merged = replace(table, y=None if table.y is None else y, weights=None if table.weights is None else weights).take(
        at
    )
    if not replicates_alone:
        merged = standardise(merged, f"{standardiser}/1" if rule == "c1" else standardiser)
    return Curated(merged, _frame(table, notes), at, "; ".join(_apart(table, list(groups.values()), bounds)))


def _apart(table: Table, groups: list[list[int]], bounds: Mapping[str, float]) -> Iterator[str]:
    """A sentence on each target of whose merged values some lie tenfold or a deviation of the molecules apart."""
    for j, target in enumerate(table.row_targets if table.y is not None else ()):
        y = table.y[:, j]  # type: ignore[index]
        many = [rows for rows in groups if len(rows) > 1 and target.kind in VALUES and not np.isnan(y[rows]).all()]
        low, high = (np.array([f(y[rows]) for rows in many]) for f in (np.nanmin, np.nanmax))
        single = [np.nanmean(y[rows]) for rows in groups if not np.isnan(y[rows]).all()]
        far = high - low > (np.std(single, ddof=1) if len(single) > 2 else np.inf)
        far |= (high > 10 * low) & bool((y[~np.isnan(y)] > 0).all())
        far &= high - low <= bounds[target.name] * ROUNDING
        if far.any():
            i = int(np.where(far, high - low, -1).argmax())
            yield (
                f"{target.name}: {far.sum():,} of {len(many):,} molecules in several rows have values apart (tenfold "
                f"or over a standard deviation), such as {low[i]:g} and {high[i]:g}; --tolerance X takes such labels "
                "out, and train --log --duplicates mean merges logarithms"
            )


def _parents(table: Table, rule: str, identities: list[Identity | None], workers: int | None) -> list[tuple[str, str]]:
    """The molecule of each row by a rule, and why it has no place in an edition; both empty where none can be read."""
    if rule != "c1":
        return [
            ("", "") if one is None else (one.parent, one.no_molecule and f"no molecule; {one.no_molecule}")
            for one in identities
        ]
    texts = ["" if one is None else text for one, text in zip(identities, table.smiles, strict=True)]
    parents = first_parents(texts, workers=workers)
    return [(text, "" if carbon else f"no carbon; its largest fragment is {text}") for text, carbon in parents]


def _bounds(table: Table, replicates: str, tolerance: float | Mapping[str, float] | None) -> dict[str, float]:
    """How far labels of each target may lie apart."""
    bounds = {}
    for target in table.row_targets:
        bound = tolerance.get(target.name, 0.0) if isinstance(tolerance, Mapping) else tolerance
        if bound is None:
            bound = 0.0 if replicates == "drop" else np.inf
        bounds[target.name] = bound if target.kind in VALUES else 0.0
    return bounds


def _condition(table: Table, others: np.ndarray, row: int) -> Hashable:
    """Whatever a table says of a row beside its first molecule and its labels: rows that differ are no replicates."""
    features = None if table.features is None else table.features[row].tobytes()
    return others[row].tobytes(), features, None if table.split is None else table.split[row]


def _settle(
    table: Table, y: np.ndarray, weights: np.ndarray, rows: list[int], bounds: dict[str, float], how: str, parent: str
) -> tuple[np.ndarray | None, list[Note]]:
    """The labels of one molecule's rows as those of its first row, None where that row is out too; and why."""
    settled = y[rows[0]].copy()
    differing: list[str] = []
    for j, target in enumerate(table.row_targets):
        values, weight = y[rows, j], weights[rows]
        use = ~np.isnan(values)
        use &= (weight > 0) | ~(use & (weight > 0)).any()  # rows without weight count where no others do
        values, weight = values[use], weight[use]
        spread = values.max() - values.min() if len(values) else 0.0
        if spread > bounds[target.name] * ROUNDING:
            settled[j] = np.nan
            differing.append(target.name)
        elif how != "median" and weight.any() and np.ptp(weight):
            settled[j] = np.average(values, weights=weight)
        elif len(values):
            settled[j] = np.median(values) if how == "median" else np.mean(values)
    where = f"contradictory; {len(rows)} rows of {parent}"
    if table.row_targets and np.isnan(settled).all():
        reason = where if differing else "no label; no target has a value"
        return None, [(row, "out", "", reason, None) for row in rows]
    notes: list[Note] = [(rows[0], "label out", name, where, rows[0]) for name in differing]
    return settled, notes + [(row, "merged", "", f"replicate; of {parent}", rows[0]) for row in rows[1:]]


def _frame(table: Table, notes: list[Note]) -> pd.DataFrame:
    cells = [
        (row + 1, table.ids[row], table.smiles[row], action, target, reason)
        + (("", 0) if kept is None else (table.ids[kept], kept + 1))
        for row, action, target, reason, kept in notes
    ]
    return pd.DataFrame(cells, columns=COLUMNS)
