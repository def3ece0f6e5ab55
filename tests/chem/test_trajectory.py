"""Trajectories by MMFF94: energy is kept without friction, the heat bath holds its temperature, seeds are exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from molgraph.base.errors import BadValueError, CellError, UnsupportedError
from molgraph.chem.trajectory import BOLTZMANN, simulate


def test_energy_is_conserved_without_friction() -> None:
    """The error of velocity Verlet falls as the square of the time step, and nothing drifts."""
    errors = []
    for dt in (0.5, 0.25):
        made = simulate("CCO", steps=int(1000 / dt), every=1, timestep_fs=dt, friction_per_ps=0, equilibrate=0)
        total = made.energies + made.kinetic
        drift = np.polyfit(np.linspace(0, 1, len(total)), total, 1)[0]
        assert abs(drift) < 0.01, "kcal/mol in a picosecond"
        errors.append(total.std())
    assert errors[0] < 0.01 * made.kinetic.mean() and errors[0] / errors[1] == pytest.approx(4, rel=0.3)


def test_forces_are_minus_the_slopes_of_the_energy_and_the_temperature_is_that_of_the_bath() -> None:
    """Along the path ``dE = -F dx``; kinetic energies have mean and deviation of a chi-square law of 3 n degrees."""
    path = simulate("CO", steps=200, every=1, timestep_fs=0.05, equilibrate=500)
    work = -(0.5 * (path.forces[1:] + path.forces[:-1]) * np.diff(path.positions, axis=0)).sum((1, 2))
    np.testing.assert_allclose(np.diff(path.energies), work, atol=1e-4)
    made = simulate("CO", steps=60_000, every=30, friction_per_ps=50)
    n = 3 * len(made.numbers)
    assert made.kelvin == pytest.approx(300, rel=0.04)
    assert made.kinetic.std() == pytest.approx(np.sqrt(n / 2) * BOLTZMANN * 300, rel=0.08)


def test_a_file_has_the_keys_of_md17_and_the_same_seed_the_same_frames(tmp_path: Path) -> None:
    one, two, other = (simulate("C", steps=20, every=5, equilibrate=5, seed=seed) for seed in (1, 1, 2))
    assert one.positions.tobytes() == two.positions.tobytes() != other.positions.tobytes()
    with np.load(one.save(tmp_path / "md.npz"), allow_pickle=False) as file:
        assert file["R"].shape == file["F"].shape == (4, 5, 3) and file["E"].shape == (4,)
        assert (
            file["z"].tolist() == [6, 1, 1, 1, 1] and str(file["e_unit"]) == "kcal/mol" and str(file["r_unit"]) == "Ang"
        )


@pytest.mark.parametrize(
    ("smiles", "settings", "kind", "word"),
    [
        ("C(", {}, CellError, "read"),
        ("CCO.O", {}, UnsupportedError, "fragments"),
        ("[H][H]", {}, UnsupportedError, "parameters"),
        ("C", {"timestep_fs": 0}, BadValueError, "timestep_fs"),
    ],
)
def test_what_cannot_be_simulated_says_why(smiles: str, settings: dict, kind: type[Exception], word: str) -> None:
    with pytest.raises(kind, match=word):
        simulate(smiles, **settings)
