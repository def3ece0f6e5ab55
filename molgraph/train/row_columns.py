"""Further columns of predictions, which parts of a network give of each row, such as how unusual it is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class GivesColumns(Protocol):
    """A part of a network that gives columns of the rows that it saw last."""

    def take_columns(self) -> dict[str, Tensor]:
        """float [rows] by the column's name, of the last pass; nothing is kept after."""


def columns_of(network: Any) -> dict[str, Tensor]:
    """The columns of all parts of a network, of the rows of its last pass."""
    return {
        name: values
        for part in network.parts.values()
        if isinstance(part, GivesColumns)
        for name, values in part.take_columns().items()
    }
