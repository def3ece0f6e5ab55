"""``molgraph data field`` writes the electrostatic potential at points, which the encoder field learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.chem.field import COULOMB, potential_of
from tests.cli.test_cli_entities import call


def test_a_potential_is_written_with_its_points_and_trained_on(tmp_path: Path) -> None:
    (tmp_path / "library.csv").write_text("smiles\nCCO\nCO\nC(\nCC#N\nCCO\nc1ccccc1\n")
    asked = ("--points", "6", "-o", "points.csv")
    code, said = call(tmp_path, "data", "field", "library.csv", *asked)
    assert code == 0 and "left out: 1 x SMILES Parse Error" in said, said
    frame = pd.read_csv(tmp_path / "points.csv")
    assert frame["name"].tolist() == [text for text in ("CCO", "CO", "CC#N", "c1ccccc1") for _ in range(6)]
    assert frame["geometry"].str.contains("\n* ", regex=False).all() and not [*tmp_path.glob("*.tmp*")]
    np.testing.assert_array_equal(frame["potential"][6:12], potential_of("CO", 6).values)
    quick = (
        "--epochs",
        "1",
        "-s",
        "params.d_hidden=8",
        "--no-baseline",
        "--split",
        "random",
        "--fractions",
        "0.75,0.25,0",
    )
    shape = ("--geometry", "geometry", "-t", "potential", "-m", "field", "-o", "m.mgm")
    code, said = call(tmp_path, "train", "points.csv", *shape, *quick)
    assert code == 0 and "split random: 18 train" in said, said  # whole molecules
    code, said = call(tmp_path, "data", "field", "library.csv", "-o", "points.xyz")
    assert code == 2 and "csv" in said


def test_far_from_a_molecule_the_potential_is_that_of_its_charge() -> None:
    """Points lie between the shells; the values are Coulomb's sums, so an anion's is negative all around."""
    anion = potential_of("CC(=O)[O-]", 200, seed=3)
    assert (anion.values < 0).all()
    distance = np.linalg.norm(anion.points[:, None] - anion.positions, axis=2)
    assert distance.min() >= 1.4 * 1.1 and distance.min(axis=1).max() <= 2.0 * 2.1
    assert np.abs(anion.values).max() < COULOMB / distance.min()
