"""Count the rows of a dataset, and those that no split could use, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from molgraph.base.printable import count
from molgraph.chem.identity import molecule_keys
from molgraph.data.splits import Split
from molgraph.data.table import MISSING, UNREADABLE, Table

UNREAD, EMPTY, PARENT = "cannot be read", "no molecule", "of a neutral parent that cannot be read"
_SHOWN = 3  # reasons


@dataclass(frozen=True)
class RowCount:
    """A dataset's rows."""

    rows: int = 0  # how many; 0 where nobody said
    left_out: Mapping[str, int] = field(default_factory=dict)  # why a row is in no part of any split -> how many are
    notes: tuple[str, ...] = ()  # how the values of a table of one's own were read

    def __str__(self) -> str:
        """All rows, or those that are used, of how many, why the others are not, notes; empty where nobody said.

        Example:
            >>> print(RowCount(2050, {"cannot be read": 11}))
            2,039 of 2,050 rows; 11 cannot be read
            >>> print(RowCount(1, {}))
            1 row
            >>> print(RowCount(9, notes=("2 of 9 labels are censored and were taken out",)))
            9 rows; 2 of 9 labels are censored and were taken out
        """
        lost = sum(self.left_out.values())
        if not lost:
            return "; ".join([count(self.rows, "row"), *self.notes]) if self.rows else ""
        most = sorted(self.left_out.items(), key=lambda item: -item[1])
        said = [f"{n:,} {reason}" for reason, n in most[:_SHOWN]]
        rest = sum(n for _, n in most[_SHOWN:])
        said += [f"{rest:,} for {len(most) - _SHOWN} more reasons"] if rest else []
        return "; ".join([f"{self.rows - lost:,} of {self.rows:,} rows", ", ".join(said), *self.notes])


def unused_rows(table: Table, splits: Iterable[Split]) -> dict[str, int]:
    """Reason -> rows that are in no part of any of the splits; most frequent first, {} where there is no split.

    Reasons are grouped: what RDKit says of each molecule that it cannot read stands in the split's own file.

    Example:
        >>> from molgraph.data.splits import split_table
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCC", "c1ccccc1", "CCN", "", "C1CC"])
        >>> unused_rows(table, [split_table(table, "random", fractions=(0.5, 0.25, 0.25))])
        {'no molecule': 1, 'cannot be read': 1}
    """
    parts, said = [], dict[int, str]()
    for split in splits:
        parts += [split.train, split.valid, split.test]
        said |= {out.row: out.reason for out in split.left_out if out.row not in said}
    if not parts:
        return {}
    lost = np.setdiff1d(np.arange(len(table)), np.concatenate(parts))
    found = Counter({MISSING: EMPTY, UNREADABLE: UNREAD}[str(status)] for status in table.status[lost[~table.ok[lost]]])
    rows = lost[table.ok[lost]]
    if len(rows) and [e.kind for e in table.entities] == ["molecule"]:  # tables of text leave that to who needs it
        parents = molecule_keys(table.smiles[rows], stereo=False)
        again = molecule_keys(parents.values, stereo=False)  # a ring of ferrocene has no neutral form
        same = (row for row, reason in zip(rows.tolist(), again.reasons, strict=True) if reason == said.get(row))
        said |= dict.fromkeys(same, PARENT)
        said |= {int(row): UNREAD for row, reason in zip(rows, parents.reasons, strict=True) if reason}
    found.update(said.get(int(row), "in no part of its splits") for row in rows)
    return dict(found.most_common())
