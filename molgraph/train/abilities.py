"""Say what a fitted model can do beside predicting its targets: give forces, or place the atoms of molecules."""

from __future__ import annotations

from typing import Any

from molgraph.train.coordinates import PART
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model


def gives_forces(model: Any) -> bool:
    """Whether a model learned an energy with its forces, which ``molgraph.forces`` gives.

    Example:
        >>> gives_forces(Model(GraphMethod(objective="energy-forces"), targets=()))
        True
    """
    method = model.method if isinstance(model, Model) else None
    return isinstance(method, GraphMethod) and method.objective.partition("(")[0] == "energy-forces"


def places_atoms(model: Any) -> bool:
    """Whether a model learned distances of atoms, by which ``molgraph conformers`` places them."""
    method = model.method if isinstance(model, Model) else None
    return isinstance(method, GraphMethod) and method.fitted is not None and PART in method.fitted.network.parts
