"""``molgraph data trajectory`` writes the frames of a molecule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from molgraph.cli.main import app


def test_a_trajectory_is_written_with_its_energies_and_forces(tmp_path: Path) -> None:
    out = tmp_path / "md.npz"
    options = ["--steps", "40", "--every", "10", "--equilibrate", "0", "--temperature", "100"]
    done = CliRunner().invoke(app, ["data", "trajectory", "CCO", "-o", str(out), *options])
    assert done.exit_code == 0 and "4 frames of 9 atoms" in done.output, done.output
    with np.load(out, allow_pickle=False) as file:
        assert file["F"].shape == (4, 9, 3)
    done = CliRunner().invoke(app, ["data", "trajectory", "CCO", "-o", str(tmp_path / "md.csv")])
    assert done.exit_code == 2 and "npz" in done.output
