"""Declare the allowed range of a hyper-parameter in the annotations of a constructor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

LARGEST = 1 << 20  # of whole numbers but seeds: more trees, epochs or columns no model has
INNER_LIMIT = 4096  # of an encoder's whole numbers
HUGE = 1e30  # of other numbers: single precision, in which libraries in C hold them, ends at 3e38


@dataclass(frozen=True)
class Range:
    """The numbers that a parameter may be, written as ``Annotated[int, Range(1, 12)]``.

    Args:
        low: the lowest.
        high: the highest.
        above: whether ``low`` itself is too low.
        below: whether ``high`` itself is too high.
        multiple_of: what whole numbers are divisible by.

    Example:
        >>> bits = Range(8, 2048, multiple_of=8)
        >>> bits.holds(1024), bits.holds(100), str(bits)
        (True, False, 'from 8 to 2,048, a multiple of 8')
    """

    low: float
    high: float = HUGE
    above: bool = False
    below: bool = False
    multiple_of: int = 1
    __is_annotated_types_grouped_metadata__: ClassVar[bool] = True  # pydantic then checks a recipe by ``__iter__``

    def __iter__(self) -> Iterator[Any]:
        """The same range as pydantic writes it."""
        from pydantic import Field

        low = Field(gt=self.low) if self.above else Field(ge=self.low)
        high = Field(lt=self.high) if self.below else Field(le=self.high)
        yield from (*low.metadata, *high.metadata)

    def holds(self, value: Any) -> bool:
        """Whether a number lies within the range."""
        inside = self.low <= value <= self.high and not value % self.multiple_of * (self.multiple_of > 1)
        return inside and not (self.above and value == self.low) and not (self.below and value == self.high)

    def __str__(self) -> str:
        high = f"{self.high:g}" if self.high == HUGE else f"{self.high:,}"
        end = f"and below {high}" if self.below else f"and up to {high}" if self.above else f"to {high}"
        start = f"above {self.low:,}" if self.above else f"from {self.low:,}"
        return f"{start} {end}" + f", a multiple of {self.multiple_of}" * (self.multiple_of > 1)


Count = Annotated[int, Range(1, LARGEST)]
Radius = Annotated[int, Range(0, 16)]  # bonds around an atom
Bits = Annotated[int, Range(8, LARGEST, multiple_of=8)]  # columns of a fingerprint
Width = Annotated[int, Range(1, INNER_LIMIT)]
Layers = Annotated[int, Range(0, INNER_LIMIT)]
Share = Annotated[float, Range(1e-6, 1)]
Probability = Annotated[float, Range(0, 1)]
Positive = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
