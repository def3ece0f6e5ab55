"""A raw table and a rule in; the curated table out, with a reason for every row that was taken out or merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from molgraph.base.errors import UsageError, nearest
from molgraph.chem.identity import Identity, identities_of
from molgraph.chem.parallel import map_texts
from molgraph.data.standardised import standardise
from molgraph.data.table import Table

#: Rules by name, as they stand on the cards.
RULES = {
    "c1": (
        "Rows that RDKit cannot read, or whose parent has no carbon, are out. Molecules are standardised by the preset "
        "'standard' (largest fragment, neutral). Rows of one parent, stereo kept, are replicates: a label that differs "
        "between them (a value by more than the tolerance) is out, the others become the mean (of classes: the one "
        "that all have). A row without any label left is out; replicates become one row, that of the first."
    )
}
COLUMNS = ["id", "smiles", "action", "target", "reason", "kept_as"]
VALUES = ("regression", "bounded")  # kinds of targets whose replicates may lie apart
ROUNDING = 1 + 1e-9  # 1.6 - 1.0 is more than 0.6 by the last bit


@dataclass(frozen=True)
class Curated:
    """A curated edition.

    Args:
        table: the rows that stayed, in the order of the first row of each, with that row's id.
        taken_out: what was done: ``out`` (a row), ``merged`` (a row, into ``kept_as``), ``label out`` (one label).
    """

    table: Table
    taken_out: pd.DataFrame

    @property
    def counts(self) -> dict[str, int]:
        """Rows (of ``label out``: labels) by what was done and why, in few words."""
        words = self.taken_out["action"] + ": " + self.taken_out["reason"].str.split(";").str[0]
        return {str(word): int(n) for word, n in words.value_counts(sort=False).items()}


def identify(table: Table, *, workers: int | None = None) -> list[Identity | None]:
    """Who the molecule of each row is; None where the reader has found none. Each different text is parsed once."""
    readable = np.flatnonzero(table.ok)
    codes, texts = pd.factorize(table.smiles[readable])
    each: list[Identity] = map_texts(identities_of, list(texts), label="molecules", workers=workers)
    who: list[Identity | None] = [None] * len(table)
    for row, code in zip(readable, codes, strict=True):
        who[row] = each[code]
    return who


def curate(
    table: Table,
    rule: str = "c1",
    *,
    tolerance: float | Mapping[str, float] = 0.0,
    workers: int | None = None,
    who: list[Identity | None] | None = None,
) -> Curated:
    """Apply a curation rule to a table of molecules; nothing is changed in place.

    Args:
        table: with a molecule column and targets.
        rule: ``c1``, see ``RULES``.
        tolerance: how far replicates of a value may lie apart, in the target's unit; a mapping says it for each
            target, and those that it leaves out may not differ.
        workers: processes; None decides by the number of molecules.
        who: what ``identify`` gave for the table, where that is known already.

    Returns:
        The edition; every row of ``table`` is in it, or in ``taken_out`` with a reason.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> smiles, y = ["CCO", "OCC", "CCN", "NCC", "C(C"], [1, 1, 0, 1, 1]
        >>> made = curate(make_table(smiles, targets=(Target("y", "binary"),), y=y))
        >>> made.table.ids, made.counts
        (array(['0'], dtype=object), {'out: unreadable': 1, 'merged: replicate': 1, 'out: contradictory': 2})
    """
    if rule not in RULES:
        raise UsageError(f"no curation rule is named {rule!r}", hint=nearest(rule, RULES))
    who = identify(table, workers=workers) if who is None else who
    notes: list[tuple[int, str, str, str, int | None]] = []
    groups: dict[str, list[int]] = {}
    for row, one in enumerate(who):
        if one is None or one.reason:
            notes.append((row, "out", "", f"unreadable; {one.reason if one else table.reason[row]}", None))
        elif not one.carbon:
            notes.append((row, "out", "", f"no carbon; its largest fragment is {one.parent}", None))
        else:
            groups.setdefault(one.parent, []).append(row)
    y = np.empty((len(table), 0)) if table.y is None else table.y.copy()
    may = {
        t.name: (tolerance.get(t.name, 0.0) if isinstance(tolerance, Mapping) else tolerance) * (t.kind in VALUES)
        for t in table.row_targets
    }
    kept = [rows[0] for parent, rows in groups.items() if _merge(table, y, parent, rows, may, notes)]
    kept.sort()
    made = standardise(replace(table, y=y if table.y is not None else None).take(np.array(kept, dtype=np.int64)))
    return Curated(made, _frame(table, notes))


def _merge(
    table: Table,
    y: np.ndarray,
    parent: str,
    rows: list[int],
    tolerance: Mapping[str, float],
    notes: list[tuple[int, str, str, str, int | None]],
) -> bool:
    """Settle the labels of one molecule's rows in ``y`` of its first row; whether that row stays."""
    settled = y[rows[0]].copy()
    differing: list[str] = []
    for j, target in enumerate(table.row_targets):
        values = y[rows, j]
        values = values[~np.isnan(values)]
        spread = values.max() - values.min() if len(values) else 0.0
        if spread > tolerance[target.name] * ROUNDING:
            settled[j] = np.nan
            differing.append(target.name)
        elif len(values):
            settled[j] = values.mean()
    where = f"contradictory; {len(rows)} rows of {parent}"
    if table.row_targets and np.isnan(settled).all():
        why = where if differing else "no label; no target has a value"
        notes.extend((row, "out", "", why, None) for row in rows)
        return False
    notes.extend((rows[0], "label out", name, where, rows[0]) for name in differing)
    notes.extend((row, "merged", "", f"replicate; of {parent}", rows[0]) for row in rows[1:])
    y[rows[0]] = settled
    return True


def _frame(table: Table, notes: list[tuple[int, str, str, str, int | None]]) -> pd.DataFrame:
    cells = [
        (table.ids[row], table.smiles[row], action, target, reason, "" if kept is None else table.ids[kept])
        for row, action, target, reason, kept in notes
    ]
    return pd.DataFrame(cells, columns=COLUMNS)
