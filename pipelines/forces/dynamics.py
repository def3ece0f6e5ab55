"""Train energies with forces on a trajectory, run dynamics at constant energy by ASE, and write how well it is kept.

    python -m pipelines.forces.dynamics --help
    python -m pipelines.forces.dynamics CCO --models schnet painn    # writes DYNAMICS.md and dynamics.png, some minutes

The trajectory is that of ``molgraph data trajectory`` (MMFF94, Langevin at ``--heat`` kelvin); half of its frames train
a model by ``--objective energy-forces``. The dynamics start at 300 K from a frame of the test part.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ase
import numpy as np
from ase import units
from ase.md.velocitydistribution import MaxwellBoltzmannDistribution, Stationary
from ase.md.verlet import VelocityVerlet

import molgraph

HERE = Path(__file__).parent
STEP = 0.5  # femtoseconds
ENERGIES = ("total", "potential", "kinetic")


def main() -> None:
    """Make the trajectory, train and run each model, write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("smiles", nargs="?", default="CCO", help="one molecule")
    parser.add_argument("--models", nargs="+", default=["schnet", "painn"], help="encoders of atoms in space")
    parser.add_argument("--frames", type=int, default=2_000, help="of the trajectory, 5 fs apart")
    parser.add_argument("--heat", type=float, default=500.0, help="kelvin of the trajectory")
    parser.add_argument("--epochs", type=int, default=40, help="of training")
    parser.add_argument("--picoseconds", type=float, default=2.0, help="of dynamics at constant energy")
    parser.add_argument("--seed", type=int, default=0, help="of the trajectory, the training and the velocities")
    parser.add_argument("--out", type=Path, default=HERE, help="folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "md.npz"
        options = ("--steps", 10 * asked.frames, "--temperature", asked.heat, "--seed", asked.seed, "-o", file)
        command = [sys.executable, "-m", "molgraph", "data", "trajectory", asked.smiles, *map(str, options)]
        subprocess.run(command, check=True)
        runs: dict[str, dict[str, Any]] = {}
        for name in asked.models:
            runs[name] = run(name, file, asked)
            (asked.out / "DYNAMICS.md").write_text(page(asked, runs), encoding="utf-8")
            draw(runs, asked.out / "dynamics.png", asked.smiles)
    print(page(asked, runs))


def run(name: str, file: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Train one model, measure its forces on frames of the test part, and let the molecule move by them."""
    started = time.process_time()
    how = {"objective": "energy-forces(force=10)", "split": "random/frames", "fractions": (0.5, 0.05, 0.45)}
    how |= {"epochs": asked.epochs, "learning_rate": 2e-3, "batch_size": 16, "threads": 1, "seed": asked.seed}
    result = molgraph.train(file, targets=["E"], model=name, baseline=False, **how)
    seconds, test = time.process_time() - started, result.split.test[:200]
    with np.load(file) as frames:
        numbers, positions, known = frames["z"], frames["R"], frames["F"][test]
    guesses = np.array(molgraph.forces(result.model, molgraph.read_table(file, targets=["E"]).take(test)))
    atoms = ase.Atoms(numbers, positions[test[0]], calculator=molgraph.ase_calculator(result.model, unit="kcal/mol"))
    MaxwellBoltzmannDistribution(atoms, temperature_K=300, rng=np.random.default_rng(asked.seed))
    Stationary(atoms)
    energies, dynamics = [], VelocityVerlet(atoms, STEP * units.fs)
    dynamics.attach(lambda: energies.append((atoms.get_total_energy(), atoms.get_potential_energy())), interval=10)
    dynamics.run(round(asked.picoseconds * 1e3 / STEP))
    total, potential = 1e3 * np.array(energies).T / len(atoms)  # meV/atom
    ps = np.arange(len(total)) * 10 * STEP / 1e3
    distance = np.linalg.norm(atoms.positions - atoms.get_center_of_mass(), axis=1).max()
    return {
        "seconds": seconds,
        "mae": float(np.abs(guesses - known).mean()),
        "spread": float(np.abs(known - known.mean()).mean()),
        "drift": float(np.polyfit(ps, total, 1)[0]),
        "ripple": float((total - np.polyval(np.polyfit(ps, total, 1), ps)).std()),
        "kelvin": float((total - potential).mean() / 1.5e3 / units.kB),
        "whole": bool(distance < 1.5 * np.linalg.norm(positions[0] - positions[0].mean(axis=0), axis=1).max()),
        "ps": ps,
        "total": total - total[0],
        "potential": potential - potential[0],
        "kinetic": total - potential,
    }


def page(asked: argparse.Namespace, runs: dict[str, dict[str, Any]]) -> str:
    """The figures as Markdown."""
    head = ("model", "CPU s of training", "MAE of forces", "drift of the total energy", "ripple", "mean K", "whole")
    moved = f"then {asked.picoseconds:g} ps of velocity Verlet at {STEP} fs from 300 K, seed {asked.seed}."
    lines = [
        "# Dynamics at constant energy by learnt forces",
        "",
        "Written by `python -m pipelines.forces.dynamics`.",
        "",
        f"{asked.smiles}: {asked.frames:,} frames of MMFF94 dynamics at {asked.heat:g} K, half to learn from;",
        f"{asked.epochs} epochs; {moved}",
        "Forces in kcal/mol/angstrom, on frames of the test part, beside their mean absolute deviation. Drift in",
        "meV/atom/ps by a line; ripple is the deviation from that line, meV/atom. Whole: no atom went away.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for name, each in runs.items():
        row = (name, f"{each['seconds']:.0f}", f"{each['mae']:.2f} of {each['spread']:.1f}", f"{each['drift']:+.3f}")
        row += (f"{each['ripple']:.3f}", f"{each['kelvin']:.0f}", "yes" if each["whole"] else "no")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, "", "![Energies over time](dynamics.png)", ""])


def draw(runs: dict[str, dict[str, Any]], path: Path, title: str) -> None:
    """Total, potential and kinetic energy over time, a panel a model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(runs), 1, figsize=(8, 3 * len(runs)), sharex=True, squeeze=False)
    for (name, each), axis in zip(runs.items(), axes[:, 0], strict=True):
        for what, colour in zip(ENERGIES, ("#1d2733", "#2a6fbb", "#d9822b"), strict=True):
            axis.plot(each["ps"], each[what], color=colour, lw=2.0 if what == "total" else 0.8, label=what)
        axis.set(ylabel="meV/atom", title=f"{title}, {name}: drift {each['drift']:+.3f} meV/atom/ps")
        axis.legend(loc="upper right", ncols=3, frameon=False)
    axes[-1, 0].set(xlabel="time, ps (total and potential energy from their first values)")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
