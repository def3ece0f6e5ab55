"""SMILES in; Morgan fingerprints out, one row a molecule, with the rows that could not be read marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

from molgraph.chem.smiles import parse_smiles, quiet

CHUNK = 2_000  # molecules held in memory at once


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of a list of SMILES.

    Args:
        x: uint8 [n, n_bits]; rows that could not be read hold zeros, which are no fingerprint: see ``ok``.
        ok: bool [n]: rows that could be read.
        reasons: object array [n]: one line where a row could not be read, else empty.
    """

    x: np.ndarray
    ok: np.ndarray
    reasons: np.ndarray


def morgan(
    smiles: Sequence[str], radius: int = 2, n_bits: int = 2048, counts: bool = False, *, threads: int = 1
) -> Fingerprints:
    """Morgan fingerprints (Rogers and Hahn 2010, J. Chem. Inf. Model. 50:742) folded to ``n_bits`` columns.

    Args:
        smiles: n molecules.
        radius: bonds from a central atom; 2 is ECFP4's.
        n_bits: width; a multiple of 8.
        counts: how often a column's environments occur, at most 255, instead of whether they do.
        threads: threads that make bits (RDKit's own); reading SMILES stays on one.

    Returns:
        Fingerprints, one row for each SMILES, in order.

    Raises:
        ValueError: ``n_bits`` is not a positive multiple of 8, or ``radius`` is negative.

    Example:
        >>> prints = morgan(["CCO", "C(C"], n_bits=64)
        >>> prints.x.shape, prints.x.sum(axis=1).tolist(), prints.ok.tolist()
        ((2, 64), [6, 0], [True, False])
    """
    if n_bits < 8 or n_bits % 8 or radius < 0:
        raise ValueError(f"n_bits must be a positive multiple of 8 and radius not negative, got {n_bits}, {radius}")
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=n_bits)
    x = np.zeros((len(smiles), n_bits), dtype=np.uint8)
    reasons = np.full(len(smiles), "", dtype=object)
    for start in range(0, len(smiles), CHUNK):
        rows, mols = [], []
        for i, text in enumerate(smiles[start : start + CHUNK], start):
            mol, reasons[i] = parse_smiles(text)
            if mol is not None:
                rows.append(i)
                mols.append(mol)
        if mols:
            x[rows] = _rows(generator, mols, n_bits, counts, threads)
    return Fingerprints(x, reasons == "", reasons)


def _rows(generator: Any, mols: list[Chem.Mol], n_bits: int, counts: bool, threads: int) -> np.ndarray:
    with quiet():
        if counts:
            wide = np.array([generator.GetCountFingerprintAsNumPy(mol) for mol in mols])
            return np.minimum(wide, 255).astype(np.uint8)
        # a text of n_bits / 8 bytes a molecule, unpacked for all at once: 3 x as fast as one array a molecule
        raw = b"".join(map(DataStructs.BitVectToBinaryText, generator.GetFingerprints(mols, numThreads=threads)))
    return np.unpackbits(np.frombuffer(raw, np.uint8).reshape(len(mols), -1), axis=1, bitorder="little")[:, :n_bits]
