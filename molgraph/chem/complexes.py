"""Read protein-ligand complexes: the ligand's mol block, followed by the protein's atoms in PDB format."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdPartialCharges import ComputeGasteigerCharges

from molgraph.chem import smiles
from molgraph.chem.bounded import RINGS
from molgraph.chem.molfile import read_block_in_space, read_positions
from molgraph.chem.xyz import finite

AMINO_ACIDS = (
    "ALA", "ARG", "ASN", "ASP", "CYS", "GLN", "GLU", "GLY", "HIS", "ILE",
    "LEU", "LYS", "MET", "PHE", "PRO", "SER", "THR", "TRP", "TYR", "VAL",
)  # fmt: skip
OTHER = len(AMINO_ACIDS) + 1  # another residue, such as a cofactor or a metal
MAX_PROTEIN_ATOMS = 20_000
_ALIASES = {"HID": "HIS", "HIE": "HIS", "HIP": "HIS", "CYX": "CYS", "MSE": "MET", "ASH": "ASP", "GLH": "GLU"}
_WATER = ("HOH", "WAT", "DOD")
_END = re.compile(r"^M  END.*\n?", re.MULTILINE)
_ATOM = ("ATOM  ", "HETATM")
_PROPERTIES = "Properties=species:S:1:pos:R:3:residue:I:1:residue_index:I:1:charge:R:1"


class Structure(NamedTuple):
    """Atoms in space; of a protein or a complex without hydrogens, the ligand's atoms first.

    Args:
        numbers: uint8 [n], atomic numbers.
        positions: float32 [n, 3], angstrom.
        forces: float32 [n, 3], which an XYZ text may have; or None.
        residue: uint8 [n], the place of an atom's amino acid in ``AMINO_ACIDS`` from 1, ``OTHER`` for another residue
            and 0 for an atom of the ligand; None where the text has no protein.
        residue_index: int32 [n], the residue of each atom, from 0 in the order of the file; -1 for the ligand's atoms.
        charge: float32 [n], Gasteiger's partial charge with those of the hydrogens at the atom; 0 where there is none.
    """

    numbers: np.ndarray
    positions: np.ndarray
    forces: np.ndarray | None = None
    residue: np.ndarray | None = None
    residue_index: np.ndarray | None = None
    charge: np.ndarray | None = None


def read_structure(text: str) -> Structure:
    """The atoms of a mol block, of the text of an XYZ or a PDB file, or of a mol block with a PDB text after it.

    Water is left out, and of several models the first is read.

    Raises:
        ValueError: it is none of these, or has no atoms or more than ``MAX_PROTEIN_ATOMS``.

    Example:
        >>> found = read_structure("ATOM      1  CA  GLY A   1       1.000   2.000   3.000  1.00  0.00           C")
        >>> found.numbers.tolist(), found.residue.tolist(), found.residue_index.tolist()
        ([6], [8], [0])
    """
    block, rest = parted(text)
    if not rest:
        return _written(text) if _PROPERTIES in text else Structure(*read_positions(text))
    protein = _protein(rest)
    if not block:
        return protein
    both = zip(_ligand(block), protein, strict=True)
    return Structure(*(None if first is None else np.concatenate([first, second]) for first, second in both))  # type: ignore[arg-type]


def write_structure(found: Structure) -> str:
    """A protein or a complex as an extended XYZ text, which ``read_structure`` reads back to the bit."""
    numbers, positions, forces, residue, index, charge = found
    assert residue is not None and index is not None and charge is not None
    symbol, number = Chem.GetPeriodicTable().GetElementSymbol, np.format_float_positional
    pushed = np.zeros((len(numbers), 0)) if forces is None else forces
    rows = [
        " ".join([symbol(int(z)), *map(number, at), str(int(kind)), str(int(i)), number(q), *map(number, force)])
        for z, at, kind, i, q, force in zip(numbers, positions, residue, index, charge, pushed, strict=True)
    ]
    return "\n".join([str(len(rows)), _PROPERTIES + (":forces:R:3" if forces is not None else ""), *rows, ""])


def _written(text: str) -> Structure:
    """The atoms of a text that ``write_structure`` wrote."""
    numbers, positions, forces = read_positions(text)
    cells = [line.split()[4:7] for line in text.splitlines()[2 : 2 + len(numbers)]]
    try:
        kind, index, charge = (np.array([float(cell) for cell in column]) for column in zip(*cells, strict=True))
    except ValueError:
        raise ValueError("an extended XYZ without a residue and a charge in each line") from None
    if ((kind < 0) | (kind > OTHER)).any() or not np.isfinite([index, charge]).all():
        raise ValueError("an extended XYZ with a residue or a charge that cannot be")
    return Structure(
        numbers, positions, forces, kind.astype(np.uint8), index.astype(np.int32), charge.astype(np.float32)
    )


def parted(text: str) -> tuple[str, str]:
    """The mol block of a text, and the lines of atoms of a PDB file after it; either may be empty."""
    end = _END.search(text)
    block, rest = (text[: end.end()], text[end.end() :]) if end else ("", text)
    return (block, rest) if any(line.startswith(_ATOM) for line in rest.splitlines()) else (block, "")


def _ligand(block: str) -> Structure:
    mol, positions = read_block_in_space(block)
    keep, n = _heavy_rows(mol), mol.GetNumAtoms()
    charge = np.zeros(n, np.float32) if mol.GetNumBonds() - n > RINGS else _charges(mol)
    kind, index = np.zeros(n, np.uint8), np.full(n, -1, np.int32)
    return Structure(_numbers(mol)[keep], positions[keep], None, kind[keep], index[keep], charge[keep])


@lru_cache(maxsize=16)
def _protein(text: str) -> Structure:
    """The heavy atoms of a PDB file; one pocket often stands beside many poses, so the last texts are kept."""
    lines = [line for line in text.partition("\nENDMDL")[0].splitlines() if line.startswith(_ATOM)]
    lines = [line for line in lines if line[17:20].strip() not in _WATER]
    if not 0 < len(lines) <= 2 * MAX_PROTEIN_ATOMS:  # half of them may be hydrogens
        words = f"a protein of {len(lines):,} atoms, of which {MAX_PROTEIN_ATOMS:,} are read at most"
        raise ValueError(words if lines else "a protein of no atoms but water's")
    with smiles.quiet():
        # the columns after 66 of a PDBQT file hold AutoDock's types in the place of elements
        mol = _read_pdb(lines) or _read_pdb([line[:66] for line in lines])
        if mol is None or not mol.GetNumAtoms():
            raise ValueError("a protein that RDKit cannot read")
        keep, charge = _heavy_rows(mol), _charges(mol)
    if len(keep) > MAX_PROTEIN_ATOMS:
        raise ValueError(f"a protein of {len(keep):,} heavy atoms, of which {MAX_PROTEIN_ATOMS:,} are read at most")
    info = [mol.GetAtomWithIdx(int(i)).GetPDBResidueInfo() for i in keep]
    names = [_ALIASES.get(name := residue.GetResidueName().strip().upper(), name) for residue in info]
    kinds = [AMINO_ACIDS.index(name) + 1 if name in AMINO_ACIDS else OTHER for name in names]
    keys = [(residue.GetChainId(), residue.GetResidueNumber(), residue.GetInsertionCode()) for residue in info]
    order = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    index = np.array([order[key] for key in keys], np.int32)
    positions = finite(mol.GetConformer().GetPositions(), "position")
    return Structure(_numbers(mol)[keep], positions[keep], None, np.array(kinds, np.uint8), index, charge[keep])


def _read_pdb(lines: list[str]) -> Chem.Mol | None:
    try:
        return Chem.MolFromPDBBlock("\n".join([*lines, "END"]), sanitize=False, removeHs=False)
    except (RuntimeError, ValueError):
        return None


def _numbers(mol: Chem.Mol) -> np.ndarray:
    return np.array([atom.GetAtomicNum() for atom in mol.GetAtoms()], np.uint8)


def _heavy_rows(mol: Chem.Mol) -> np.ndarray:
    """int64: the heavy atoms; all of a molecule of hydrogens alone."""
    numbers = _numbers(mol)
    return np.flatnonzero(numbers != 1) if (numbers != 1).any() else np.arange(len(numbers))


def _charges(mol: Chem.Mol) -> np.ndarray:
    """float32 [n]: Gasteiger and Marsili 1980, those of hydrogens added to the atom that holds them."""
    copy = Chem.Mol(mol)
    out = np.zeros(copy.GetNumAtoms(), np.float32)
    try:
        copy.UpdatePropertyCache(strict=False)
        Chem.SanitizeMol(copy, Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES, catchErrors=True)
        ComputeGasteigerCharges(copy, throwOnParamFailure=False)
    except (RuntimeError, ValueError):
        return out
    for atom in copy.GetAtoms():
        charge = atom.GetDoubleProp("_GasteigerCharge") + atom.GetDoubleProp("_GasteigerHCharge")
        holder = atom.GetNeighbors()[0] if atom.GetAtomicNum() == 1 and atom.GetDegree() == 1 else atom
        out[holder.GetIdx()] += charge if np.isfinite(charge) else 0.0
    return out
