"""Complexes are read from a mol block and a PDB text, and a ligand that is another molecule than its SMILES is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from molgraph.chem.complexes import AMINO_ACIDS, OTHER, read_structure, write_structure
from molgraph.chem.pose import why_other_ligand
from molgraph.data.graph_values import Geometry
from molgraph.data.read import read_table

GLYCINE = "".join(
    f"ATOM  {i:5d}  {name:<3s} GLY A   7    {x:8.3f}{y:8.3f}{4.0:8.3f}  1.00  0.00          {name[0]:>2s}\n"
    for i, (name, x, y) in enumerate([("N", 0, 0), ("CA", 1.45, 0), ("C", 2, 1.4), ("O", 1.3, 2.4), ("H", -0.5, 0.9)])
)
MORE = (
    "HETATM    6  O   HOH A   8       9.000   9.000   9.000  1.00  0.00           O\n"
    "HETATM    7 ZN    ZN A   9       5.000   5.000   5.000  1.00  0.00          ZN\n"
)


def pose(smiles: str) -> str:
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    AllChem.EmbedMolecule(mol, randomSeed=1)
    return Chem.MolToMolBlock(mol)


def test_a_complex_is_the_ligand_and_then_the_protein_without_hydrogens_and_water() -> None:
    found = read_structure(pose("CCO") + GLYCINE + MORE)
    assert found.numbers.tolist() == [6, 6, 8, 7, 6, 6, 8, 30]
    assert found.residue.tolist() == [0, 0, 0, *[AMINO_ACIDS.index("GLY") + 1] * 4, OTHER]
    assert found.residue_index.tolist() == [-1, -1, -1, 0, 0, 0, 0, 1]
    assert abs(found.charge[:3].sum()) < 1e-5, "a neutral molecule, charges of hydrogens at their atoms"
    assert found.charge[2] < -0.1 and np.isfinite(found.charge).all()
    again = read_structure(write_structure(found))
    assert found.forces is None and again.forces is None
    assert all(a is b or (np.array_equal(a, b) and a.dtype == b.dtype) for a, b in zip(found, again, strict=True))
    whole = Geometry(*found)
    assert whole.part(False).numbers.tolist() == [6, 6, 8] and whole.part(True).residue_index.tolist() == [
        0,
        0,
        0,
        0,
        1,
    ]
    assert str(whole) == "complex of 8 atoms" and str(whole.part(True)) == "protein of 5 atoms"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MORE.splitlines()[0], "no atoms but water"),
        (Chem.MolToMolBlock(Chem.MolFromSmiles("CCO")) + GLYCINE, "drawing in the plane"),
        ("HETATM\n", "RDKit cannot read"),
        ("M  END\n" + GLYCINE, "RDKit cannot read"),
        (write_structure(read_structure(GLYCINE)).replace(" 8 0 ", " 99 0 "), "cannot be"),
    ],
)
def test_what_is_no_complex_has_a_reason(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_structure(text)


def test_a_pose_of_another_molecule_is_a_marked_row() -> None:
    acid = pose("CC(=O)O") + GLYCINE
    assert not why_other_ligand(acid, "CC(=O)[O-]") and not why_other_ligand(acid, "CC(O)O.Cl")
    assert "other bonds" in why_other_ligand(acid, "CCOO") and "4 heavy atoms" in why_other_ligand(acid, "CCC(=O)O")
    frame = pd.DataFrame(
        {"ligand": ["CC(=O)[O-]", "CCO", "not a molecule"], "complex": [acid, acid, acid], "y": [1.0, 2.0, 3.0]}
    )
    table = read_table(frame, smiles="ligand", geometry="complex", targets=["y"])
    assert table.status[:2].tolist() == ["ok", "unreadable"] and "heavy atoms" in table.reason[1]
    alone = read_table(frame, geometry="complex", targets=["y"])
    assert alone.ok.all() and isinstance(alone.entities[0].values[0], Geometry)
    again = read_table(pd.DataFrame({"complex": alone.entities[0].values}), geometry="complex")
    assert np.array_equal(again.entities[0].values[0].charge, alone.entities[0].values[0].charge)
