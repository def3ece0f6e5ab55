"""Write one line on how many rows a dataset has and why some are not used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_SHOWN = 3  # reasons


@dataclass(frozen=True)
class RowCount:
    """A dataset's rows.

    Args:
        rows: how many; 0 where nobody said.
        left_out: why a row is in no part of any split -> how many are.
    """

    rows: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """All rows, or those that are used, of how many, and why the others are not; empty where nobody said.

        Example:
            >>> print(RowCount(2050, {"cannot be read": 11}))
            2,039 of 2,050 rows; 11 cannot be read
            >>> print(RowCount(1, {}))
            1 row
        """
        lost = sum(self.left_out.values())
        if not lost:
            return f"{self.rows:,} row{'s' * (self.rows != 1)}" if self.rows else ""
        most = sorted(self.left_out.items(), key=lambda item: -item[1])
        said = [f"{n:,} {reason}" for reason, n in most[:_SHOWN]]
        rest = sum(n for _, n in most[_SHOWN:])
        said += [f"{rest:,} for {len(most) - _SHOWN} more reasons"] if rest else []
        return f"{self.rows - lost:,} of {self.rows:,} rows; {', '.join(said)}"
