"""Name the source of the positions that a method reads: the table's geometries, or conformers made from SMILES."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from molgraph.base.contracts import PredictsGraphs, Trainable
from molgraph.base.table import Table

GIVEN = "as given in the table"
NOTE = "geometry "  # how a note on it begins


@runtime_checkable
class MakesGeometry(Protocol):
    """A method that reads molecules and gives the method inside atoms in space."""

    @property
    def geometry(self) -> str:
        """How the positions are made, in a few words."""

    def as_read(self, table: Table) -> Table:
        """The table as the method inside reads it, without the positions; refused where none can be made."""


def geometry_of(method: Trainable) -> str:
    """Where a fitted method's positions of atoms come from, in a few words; empty where it reads none.

    Example:
        >>> from molgraph.base.registry import get
        >>> geometry_of(get("method", "mean")())
        ''
    """
    for part in method.with_members:
        if isinstance(part, MakesGeometry):
            return part.geometry
    inputs = method.graph_inputs() if isinstance(method, PredictsGraphs) else ()
    return GIVEN if any(column.kind == "geometry" for column in inputs) else ""
