"""What is bonded is told from distances: equal for conformers and any order of atoms, other for other molecules."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from molgraph.chem.connectivity import MAX_ATOMS, connectivity_key
from molgraph.chem.molfile import read_positions
from molgraph.data.graph_values import Geometry
from molgraph.data.read import read_table
from molgraph.data.splits.make import split_table
from molgraph.data.splits.split import PARTS
from molgraph.data.splits.structures import find_leaks
from molgraph.train.training_molecules import molecule_hashes

SMILES = ["CCCCO", "CCOCC", "CC(C)CO", "c1ccccc1C(=O)N", "OCC(N)C(=O)O", "CC(=O)Oc1ccccc1C(=O)O", "FC(Cl)Br", "CCCCS"]


def shapes(smiles: str, n: int = 3) -> list[Geometry]:
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    AllChem.EmbedMultipleConfs(mol, n, randomSeed=7)
    return [Geometry(*read_positions(Chem.MolToMolBlock(mol, confId=i))) for i in range(n)]


@pytest.mark.parametrize("smiles", SMILES)
def test_conformers_in_any_order_share_a_key(smiles: str) -> None:
    rng, keys = np.random.default_rng(0), set()
    for shape in shapes(smiles):
        order = rng.permutation(len(shape.numbers))
        keys.add(connectivity_key(shape.numbers[order], shape.positions[order] + 3.0))
    assert len(keys) == 1 and keys != {""}


def test_other_molecules_have_other_keys() -> None:
    keys = {connectivity_key(s.numbers, s.positions) for smiles in SMILES for s in shapes(smiles, 1)}
    assert len(keys) == len(SMILES)


@pytest.mark.parametrize("positions", [np.full((2, 3), np.nan), np.zeros((3, 3)), np.zeros((2, 2))])
def test_what_is_no_geometry_has_none(positions: np.ndarray) -> None:
    assert connectivity_key(np.array([6, 6]), positions) == ""
    assert connectivity_key(np.ones(MAX_ATOMS + 1, np.uint8), np.zeros((MAX_ATOMS + 1, 3))) == ""
    assert (
        connectivity_key(np.array([6]), np.zeros((1, 3))) != "" == connectivity_key(np.array([200]), np.zeros((1, 3)))
    )


def test_a_random_split_keeps_conformers_together_and_a_model_knows_them_again() -> None:
    table = read_table({"geometry": [shape for smiles in SMILES for shape in shapes(smiles)]}, geometry="geometry")
    split = split_table(table, "random", fractions=(0.5, 0.25, 0.25))
    word = split.words
    assert all(len(set(word[3 * i : 3 * i + 3])) == 1 for i in range(len(SMILES))) and set(word) == {*PARTS}
    assert len(set(molecule_hashes(table).tolist())) == len(SMILES)


def test_conformers_on_both_sides_are_leaks() -> None:
    a, b, _ = shapes("CCCCO")
    (other,) = shapes("CCOCC", 1)
    table = read_table({"geometry": [a, b, other, a, None]}, geometry="geometry")
    found = find_leaks(table, np.array([0, 2]), np.array([1, 3, 4]))
    assert [(leak.train, leak.test, leak.what) for leak in found] == [("0", "1", "conformer"), ("0", "3", "duplicate")]
