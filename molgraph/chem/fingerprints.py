"""Compute fingerprints of SMILES, with a reason for each row that has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

from molgraph.base.progress import bar
from molgraph.chem.bounded import TooHardError, bounded, is_hard
from molgraph.chem.smiles import parse_smiles, quiet

CHUNK = 2_000  # molecules held in memory at once


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of a list of SMILES.

    Args:
        x: uint8 [n, n_bits], float32 for ErG; rows that could not be read hold zeros, which are no fingerprint: see
            ``ok``.
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
    rows = partial(_rows, radius=radius, n_bits=n_bits, counts=counts, threads=threads)
    return _each(smiles, n_bits, np.uint8, rows)


def avalon_counts(smiles: Sequence[str], n_bits: int = 1024) -> Fingerprints:
    """Counts of Avalon's features (Gedeck et al. 2006, J. Chem. Inf. Model. 46:1924), at most 255 a column.

    Atoms, bonds, paths, rings and pairs of them, hashed to ``n_bits`` columns.

    Example:
        >>> avalon_counts(["CCO", "C(C"]).x.any(axis=1).tolist()
        [True, False]
    """
    return _each(smiles, n_bits, np.uint8, partial(_avalon_rows, n_bits=n_bits))


ERG_WIDTH = 315  # 21 pairs of six pharmacophore kinds, 15 distances


def erg(smiles: Sequence[str]) -> Fingerprints:
    """Extended reduced graphs (Stiefl et al. 2006, J. Chem. Inf. Model. 46:208): pharmacophore pairs by distance.

    Example:
        >>> erg(["CCO", "C(C"]).x.shape
        (2, 315)
    """
    return _each(smiles, ERG_WIDTH, np.float32, _erg_rows)


def _each(
    smiles: Sequence[str], width: int, kind: type, rows_of: Callable[[list[Chem.Mol]], np.ndarray]
) -> Fingerprints:
    """The rows that ``rows_of`` makes of the molecules that can be read."""
    x: np.ndarray = np.zeros((len(smiles), width), dtype=kind)
    reasons = np.full(len(smiles), "", dtype=object)
    with bar("fingerprints", total=len(smiles)) as progress:
        for start in range(0, len(smiles), CHUNK):
            rows, mols = [], []
            for i, text in enumerate(smiles[start : start + CHUNK], start):
                if is_hard(text):
                    try:
                        reasons[i], row = bounded(partial(_one, rows_of), text)
                    except TooHardError as error:
                        reasons[i], row = f"{error} to take a fingerprint of", None
                    if row is not None:
                        x[i] = row
                    continue
                mol, reasons[i] = parse_smiles(text)
                if mol is not None:
                    rows.append(i)
                    mols.append(mol)
            if mols:
                with quiet():
                    x[rows] = rows_of(mols)
            progress.advance(min(CHUNK, len(smiles) - start))
    return Fingerprints(x, reasons == "", reasons)


def _one(rows_of: Callable[[list[Chem.Mol]], np.ndarray], text: str) -> tuple[str, np.ndarray | None]:
    mol, reason = parse_smiles(text)
    return reason, None if mol is None else rows_of([mol])[0]


def _avalon_rows(mols: list[Chem.Mol], n_bits: int) -> np.ndarray:
    from rdkit.Avalon.pyAvalonTools import GetAvalonCountFP

    out = np.zeros((len(mols), n_bits), dtype=np.uint8)
    for i, mol in enumerate(mols):
        for column, count in GetAvalonCountFP(mol, nBits=n_bits).GetNonzeroElements().items():
            out[i, column] = min(count, 255)
    return out


def _erg_rows(mols: list[Chem.Mol]) -> np.ndarray:
    from rdkit.Chem.rdReducedGraphs import GetErGFingerprint

    return np.array([GetErGFingerprint(mol) for mol in mols])


def _rows(mols: list[Chem.Mol], radius: int, n_bits: int, counts: bool, threads: int) -> np.ndarray:
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=n_bits)
    if counts:
        wide = np.array([generator.GetCountFingerprintAsNumPy(mol) for mol in mols])
        return np.minimum(wide, 255).astype(np.uint8)
    # a text of n_bits / 8 bytes a molecule, unpacked for all at once: 3 x as fast as one array a molecule
    raw = b"".join(map(DataStructs.BitVectToBinaryText, generator.GetFingerprints(mols, numThreads=threads)))
    return np.unpackbits(np.frombuffer(raw, np.uint8).reshape(len(mols), -1), axis=1, bitorder="little")[:, :n_bits]
