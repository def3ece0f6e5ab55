"""Say whether a fitted method gives forces, or places the atoms of molecules in space."""

from __future__ import annotations

from molgraph.base.contracts import Trainable
from molgraph.train.coordinates import PART
from molgraph.train.method import GraphMethod


def gives_forces(method: Trainable) -> bool:
    """Whether a method learned an energy with its forces, which ``molgraph.forces`` gives.

    Example:
        >>> gives_forces(GraphMethod(objective="energy-forces")), gives_forces(GraphMethod())
        (True, False)
    """
    return isinstance(method, GraphMethod) and method.objective.partition("(")[0] == "energy-forces"


def places_atoms(method: Trainable) -> bool:
    """Whether a method learned distances of atoms, by which ``molgraph conformers`` places them."""
    return isinstance(method, GraphMethod) and method.fitted is not None and PART in method.fitted.network.parts
