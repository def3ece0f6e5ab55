"""``molgraph data trajectory``: simulate the motion of a molecule, for energies with forces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from molgraph.base.paths import check_ending
from molgraph.base.printable import count
from molgraph.cli.options import argument, check_writable, option, out_option


def trajectory(
    smiles: Annotated[str, argument("One molecule.")],
    out: Annotated[Path, out_option("An npz file.")],
    steps: Annotated[int, option("N", "Steps of time, after equilibration.")] = 10_000,
    every: Annotated[int, option("N", "Steps between two frames.")] = 10,
    temperature: Annotated[float, option("K", "Of the heat bath, in kelvin.")] = 300.0,
    timestep: Annotated[float, option("FS", "Of one step, in femtoseconds.")] = 0.5,
    friction: Annotated[float, option("RATE", "Per picosecond; 0 is dynamics at constant energy.")] = 10.0,
    equilibrate: Annotated[int, option("N", "Steps before the first frame.")] = 2_000,
    seed: Annotated[int, option("N", "The same seed gives the same frames.")] = 0,
) -> None:
    """Simulate the motion of one molecule, with energies and forces.

    Langevin dynamics in RDKit's MMFF94 force field: some 100,000 steps take
    seconds. The file has the keys of MD17 and sGDML: z, R (angstrom),
    E (kcal/mol) and F (kcal/mol/angstrom).

    Examples:
        molgraph data trajectory CCO -o md.npz
        molgraph data trajectory CCO -o hot.npz --temperature 600 --steps 50000
        molgraph train md.npz -t E -m schnet --objective energy-forces --split random/frames
    """
    check_writable(out)
    check_ending(out, ".npz")
    from molgraph.chem.trajectory import simulate
    from molgraph.cli.show import say
    from molgraph.cli.show import steps as shown_steps

    how = {"timestep_fs": timestep, "friction_per_ps": friction, "equilibrate": equilibrate, "seed": seed}
    with shown_steps():
        frames = simulate(smiles, steps=steps, every=every, temperature=temperature, **how)  # type: ignore[arg-type]
    frames.save(out)
    if not len(frames.energies):
        say(f"no frame: {steps} steps are fewer than the {every} between two", "yellow", err=True)
        return
    sizes = f"{count(len(frames.energies), 'frame')} of {count(len(frames.numbers), 'atom')}"
    say(f"{sizes}, {frames.kelvin:.0f} K on average")
    say(f"energies {frames.energies.mean():.2f} +- {frames.energies.std():.2f} kcal/mol")
    say(f"written to {out}", err=True)
