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
        unused = sum(self.left_out.values())
        if not unused:
            return "; ".join([count(self.rows, "row"), *self.notes]) if self.rows else ""
        reasons = sorted(self.left_out.items(), key=lambda item: -item[1])
        texts = [f"{n:,} {reason}" for reason, n in reasons[:_SHOWN]]
        if len(reasons) > _SHOWN:
            texts.append(f"{sum(n for _, n in reasons[_SHOWN:]):,} for {len(reasons) - _SHOWN} more reasons")
        return "; ".join([f"{self.rows - unused:,} of {self.rows:,} rows", ", ".join(texts), *self.notes])


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
    splits = list(splits)
    if not splits:
        return {}
    used = np.concatenate([part for split in splits for part in (split.train, split.valid, split.test)])
    reason_of = {out.row: out.reason for split in reversed(splits) for out in split.left_out}  # the first split's word
    unused = np.setdiff1d(np.arange(len(table)), used)
    counts = Counter({MISSING: EMPTY, UNREADABLE: UNREAD}[str(s)] for s in table.status[unused[~table.ok[unused]]])
    rows = unused[table.ok[unused]]
    if len(rows) and [e.kind for e in table.entities] == ["molecule"]:  # tables of text leave that to who needs it
        parents = molecule_keys(table.smiles[rows], stereo=False)
        again = molecule_keys(parents.values, stereo=False)  # a ring of ferrocene has no neutral form
        for row, reason, reason_of_parent in zip(rows.tolist(), parents.reasons, again.reasons, strict=True):
            if reason or reason_of_parent == reason_of.get(row):
                reason_of[row] = UNREAD if reason else PARENT
    counts.update(reason_of.get(int(row), "in no part of its splits") for row in rows)
    return dict(counts.most_common())
