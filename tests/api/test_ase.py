"""ASE's calculator: the model's energies and forces in eV, and dynamics that keep the total energy."""

from __future__ import annotations

import numpy as np
import pytest

import molgraph
from molgraph.base.errors import CellError, MissingOptionError, UnknownNameError, UnsupportedError
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.train.test_energy_forces import SMALL, TARGETS, WATER, frames

ase = pytest.importorskip("ase")
KCAL = 0.0433641  # eV in a kcal/mol


@pytest.fixture(scope="module")
def model() -> Model:
    how = {**SMALL, "objective": "energy-forces", "epochs": 10, "learning_rate": 0.01, "threads": 1}
    how["head"] = "atomwise"
    return Model(GraphMethod("schnet", **how).fit(frames(slice(40))), targets=TARGETS)


def atoms(model: Model, i: int = 0) -> ase.Atoms:
    made = ase.Atoms(WATER.numbers, WATER.positions[i])
    made.calc = molgraph.ase_calculator(model, unit="kcal/mol")
    return made


def test_energy_and_forces_are_the_models_in_ev(model: Model) -> None:
    water = atoms(model)
    table = frames(slice(1))
    assert water.get_potential_energy() == pytest.approx(KCAL * model.predict(table).value[0, 0], rel=1e-4)
    forces = molgraph.forces(model, table)[0]
    np.testing.assert_allclose(water.get_forces(), KCAL * forces, atol=1e-3)
    slope, at = water.get_forces()[1, 2], water.positions.copy()
    energies = []
    for step in (1e-4, -1e-4):
        water.positions = at + step * np.array([[0, 0, 0], [0, 0, 1], [0, 0, 0]])
        energies.append(water.get_potential_energy())
    assert (energies[1] - energies[0]) / 2e-4 == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_dynamics_keep_the_total_energy(model: Model) -> None:
    from ase import units
    from ase.md.verlet import VelocityVerlet

    water, total = atoms(model), []
    dynamics = VelocityVerlet(water, 0.5 * units.fs)
    for _ in range(80):
        dynamics.run(1)
        total.append(water.get_total_energy() / KCAL)
    drift = np.polyfit(np.linspace(0, 1, len(total)), total, 1)[0]
    print(f"drift {drift:.4f}, spread {np.ptp(total):.4f}, kinetic {water.get_kinetic_energy() / KCAL:.3f} kcal/mol")
    assert abs(drift) < 0.05 and np.ptp(total) < 0.2


def test_a_unit_and_atoms_without_images_are_asked_for(model: Model) -> None:
    with pytest.raises(MissingOptionError, match="unit"):
        molgraph.ase_calculator(model)
    with pytest.raises(UnknownNameError, match="unit"):
        molgraph.ase_calculator(model, unit="kcal")
    water = atoms(model)
    with pytest.raises(CellError, match="element"):
        ase.Atoms("OHF", water.positions, calculator=water.calc).get_potential_energy()
    water.pbc = True
    with pytest.raises(UnsupportedError, match="periodic"):
        water.get_potential_energy()
