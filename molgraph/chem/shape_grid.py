"""Put the volume of a molecule on a grid along its principal axes, and compare such volumes by their overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit import Chem

from molgraph.chem.conformer import make_conformers

SPACING = 0.75  # angstrom between two points
SIZE = (36, 20, 14)  # points along the axes, the longest first: a molecule that is larger is cut there
N_POINTS = SIZE[0] * SIZE[1] * SIZE[2]
TURNS = ((), (1, 2), (0, 2), (0, 1))  # axes that are reversed: the rotations that keep principal axes what they are
SHARE, SKIN = 0.8, 0.25  # of the van der Waals radius, and angstrom beyond, as in RDKit's shape comparison


def principal(positions: np.ndarray) -> np.ndarray:
    """Positions about their centre along their principal axes, the longest first, without reflection.

    Args:
        positions: float [n, 3], in angstrom.
    """
    x = np.asarray(positions, np.float64)
    x = x - x.mean(axis=0)
    axes = np.linalg.svd(x, full_matrices=True)[2]
    axes[2] *= np.sign(np.linalg.det(axes))
    return x @ axes.T


def shape_grid(numbers: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """bool [36, 20, 14]: the points of the grid within any heavy atom.

    Args:
        numbers: [n], atomic numbers; hydrogens are left out.
        positions: float [n, 3], in angstrom.
    """
    heavy, table = np.asarray(numbers) > 1, Chem.GetPeriodicTable()
    x = principal(np.asarray(positions)[heavy])
    reach = np.array([SHARE * table.GetRvdw(int(z)) + SKIN for z in np.asarray(numbers)[heavy]])
    near = np.zeros(SIZE, bool)
    points = [(np.arange(n) - (n - 1) / 2) * SPACING for n in SIZE]
    for centre, r in zip(x, reach, strict=True):
        spans = [np.searchsorted(p, (c - r, c + r)) for p, c in zip(points, centre, strict=True)]
        a, b, c = ((p[lo:hi] - at) ** 2 for p, (lo, hi), at in zip(points, spans, centre, strict=True))
        inside = a[:, None, None] + b[None, :, None] + c[None, None, :] <= r * r
        near[tuple(slice(lo, hi) for lo, hi in spans)] |= inside
    return near


def shape_grids(smiles: Sequence[str], workers: int | None = None) -> np.ndarray:
    """int8 [n, 10080]: 1 at points within the molecule, else 0; -1 where it has no conformer.

    The conformer is the first of RDKit's ETKDG version 3, seed 0, as embedded.
    """
    out = np.full((len(smiles), N_POINTS), -1, np.int8)
    for i, conformers in enumerate(make_conformers(smiles, relax="none", workers=workers)):
        if len(conformers.positions) and (conformers.numbers > 1).any():
            out[i] = shape_grid(conformers.numbers, conformers.positions[0]).ravel()
    return out
