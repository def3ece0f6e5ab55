"""Define ``MakesGeometry``: a method that makes the positions of the atoms that it reads."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from molgraph.base.table import Table


@runtime_checkable
class MakesGeometry(Protocol):
    """A method that reads molecules and gives the method inside atoms in space."""

    @property
    def geometry(self) -> str:
        """How the positions are made, in a few words."""

    def as_read(self, table: Table) -> Table:
        """The table as the method inside reads it, without the positions; refused where none can be made."""
