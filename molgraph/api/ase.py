"""Make a trained energy model a calculator of ASE, for molecular dynamics and relaxation."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from molgraph.api.prediction import energy_network, load
from molgraph.base.errors import CellError, MissingOptionError, UnknownNameError, UnsupportedError, nearest
from molgraph.base.optional import need
from molgraph.data.batch import collate
from molgraph.data.composition import compositions
from molgraph.data.featurize_geometry import Geometries
from molgraph.data.graph_values import Geometry
from molgraph.data.table import OK
from molgraph.train.forces import energies_and_forces
from molgraph.train.inference import FittedNetworks
from molgraph.train.model import Model
from molgraph.train.samples import InputBatch, Sample

if TYPE_CHECKING:
    from ase.calculators.calculator import Calculator


def ase_calculator(model: Model | str | os.PathLike[str], *, unit: str | None = None) -> Calculator:
    """The calculator of ASE by which atoms move in a model's energy.

    It computes in double precision, so that the total energy is kept as well as the model's smoothness allows.

    Args:
        model: a graph model of one energy that reads atoms in space, such as schnet, or the path of its file.
        unit: of the model's energy, which ASE has in eV: ``eV``, ``kcal/mol``, ``kJ/mol`` or ``Hartree``; None is the
            unit on the model's card. Positions are in angstrom.

    Returns:
        An ASE calculator of ``energy`` and ``forces``, for molecules without periodic images.

    Raises:
        NotInstalledError: ASE is missing. UnsupportedError: the model has no forces. MissingOptionError: the card names
            no unit. UnknownNameError: another unit.

    Example:
        >>> atoms.calc = molgraph.ase_calculator("schnet.mgm", unit="kcal/mol")  # doctest: +SKIP
        >>> ase.optimize.BFGS(atoms).run(fmax=0.05)  # doctest: +SKIP
    """
    units, module = need("ase.units", "a calculator"), need("ase.calculators.calculator", "a calculator")
    loaded = model if isinstance(model, Model) else load(model)
    fitted = energy_network(loaded)
    if len(fitted.descriptors.names):
        words = f"the model reads {fitted.descriptors.names[0]!r} beside the geometry, which atoms do not have"
        raise UnsupportedError(words, hint="train it on geometries alone")
    unit = unit or loaded.card.units.get(fitted.outputs.targets[0].name)
    if unit is None:
        raise MissingOptionError("the model's card names no unit of its energy", hint='such as unit="kcal/mol"')
    known = {"eV": 1.0, "kcal/mol": units.kcal / units.mol, "kJ/mol": units.kJ / units.mol, "Hartree": units.Hartree}
    if unit not in known:
        raise UnknownNameError(f"no energy unit is named {unit!r}", hint=nearest(unit, known))
    in_ev = known[unit]
    double = replace(fitted, network=deepcopy(fitted.network).double())

    class Molgraph(module.Calculator):  # type: ignore[name-defined]
        """Energy in eV and forces in eV/angstrom of a molgraph model."""

        implemented_properties: ClassVar[list[str]] = ["energy", "forces"]

        def calculate(
            self, atoms: Any = None, properties: Any = ("energy",), system_changes: Any = module.all_changes
        ) -> None:
            super().calculate(atoms, properties, system_changes)
            if self.atoms.pbc.any():
                raise UnsupportedError("the model knows no periodic images", hint="set atoms.pbc = False")
            energy, forces = evaluate(double, self.atoms.numbers, self.atoms.positions)
            self.results = {"energy": energy * in_ev, "forces": forces * in_ev}

    return Molgraph()


def evaluate(fitted: FittedNetworks, numbers: np.ndarray, positions: np.ndarray) -> tuple[float, np.ndarray]:
    """Energy and forces float64 [n, 3] of one geometry, by a network in double precision.

    Raises:
        CellError: the positions are no finite numbers, or there are too many atoms.
    """
    store = Geometries().featurise([Geometry(numbers, positions)])
    if store.status[0] != OK:
        raise CellError(f"the atoms cannot be used: {store.reason[0]}", hint="look at their positions")
    counts, references = None, fitted.outputs.references
    if references is not None:
        counts = compositions(store, Geometries())
        if counts[:, ~references.known].any():
            raise CellError("an atom is of an element that the model never saw", hint="train it on such molecules")
    batch = collate(store, np.arange(1))
    table = batch["atom"].table
    assert table is not None
    batch = batch.with_level("atom", table=table.double(), position=torch.from_numpy(np.array(positions, np.float64)))
    sample = Sample((InputBatch(batch, None),), None, None, None)
    fitted.network.prepare(sample)
    energies, forces = energies_and_forces(fitted, sample, counts)
    return float(energies[0]), forces
