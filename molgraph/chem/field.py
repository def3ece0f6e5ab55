"""Compute the electrostatic potential at points around molecules from Gasteiger charges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdPartialCharges

from molgraph.base.errors import CellError
from molgraph.base.seeds import generator
from molgraph.chem.conformer import make_conformers
from molgraph.chem.smiles import parse_smiles
from molgraph.chem.xyz import write_frame

COULOMB = 332.0637  # kcal angstrom / mol / e^2
NEAR, FAR = 1.4, 2.0  # of the points, in van der Waals radii: those of Singh and Kollman 1984, J. Comput. Chem. 5:129


class Potential(NamedTuple):
    """Points around one conformer, and the potential there.

    Args:
        numbers: uint8 [n], positions: float32 [n, 3], of the atoms with hydrogens, angstrom.
        points: float64 [m, 3], angstrom.
        values: float64 [m], kcal/mol of a charge of one electron's size.
    """

    numbers: np.ndarray
    positions: np.ndarray
    points: np.ndarray
    values: np.ndarray

    def frames(self) -> list[str]:
        """For each point the text of an XYZ file: the atoms, and the point as a dummy atom (number 0, symbol ``*``)."""
        numbers = np.append(self.numbers, 0)
        return [write_frame(numbers, np.vstack([self.positions, np.float32(point)])) for point in self.points]


def potential_of(smiles: str, n_points: int, *, seed: int = 0) -> Potential:
    """``V(r) = k sum_j q_j / |r - r_j|`` at random points between 1.4 and 2 van der Waals radii of a conformer.

    The charges q are Gasteiger and Marsili's (1980, Tetrahedron 36:3219), the conformer is ETKDG's, relaxed.

    Raises:
        CellError: the molecule cannot be read, has no conformer, or an atom has no charge.

    Example:
        >>> water = potential_of("O", 5)
        >>> water.points.shape, water.values.shape
        ((5, 3), (5,))
    """
    (shape,) = make_conformers([smiles], seed=seed)
    if shape.reason:
        raise CellError(f"{smiles[:80]!r}: {shape.reason}", hint="leave the row out")
    mol = Chem.AddHs(parse_smiles(smiles).mol)
    rdPartialCharges.ComputeGasteigerCharges(mol)
    charges = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in mol.GetAtoms()])
    if not np.isfinite(charges).all():
        raise CellError(f"{smiles[:80]!r}: an atom has no Gasteiger charge", hint="leave the row out")
    at, table = shape.positions[0].astype(np.float64), Chem.GetPeriodicTable()
    radii = np.array([table.GetRvdw(int(z)) for z in shape.numbers])
    points = _shell(at, radii, n_points, generator(seed, "points", smiles))
    distances = np.linalg.norm(points[:, None] - at, axis=2)
    return Potential(shape.numbers, shape.positions[0], points, COULOMB * (charges / distances).sum(axis=1))


def _shell(at: np.ndarray, radii: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Random points near an atom, and none of them nearer than ``NEAR`` radii to any."""
    points = np.zeros((0, 3))
    while len(points) < n:
        atom = rng.integers(len(at), size=4 * n)
        way = rng.standard_normal((4 * n, 3))
        away = (rng.uniform(NEAR, FAR, 4 * n) * radii[atom])[:, None]
        tried = at[atom] + away * way / np.linalg.norm(way, axis=1, keepdims=True)
        clear = np.linalg.norm(tried[:, None] - at, axis=2) >= NEAR * radii
        points = np.concatenate([points, tried[clear.all(axis=1)]])
    return points[:n]
