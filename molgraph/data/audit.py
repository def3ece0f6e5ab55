"""Audit a table: unreadable rows and cells, duplicates, contradictory labels, open stereo, salts, targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from molgraph.base.contracts import Target
from molgraph.base.printable import count
from molgraph.chem.identity import Identity
from molgraph.data.curate import identify
from molgraph.data.findings import Audit, Finding
from molgraph.data.observed import observed_notes
from molgraph.data.profile import APART, OUTLIER_Z, SIMILAR, Profile, cliffs, profile, robust_z, scaled, similar_pairs
from molgraph.data.read import read_source
from molgraph.data.reading.cells import (
    COMMA,
    OTHER,
    QUALIFIER,
    SIGNS,
    TWO_UNITS,
    UNIT,
    OddCell,
    Reading,
    read_cell,
)
from molgraph.data.reading.units import UNITS
from molgraph.data.replicates import group_rows, partners, ranges
from molgraph.data.table import MISSING, Table

__all__ = ["Audit", "Finding", "audit"]

OUTLIER = f"over {OUTLIER_Z} robust standard deviations from the median (of logarithms, over many decades)"
CLIFF = f"similar molecules (Tanimoto from {SIMILAR}) with values {APART:g} deviations apart, or in other classes"
ODD = {
    COMMA: "a comma in a number; --decimal , reads it as a decimal sign",
    SIGNS: "a comma beside points, one of which may part thousands; write all decimals with one sign",
    QUALIFIER: "bounds, no measured values; --qualifiers drop takes them out",
    UNIT: "numbers with a unit; --unit {way} brings all to one",
    TWO_UNITS: "numbers with another unit than the column of units has there; correct the one that is wrong",
    OTHER: "text where a number should stand",
}


def audit(data: Any, *, workers: int | None = None, **columns: Any) -> Audit:
    """Look at every molecule and label of a table; nothing is changed.

    Two rows hold the same molecule where their organic parts (largest fragment, neutral, stereo kept, atom maps off)
    have one canonical SMILES, and of pairs the same partner. Labels contradict where such rows have different values.
    Cells of a target that are no plain number (``>8.0``, ``251 nM``, ``4,62``, text) are counted, never an error.

    Args:
        data: a table with a molecule column, or whatever ``read_table`` reads. Odd cells of targets can be counted in
            what has not been read yet.
        workers: processes; None decides by the number of molecules.
        columns: ``smiles``, ``id``, ``targets`` and ``features``, as for ``read_table``, and how cells are read:
            ``decimal``, ``qualifiers``, ``unit``.

    Returns:
        Findings with the rows that show them, a profile of each target, and where feature columns have gaps the
        correlation of labels with the share of them that a row has.

    Example:
        >>> from molgraph.data.table import make_table
        >>> report = audit(make_table(["CCO", "OCC", "C(C", "CC(=O)[O-].[Na+]"]))
        >>> {f.kind: f.rows.tolist() for f in report.findings if len(f)}
        {'unreadable': [2], 'duplicate': [0, 1], 'salt or mixture': [3]}
        >>> messy = audit({"smiles": ["CCO", "CCN"], "y": ["5.1", ">8"]}, targets=["y"])
        >>> messy.finding("qualifier in y").details.tolist()
        ['>8']
    """
    cells = {key: columns.pop(key) for key in ("decimal", "qualifiers", "unit") if key in columns}
    source = read_source(data, Reading(**cells, lenient=True), **columns)
    table, identities = source.table, identify(source.table, workers=workers)
    reasons = np.array(
        [reason if one is None else one.reason for one, reason in zip(identities, table.reason, strict=True)], object
    )
    rows, missing = np.flatnonzero(reasons == ""), np.flatnonzero(table.status == MISSING)
    unreadable = np.setdiff1d(np.flatnonzero(reasons != ""), missing)
    molecules = [one for one in identities if one is not None and not one.reason]
    parents = np.array([one.parent for one in molecules], dtype=object)
    group = group_rows(table, rows, parents)
    entity = "pair" if partners(table).shape[1] else "molecule"  # a drug with another target is another thing
    repeated = np.flatnonzero(np.bincount(group, minlength=1)[group] > 1) if len(group) else np.arange(0)
    repeated = repeated[np.argsort(group[repeated], kind="stable")]

    def of_molecules(kind: str, meaning: str, describe: Callable[[Identity], str]) -> Finding:
        """The molecules of which there is something to say."""
        details = np.array([describe(one) for one in molecules], dtype=object)
        return _finding(kind, meaning, rows[details != ""], details[details != ""])

    findings = [
        _finding("unreadable", "RDKit reads no molecule there", unreadable, reasons[unreadable]),
        _finding("missing", "no molecule, or no value in a descriptor column", missing, reasons[missing]),
        of_molecules("not a molecule", "RDKit reads it, but it is no molecule to predict", lambda one: one.no_molecule),
        _finding(
            "duplicate",
            f"several rows of one {entity} (largest fragment, neutral)",
            rows[repeated],
            [f"as {parents[i]}" for i in repeated],
            group[repeated],
        ),
        *(
            _contradictions(table, target, j, rows[repeated], group[repeated])
            for j, target in enumerate(table.row_targets)
        ),
        of_molecules("undefined stereo", "stereo centres or double bonds without a stated configuration", _stereo_line),
        of_molecules(
            "salt or mixture",
            "more than one part; the presets desalt and standard keep the largest",
            lambda one: f"{one.fragments} parts, largest {one.parent}" if one.fragments > 1 else "",
        ),
    ]
    molecule_of = np.full(len(table), -1, dtype=np.int64)
    molecule_of[rows] = group
    profiles, of_targets, notes = _targets(table, molecule_of, rows, parents)
    everything = (*findings, *_odd_cells(source.odd), *of_targets)
    labels = zip(table.row_targets, () if table.y is None else table.y.T, strict=False)
    numbers = {target.name: y for target, y in labels if target.kind != "multiclass"}
    notes += observed_notes(table.features, numbers, "labels")
    return Audit(table.ids, table.smiles, everything, len(set(parents)), profiles, (*table.notes, *notes))


def _odd_cells(odd: Sequence[OddCell]) -> Iterator[Finding]:
    """A finding for each column and kind of cell that is no plain number."""
    for column, kind in dict.fromkeys((cell.column, cell.kind) for cell in odd):
        cells = [cell for cell in odd if (cell.column, cell.kind) == (column, kind)]
        units = Counter(read_cell(cell.text).unit for cell in cells)
        counts = ", ".join(f"{unit} {n:,}" for unit, n in units.most_common(4) if unit)
        way = next((unit for unit, _ in units.most_common() if unit in UNITS), "nM")
        meaning = ODD[kind].format(way=way) + (f" ({counts})" if counts else "")
        yield _finding(f"{kind} in {column}", meaning, [cell.row for cell in cells], [cell.text[:60] for cell in cells])


def _targets(
    table: Table, molecule: np.ndarray, rows: np.ndarray, parents: np.ndarray
) -> tuple[tuple[Profile, ...], list[Finding], list[str]]:
    """Profiles, findings (outliers and cliffs, where there are any) and notes on the targets."""
    if table.y is None or not table.row_targets:
        return (), [], []
    first = np.unique(molecule[rows], return_index=True)[1]
    labelled = first[~np.isnan(table.y[rows[first]]).all(axis=1)]
    if len(table.entities) > 1:  # one molecule with two partners is no cliff
        labelled = labelled[:0]
    pairs = similar_pairs(parents[labelled], rows[labelled])
    profiles, findings = [], []
    for j, target in enumerate(table.row_targets):
        y = table.y[:, j]
        profiles.append(profile(target, y, molecule))
        z = np.zeros(len(y))
        if target.kind == "regression":
            z[~np.isnan(y)] = robust_z(scaled(target, y[~np.isnan(y)]))
        far = np.flatnonzero(np.abs(z) > OUTLIER_Z)
        far = far[np.argsort(-np.abs(z[far]), kind="stable")]
        if len(far):
            sides = np.where(z > 0, "above", "below")
            details = [f"{y[i]:g}, {abs(z[i]):.1f} deviations {sides[i]} the median" for i in far]
            findings.append(_finding(f"outlier in {target.name}", OUTLIER, far, details))
        if steep := cliffs(target, y, pairs):
            ends = [(a, b, c.similarity) for c in steep for a, b in ((c.first, c.second), (c.second, c.first))]
            details = [
                f"{shown(target, y[a])}; row {b + 1} has {shown(target, y[b])}, similarity {similarity:.2f}"
                for a, b, similarity in ends
            ]
            group = np.repeat(np.arange(len(steep)), 2)
            findings.append(_finding(f"cliff in {target.name}", CLIFF, [a for a, _, _ in ends], details, group))
    if pairs.n_molecules == len(labelled):
        return tuple(profiles), findings, []
    note = f"cliffs were sought among {pairs.n_molecules:,} of {len(labelled):,} molecules"
    return tuple(profiles), findings, [note]


def _finding(kind: str, meaning: str, rows: ArrayLike, details: ArrayLike, groups: np.ndarray | None = None) -> Finding:
    rows = np.array(rows, dtype=np.int64)
    groups = np.arange(len(rows)) if groups is None else groups
    return Finding(kind, meaning, rows, np.array(details, dtype=object), groups)


def _contradictions(table: Table, target: Target, j: int, rows: np.ndarray, groups: np.ndarray) -> Finding:
    """Rows of one molecule whose labels differ, the widest range first."""
    y = np.full(len(rows), np.nan) if table.y is None else table.y[rows, j]
    measured = ~np.isnan(y)
    rows, groups, y = rows[measured], groups[measured], y[measured]
    low, high, differ = ranges(y, groups)
    order = np.flatnonzero(differ)
    order = order[np.lexsort((rows[order], groups[order], (low - high)[order]))]
    details = [
        f"{shown(target, y[i])}; the molecule has {shown(target, low[i])} to {shown(target, high[i])}" for i in order
    ]
    meaning = f"rows of one molecule with different values of {target.name}"
    return _finding(f"contradiction in {target.name}", meaning, rows[order], details, groups[order])


def shown(target: Target, value: float) -> str:
    """A label as people read it."""
    return target.classes[int(value)] if target.kind == "multiclass" else f"{value:g}"


def _stereo_line(one: Identity) -> str:
    parts = [(one.open_centres, "stereo centre"), (one.open_bonds, "double bond")]
    return ", ".join(count(n, word) for n, word in parts if n)
