"""Choose positions or their mirror image by the stereochemistry of a SMILES, and add hydrogens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Geometry import Point3D

from molgraph.chem.smiles import parse_smiles, quiet


class Handed(NamedTuple):
    """Positions float [n, 3] of the two that are mirror images, and how many stereo centres and bonds are others."""

    positions: np.ndarray
    n_wrong: int


def choose_mirror(text: str, positions: np.ndarray) -> Handed:
    """The positions, or their mirror image, whichever has more of the SMILES's stereo centres and double bonds.

    Args:
        text: a SMILES that RDKit reads.
        positions: float [n, 3], angstrom, of its atoms.

    Example:
        >>> from molgraph.chem.atom_positions import embedded_positions
        >>> (at,) = embedded_positions(["C[C@H](N)O"])
        >>> choose_mirror("C[C@H](N)O", -at).n_wrong, np.allclose(choose_mirror("C[C@H](N)O", -at).positions, at)
        (0, True)
    """
    mol = parse_smiles(text).mol
    assert mol is not None, text
    expected = _stereo(mol)
    if not expected:
        return Handed(positions, 0)
    mirrored = positions * np.array([-1.0, -1.0, -1.0])
    options = [Handed(at, sum(expected[k] != v for k, v in _seen(mol, at, expected))) for at in (positions, mirrored)]
    return min(options, key=lambda each: each.n_wrong)


def block_of(text: str, positions: np.ndarray) -> str:
    """The block of an SD file: the SMILES's atoms at positions float [n, 3], and its hydrogens placed by RDKit."""
    mol = parse_smiles(text).mol
    assert mol is not None, text
    with quiet():
        full = Chem.AddHs(_placed(mol, positions), addCoords=True)
        return Chem.MolToMolBlock(full)


def _placed(mol: Chem.Mol, positions: np.ndarray) -> Chem.Mol:
    copy, conformer = Chem.Mol(mol), Chem.Conformer(mol.GetNumAtoms())
    conformer.Set3D(True)
    for i, (x, y, z) in enumerate(positions.tolist()):
        conformer.SetAtomPosition(i, Point3D(x, y, z))
    copy.RemoveAllConformers()
    copy.AddConformer(conformer, assignId=True)
    return copy


def _stereo(mol: Chem.Mol) -> dict[tuple[str, int], str]:
    """CIP codes of centres and the kinds of double bonds, where they are told."""
    codes = {("atom", a.GetIdx()): a.GetProp("_CIPCode") for a in mol.GetAtoms() if a.HasProp("_CIPCode")}
    kinds = (Chem.BondStereo.STEREOE, Chem.BondStereo.STEREOZ)
    return codes | {("bond", b.GetIdx()): str(b.GetStereo()) for b in mol.GetBonds() if b.GetStereo() in kinds}


def _seen(
    mol: Chem.Mol, positions: np.ndarray, expected: dict[tuple[str, int], str]
) -> list[tuple[tuple[str, int], str]]:
    """What positions say of each of the expected centres and bonds; empty where they say nothing."""
    placed = _placed(mol, positions)
    with quiet():
        Chem.AssignStereochemistryFrom3D(placed, replaceExistingTags=True)
    codes = _stereo(placed)
    return [(key, codes.get(key, "")) for key in expected]
