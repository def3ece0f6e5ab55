"""Simulate the motion of a molecule by Langevin dynamics in RDKit's MMFF94 force field."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from molgraph.base.errors import CellError, TooLargeError, UnsupportedError
from molgraph.base.parameters import check_types
from molgraph.base.paths import check_ending, write_whole
from molgraph.base.progress import bar
from molgraph.base.ranges import Count, NotNegative, Range
from molgraph.base.seeds import derive, generator
from molgraph.chem.smiles import parse_smiles

KCAL = 4.184e-4  # amu angstrom^2 / fs^2 in a kcal/mol
BOLTZMANN = 0.0019872043  # kcal/mol/K
MAX_ATOMS = 1_000  # as the featuriser of geometries has it

Field = Callable[[np.ndarray], tuple[float, np.ndarray]]  # positions [n, 3] to energy, and forces [n, 3]


@dataclass(frozen=True)
class Trajectory:
    """Frames of one molecule.

    Args:
        numbers: uint8 [n], atomic numbers: heavy atoms in the order of the SMILES, then the added hydrogens.
        positions: float64 [frames, n, 3], angstrom.
        energies: float64 [frames], potential energy, kcal/mol.
        forces: float64 [frames, n, 3], kcal/mol/angstrom.
        kinetic: float64 [frames], kinetic energy, kcal/mol.
        name: the SMILES.
    """

    numbers: np.ndarray
    positions: np.ndarray
    energies: np.ndarray
    forces: np.ndarray
    kinetic: np.ndarray
    name: str

    @property
    def kelvin(self) -> float:
        """The temperature by the mean kinetic energy, ``2 K / (3 n k_B)``."""
        return float(2 * self.kinetic.mean() / (3 * len(self.numbers) * BOLTZMANN))

    def save(self, path: str | Path) -> Path:
        """Write an npz file with the keys of MD17 and sGDML: z, R, E, F, r_unit (Ang), e_unit (kcal/mol), name."""
        check_ending(path, ".npz")
        arrays = {"z": self.numbers, "R": self.positions, "E": self.energies, "F": self.forces, "K": self.kinetic}
        words = {"r_unit": "Ang", "e_unit": "kcal/mol", "name": self.name, "theory": "MMFF94 (RDKit)"}
        file = io.BytesIO()
        np.savez_compressed(file, **arrays, **{key: np.array(text) for key, text in words.items()})  # type: ignore[arg-type]
        return write_whole(path, file.getvalue())


def simulate(
    smiles: str,
    *,
    steps: Count = 10_000,
    every: Count = 10,
    temperature: NotNegative = 300.0,
    timestep_fs: Annotated[float, Range(0, 10, above=True)] = 0.5,
    friction_per_ps: NotNegative = 10.0,
    equilibrate: Annotated[int, Range(0, 1 << 20)] = 2_000,
    seed: int = 0,
) -> Trajectory:
    """Langevin dynamics of one molecule, from a relaxed conformer with velocities of the temperature.

    The BAOAB integrator (Leimkuhler and Matthews 2013, Appl. Math. Res. Express 2013:34): half a kick by the forces,
    half a drift, the friction and the random force exactly, half a drift, half a kick. Without friction it is velocity
    Verlet, which keeps the total energy.

    Args:
        smiles: one connected molecule; hydrogens are added.
        steps: of time, after equilibration.
        every: how many steps lie between two frames.
        temperature: kelvin.
        timestep_fs: femtoseconds.
        friction_per_ps: friction of the Langevin equation, 1/ps; 0 is dynamics at constant energy.
        equilibrate: steps of time before the first frame.
        seed: of the conformer, the velocities and the random force.

    Raises:
        CellError: the SMILES cannot be read or has no conformer. UnsupportedError: it has several fragments, or atoms
            of which MMFF94 has no parameters. TooLargeError: too many atoms.

    Example:
        >>> butane = simulate("CCCC", steps=20, equilibrate=0)
        >>> butane.positions.shape, butane.forces.shape
        ((2, 14, 3), (2, 14, 3))
    """
    settings = {"steps": steps, "every": every, "temperature": temperature, "timestep_fs": timestep_fs}
    settings |= {"friction_per_ps": friction_per_ps, "equilibrate": equilibrate}
    check_types(cast(Any, simulate), settings, owner="a trajectory")
    mol = _relaxed(smiles, derive(seed, "conformer") % (1 << 31))
    field, mass = _mmff(mol), np.array([[atom.GetMass()] for atom in mol.GetAtoms()])
    rng, dt = generator(seed, "langevin"), timestep_fs
    heat = np.sqrt(KCAL * BOLTZMANN * temperature / mass)  # standard deviation of a velocity, angstrom / fs
    damping = np.exp(-friction_per_ps * 1e-3 * dt)
    x = mol.GetConformer().GetPositions()
    v = heat * rng.standard_normal(x.shape)
    v -= (mass * v).sum(axis=0) / mass.sum()  # the molecule as a whole stands still at first
    energy, force = field(x)
    frames = []
    with bar("trajectory", equilibrate + steps) as line:
        for step in range(1, equilibrate + steps + 1):
            v = v + 0.5 * dt * KCAL * force / mass
            x = x + 0.5 * dt * v
            if friction_per_ps:
                v = damping * v + np.sqrt(1 - damping**2) * heat * rng.standard_normal(x.shape)
            x = x + 0.5 * dt * v
            energy, force = field(x)
            v = v + 0.5 * dt * KCAL * force / mass
            line.advance()
            if step > equilibrate and (step - equilibrate) % every == 0:
                frames.append((x, energy, force, 0.5 * float((mass * v**2).sum()) / KCAL))
    positions, energies, forces, kinetic = map(np.array, zip(*frames, strict=True)) if frames else _nothing(x)
    numbers = np.array([atom.GetAtomicNum() for atom in mol.GetAtoms()], np.uint8)
    return Trajectory(numbers, positions, energies, forces, kinetic, smiles)


def _nothing(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """No frames, where there are fewer steps than lie between two."""
    return np.zeros((0, *x.shape)), np.zeros(0), np.zeros((0, *x.shape)), np.zeros(0)


def _relaxed(smiles: str, seed: int) -> Chem.Mol:
    """The molecule with hydrogens, and one conformer that MMFF94 has relaxed."""
    parsed = parse_smiles(smiles)
    if parsed.mol is None:
        raise CellError(f"the SMILES {smiles[:80]!r} cannot be read: {parsed.reason}", hint="give one molecule")
    mol = Chem.AddHs(parsed.mol)
    if mol.GetNumAtoms() > MAX_ATOMS:
        raise TooLargeError(f"{smiles[:80]} has {mol.GetNumAtoms():,} atoms, {MAX_ATOMS:,} at most")
    if len(Chem.GetMolFrags(mol)) != 1:
        raise UnsupportedError(f"{smiles[:80]} has several fragments, or no atoms", hint="give one molecule alone")
    if not rdForceFieldHelpers.MMFFHasAllMoleculeParams(mol):
        words = f"MMFF94 has no parameters for an atom of {smiles[:80]}"
        raise UnsupportedError(words, hint="it knows molecules of H, C, N, O, F, Si, P, S, Cl, Br and I")
    if not any(rdDistGeom.EmbedMolecule(mol, randomSeed=seed, useRandomCoords=way) == 0 for way in (False, True)):
        raise CellError(f"RDKit makes no conformer of {smiles[:80]}", hint="give another molecule")
    rdForceFieldHelpers.MMFFOptimizeMolecule(mol, maxIters=2_000)
    return mol


def _mmff(mol: Chem.Mol) -> Field:
    """Energy and forces of positions."""
    field = rdForceFieldHelpers.MMFFGetMoleculeForceField(mol, rdForceFieldHelpers.MMFFGetMoleculeProperties(mol))
    field.Initialize()

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        flat = x.ravel().tolist()
        return field.CalcEnergy(flat), -np.array(field.CalcGrad(flat)).reshape(-1, 3)

    return evaluate
