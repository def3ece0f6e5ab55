"""Molecules of RDKit as SMILES: what they are, and why there is none."""

from __future__ import annotations

from rdkit import Chem

from molgraph.chem.smiles import MAX_CHARACTERS, is_mol, write_smiles


def test_what_is_written_is_the_same_molecule() -> None:
    for text in ("C[C@H](F)Cl", "F/C=C/F", "[2H]C", "[Na+].[Cl-]", "c1ccccc1", "*CC"):
        mol = Chem.MolFromSmiles(text)
        made = write_smiles(Chem.RWMol(mol))
        assert not made.reason and Chem.CanonSmiles(made.smiles) == Chem.CanonSmiles(text)


def test_a_molecule_too_large_to_write_has_a_reason() -> None:
    chain = Chem.RWMol()
    for _ in range(MAX_CHARACTERS + 1):
        chain.AddAtom(Chem.Atom(6))
    assert write_smiles(chain).reason == "5001 atoms; molgraph reads up to 5000"
    assert write_smiles(Chem.Mol()).reason == "a molecule of no atoms"


def test_nothing_else_is_a_molecule() -> None:
    assert is_mol(Chem.Mol()) and not any(map(is_mol, ("C", None, 5, Chem.Atom(6))))
