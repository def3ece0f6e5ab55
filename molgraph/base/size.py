"""Bound the memory and work that a stored model may ask for, before anything is built from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import TypeVar

from molgraph.base.errors import ModelFileError

Shapes = Mapping[str, tuple[int, ...]]  # an array's name -> its shape
V = TypeVar("V")


@dataclass(frozen=True)
class Size:
    """What prediction with a stored method needs, beyond the stored arrays themselves.

    Args:
        bytes: memory, however few the rows.
        operations: multiply-adds, however few the rows.
        row_bytes: further memory for each row that is predicted at once.
        row_operations: further multiply-adds for each row.
    """

    bytes: int = 0
    operations: int = 0
    row_bytes: int = 0
    row_operations: int = 0

    def check(self, held: int) -> None:
        """Refuse a method that asks for more than its arrays can justify.

        Args:
            held: bytes of the stored arrays.

        Raises:
            ModelFileError: one of the four is above its limit.

        Example:
            >>> Size(bytes=30_000**2 * 24).check(274_000)
            Traceback (most recent call last):
            ...
            molgraph.base.errors.ModelFileError: the model asks for 21,600,000,000 bytes, at most 4,296,063,296 may be
              train it on fewer rows, or with smaller settings
        """
        most = Size((4 << 30) + 4 * held, 4 * 10**12 + 400_000 * held, (512 << 10) + 2 * held, 10**9 + 2_000 * held)
        words = ("bytes", "operations", "bytes a row", "operations a row")
        for word, asked, limit in zip(words, astuple(self), astuple(most), strict=True):
            if not 0 <= asked <= limit:
                shown = f"{asked:,}" if abs(asked) < 10**30 else "more than 10^30"
                raise ModelFileError(
                    f"the model asks for {shown} {word}, at most {limit:,} may be",
                    hint="train it on fewer rows, or with smaller settings",
                )


def together(sizes: Iterable[Size]) -> Size:
    """What several parts need that work one after the other: memory of the largest, operations of all.

    Example:
        >>> together([Size(row_bytes=1, operations=2), Size(bytes=5, operations=3)])
        Size(bytes=5, operations=5, row_bytes=1, row_operations=0)
    """
    memory, work, row_memory, row_work = zip(*map(astuple, [Size(), *sizes]), strict=True)
    return Size(max(memory), sum(work), max(row_memory), sum(row_work))


def by_owner(values: Mapping[str, V]) -> dict[str, dict[str, V]]:
    """Arrays or shapes of several parts, under the part's name, which ends at the first dot.

    Example:
        >>> by_owner({"fill": 1, "member-0.w.a": 2, "member-0.b": 3})
        {'': {'fill': 1}, 'member-0': {'w.a': 2, 'b': 3}}
    """
    found: dict[str, dict[str, V]] = {}
    for name, value in values.items():
        owner, dot, rest = name.partition(".")
        found.setdefault(owner if dot else "", {})[rest if dot else name] = value
    return found
