"""Delete atoms of a molecule, and fill the open valences with hydrogens."""

from __future__ import annotations

from collections.abc import Collection

from rdkit import Chem

from molgraph.chem.smiles import parse_smiles, quiet


def delete_atoms(smiles: str, atoms: Collection[int]) -> str | None:
    """The SMILES of what is left of a molecule, in several parts where it falls apart.

    Args:
        smiles: a molecule.
        atoms: the numbers of the atoms to delete, in the order of the SMILES.

    Returns:
        None where it cannot be read, no atom is left, or the rest is no molecule.

    Example:
        >>> delete_atoms("CC(=O)Nc1ccccc1", [3]), delete_atoms("c1ccccc1O", [0]), delete_atoms("C", [0])
        ('CC=O.c1ccccc1', 'C=CC=CCO', None)
    """
    mol = parse_smiles(smiles).mol
    if mol is None or len({*atoms}) >= mol.GetNumAtoms():
        return None
    if not atoms:
        return smiles
    with quiet():
        try:
            left = Chem.RWMol(mol)
            Chem.Kekulize(left, clearAromaticFlags=True)
            for number in atoms:
                for near in left.GetAtomWithIdx(int(number)).GetNeighbors():  # hydrogens come in its place
                    near.SetNoImplicit(False)
                    near.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
            left.BeginBatchEdit()
            for number in atoms:
                left.RemoveAtom(int(number))
            left.CommitBatchEdit()
            Chem.SanitizeMol(left)
            return str(Chem.MolToSmiles(left))
        except (ValueError, RuntimeError):  # no Kekule structure, or a valence that no atom has
            return None
