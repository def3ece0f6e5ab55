"""Audit a table: unreadable rows and cells, duplicates, contradictory labels, open stereo, salts, targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.chem.identity import Identity, identities_of
from molgraph.chem.parallel import map_texts
from molgraph.data.cells import COMMA, OTHER, QUALIFIER, TWO_UNITS, UNIT, UNITS, OddCell, Reading, read_cell
from molgraph.data.findings import Audit, Finding
from molgraph.data.profile import APART, OUTLIER_Z, SIMILAR, Profile, cliffs, profile, robust_z, scaled, similar_pairs
from molgraph.data.read import read_source
from molgraph.data.replicates import ROUNDING, partners
from molgraph.data.table import MISSING, Table

__all__ = ["Audit", "Finding", "audit"]

OUTLIER = f"over {OUTLIER_Z} robust standard deviations from the median (of logarithms, over many decades)"
CLIFF = f"similar molecules (Tanimoto from {SIMILAR}) with values {APART:g} deviations apart, or in other classes"
ODD = {
    COMMA: "a comma in a number; --decimal , reads it as a decimal sign",
    QUALIFIER: "bounds, no measured values; --qualifiers drop takes them out",
    UNIT: "numbers with a unit; --unit {way} brings all to one",
    TWO_UNITS: "numbers with another unit than the column of units has there; correct the one that is wrong",
    OTHER: "text where a number should stand",
}


def audit(data: Any, *, workers: int | None = None, **columns: Any) -> Audit:
    """Look at every molecule and label of a table; nothing is changed.

    Two rows hold the same molecule where their standardised parents (largest fragment, neutral, stereo kept)
    have one canonical SMILES, and of pairs the same partner. Labels contradict where such rows have different values.
    Cells of a target that are no plain number (``>8.0``, ``251 nM``, ``4,62``, text) are counted, never an error.

    Args:
        data: a table with a molecule column, or whatever ``read_table`` reads. Odd cells of targets can be counted in
            what has not been read yet.
        workers: processes; None decides by the number of molecules.
        columns: ``smiles``, ``id`` and ``targets``, as for ``read_table``, and how cells are read: ``decimal``,
            ``qualifiers``, ``unit``.

    Returns:
        Findings with the rows that show them, and a profile of each target.

    Example:
        >>> from molgraph.data.table import make_table
        >>> found = audit(make_table(["CCO", "OCC", "C(C", "CC(=O)[O-].[Na+]"]))
        >>> {f.kind: f.rows.tolist() for f in found.findings if len(f)}
        {'unreadable': [2], 'duplicate': [0, 1], 'salt or mixture': [3]}
        >>> messy = audit({"smiles": ["CCO", "CCN"], "y": ["5.1", ">8"]}, targets=["y"])
        >>> messy.finding("qualifier in y").details.tolist()
        ['>8']
    """
    given = {key: columns.pop(key) for key in ("decimal", "qualifiers", "unit") if key in columns}
    read = read_source(data, Reading(**given, lenient=True), **columns)
    table, odd = read.table, read.odd
    readable = np.flatnonzero(table.ok)
    codes, texts = pd.factorize(table.smiles[readable])
    found: list[Identity] = map_texts(identities_of, list(texts), label="audit", workers=workers)
    reasons = table.reason.copy()
    reasons[readable] = [found[c].reason for c in codes]
    good = reasons == ""
    rows = np.flatnonzero(good)
    each = [found[c] for c, is_good in zip(codes, good[readable], strict=True) if is_good]
    parent, parents = pd.factorize(np.array([f.parent for f in each], dtype=object))
    group, thing = parent, "molecule"
    for second in partners(table)[rows].T:  # a drug with another target is another thing
        group, thing = pd.factorize(group * (second.max(initial=0) + 2) + second)[0], "pair"
    twice = np.flatnonzero(np.bincount(group, minlength=1)[group] > 1) if len(group) else np.arange(0)
    twice = twice[np.argsort(group[twice], kind="stable")]
    centres = np.array([f.open_centres for f in each], dtype=np.int64)
    bonds = np.array([f.open_bonds for f in each], dtype=np.int64)
    parts = np.array([f.fragments for f in each], dtype=np.int64)

    missing = table.status == MISSING
    lost = np.flatnonzero(~good & ~missing)
    stereo, mixed = np.flatnonzero(centres + bonds > 0), np.flatnonzero(parts > 1)
    empty = np.flatnonzero(missing)
    findings = (
        _finding("unreadable", "RDKit reads no molecule there", lost, reasons[lost]),
        _finding("missing", "no molecule, or no value in a descriptor column", empty, reasons[empty]),
        _finding(
            "duplicate",
            f"several rows of one {thing} (largest fragment, neutral)",
            rows[twice],
            np.array([f"as {parents[parent[i]]}" for i in twice], dtype=object),
            group[twice],
        ),
        *(_contradictions(table, target, j, rows[twice], group[twice]) for j, target in enumerate(table.row_targets)),
        _finding(
            "undefined stereo",
            "stereo centres or double bonds without a stated configuration",
            rows[stereo],
            np.array([_stereo_line(centres[i], bonds[i]) for i in stereo], dtype=object),
        ),
        _finding(
            "salt or mixture",
            "more than one part; the presets desalt and standard keep the largest",
            rows[mixed],
            np.array([f"{parts[i]} parts, largest {each[i].parent}" for i in mixed], dtype=object),
        ),
    )
    molecule = np.full(len(table), -1, dtype=np.int64)
    molecule[rows] = group
    profiles, more, notes = _targets(table, molecule, rows, [f.parent for f in each])
    findings = (*findings, *_odd_cells(odd), *more)
    return Audit(table.ids, table.smiles, findings, len(parents), profiles, (*table.notes, *notes))


def _odd_cells(odd: list[OddCell]) -> Iterator[Finding]:
    """A finding for each column and kind of cell that is no plain number."""
    for column, kind in dict.fromkeys((cell.column, cell.kind) for cell in odd):
        these = [cell for cell in odd if (cell.column, cell.kind) == (column, kind)]
        units = Counter(read_cell(cell.text).unit for cell in these)
        counts = ", ".join(f"{unit} {n:,}" for unit, n in units.most_common(4) if unit)
        details = np.array([cell.text[:60] for cell in these], dtype=object)
        way = next((unit for unit, _ in units.most_common() if unit in UNITS), "nM")
        meaning = ODD[kind].format(way=way) + f" ({counts})" * bool(counts)
        yield _finding(f"{kind} in {column}", meaning, np.array([cell.row for cell in these]), details)


def _targets(
    table: Table, molecule: np.ndarray, rows: np.ndarray, parents: list[str]
) -> tuple[tuple[Profile, ...], list[Finding], list[str]]:
    """Profiles, findings (outliers and cliffs, where there are any) and notes on the targets."""
    if table.y is None or not table.row_targets:
        return (), [], []
    first = np.unique(molecule[rows], return_index=True)[1]
    some = first[~np.isnan(table.y[rows[first]]).all(axis=1)]
    if len(table.entities) > 1:  # one molecule with two partners is no cliff
        some = some[:0]
    pairs = similar_pairs(np.array(parents, dtype=object)[some], rows[some])
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
            sides = ["above" if z[i] > 0 else "below" for i in far]
            details = [f"{y[i]:g}, {abs(z[i]):.1f} deviations {s} the median" for i, s in zip(far, sides, strict=True)]
            findings.append(_finding(f"outlier in {target.name}", OUTLIER, far, np.array(details, dtype=object)))
        if found := cliffs(target, y, pairs):
            at = np.array([(c.first, c.second) for c in found]).ravel()
            details = [
                f"{shown(target, y[a])}; row {b + 1} has {shown(target, y[b])}, similarity {c.similarity:.2f}"
                for c in found
                for a, b in ((c.first, c.second), (c.second, c.first))
            ]
            group = np.repeat(np.arange(len(found)), 2)
            findings.append(_finding(f"cliff in {target.name}", CLIFF, at, np.array(details, dtype=object), group))
    sampled = f"cliffs were sought among {pairs.n_molecules:,} of {len(some):,} molecules"
    return tuple(profiles), findings, [sampled] * (pairs.n_molecules < len(some))


def _finding(
    kind: str, meaning: str, rows: np.ndarray, details: np.ndarray, groups: np.ndarray | None = None
) -> Finding:
    return Finding(kind, meaning, rows, details, np.arange(len(rows)) if groups is None else groups)


def _contradictions(table: Table, target: Target, j: int, rows: np.ndarray, groups: np.ndarray) -> Finding:
    """Rows of one molecule whose labels differ, the widest range first."""
    y = np.full(len(rows), np.nan) if table.y is None else table.y[rows, j]
    known = ~np.isnan(y)
    rows, groups, y = rows[known], groups[known], y[known]
    by_group = pd.Series(y).groupby(groups)
    low, high = by_group.transform("min").to_numpy(), by_group.transform("max").to_numpy()
    order = np.flatnonzero(high - low > ROUNDING * np.maximum(1.0, np.abs(high)))
    order = order[np.lexsort((rows[order], groups[order], (low - high)[order]))]

    details = [
        f"{shown(target, y[i])}; the molecule has {shown(target, low[i])} to {shown(target, high[i])}" for i in order
    ]
    meaning = f"rows of one molecule with different values of {target.name}"
    return _finding(
        f"contradiction in {target.name}", meaning, rows[order], np.array(details, dtype=object), groups[order]
    )


def shown(target: Target, value: float) -> str:
    """A label as people read it."""
    return target.classes[int(value)] if target.kind == "multiclass" else f"{value:g}"


def _stereo_line(centres: int, bonds: int) -> str:
    parts = [(centres, "stereo centre"), (bonds, "double bond")]
    return ", ".join(f"{n} {word}{'s' if n > 1 else ''}" for n, word in parts if n)
