"""The rigidity loss, its gradient, and ways between conformers whose bonds keep their lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem
from scipy.optimize import approx_fprime
from scipy.spatial.transform import Rotation

from molgraph.chem.conformer_pair import pair_of
from molgraph.chem.morph import morph
from molgraph.chem.rigidity import Neighbourhoods, rigidity_loss
from molgraph.chem.superpose import superpose
from molgraph.chem.turn_field import near_pairs
from tests.cli.test_cli_entities import call

TURNS = Rotation.random(20, rng=np.random.default_rng(0)).as_matrix()


def conformers(smiles: str, n: int = 6) -> list[Chem.Mol]:
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    AllChem.EmbedMultipleConfs(mol, n, randomSeed=3)
    AllChem.MMFFOptimizeMoleculeConfs(mol)
    return [Chem.Mol(mol, confId=each.GetId()) for each in mol.GetConformers()]


def test_turns_cost_nothing_and_stretching_and_mirrors_do() -> None:
    assert rigidity_loss(TURNS)[0].max() < 1e-8 and rigidity_loss(1.1 * TURNS)[0].min() > 0.02
    assert rigidity_loss(-TURNS)[0].min() > 1 > rigidity_loss(-TURNS, c=0.1)[0].min() - 1.1
    assert rigidity_loss(1e3 * TURNS, c=0.03)[0].max() <= 2  # Geman and McClure: outliers cost 2 at most


@pytest.mark.parametrize("c", [None, 0.5])
def test_gradients_are_those_of_finite_differences(c: float | None) -> None:
    jacobian = TURNS[0] @ np.diag([1.3, 0.9, 0.2]) @ TURNS[1]
    expected = approx_fprime(jacobian.ravel(), lambda x: rigidity_loss(x.reshape(1, 3, 3), c)[0][0], 1e-7)
    np.testing.assert_allclose(rigidity_loss(jacobian[None], c)[1].ravel(), expected, rtol=1e-3, atol=1e-4)
    rng = np.random.default_rng(1)
    x, pairs = rng.normal(size=(5, 3)), near_pairs(np.array([[0, 1], [1, 2], [1, 3], [1, 4]]), 5)
    hoods, y = Neighbourhoods(x, pairs), x + 0.1 * rng.normal(size=(5, 3))
    expected = approx_fprime(y.ravel(), lambda flat: hoods.loss(flat.reshape(5, 3))[0], 1e-7)
    np.testing.assert_allclose(hoods.loss(y)[1].ravel(), expected, rtol=1e-3, atol=1e-3)
    assert hoods.loss(x @ TURNS[2] + 4)[0] < 1e-8 * len(x)


@pytest.mark.parametrize("smiles", ["CCCCC", "Cc1ccccc1CCO", "CC(=O)N[C@@H](C)C=O"])
def test_bonds_keep_their_lengths_on_the_way_and_not_on_straight_lines(smiles: str) -> None:
    mols = conformers(smiles)
    order = np.random.default_rng(0).permutation(mols[0].GetNumAtoms()).tolist()
    pairs = [pair_of(mols[0], Chem.RenumberAtoms(other, order)) for other in mols[1:]]
    pair = max(pairs, key=lambda each: superpose(each.b, each.a)[1])
    way = morph(pair.a, pair.b, pair.bonds, pair.stiff, steps=7)
    straight = morph(pair.a, pair.b, pair.bonds, steps=7, rigid=False)
    assert way.strain.max() < 0.05 < straight.strain.max() and way.positions.shape == (7, len(pair.a), 3)
    np.testing.assert_allclose(way.positions[0], pair.a)
    assert superpose(way.positions[-1], pair.b)[1] < 1e-6


def test_the_verb_writes_the_way_and_refuses_other_molecules(tmp_path: Path) -> None:
    first, second, *_ = conformers("CCCCO")
    for name, mol in (("a", first), ("b", second), ("c", conformers("CCCCN", 1)[0])):
        (tmp_path / f"{name}.sdf").write_text(Chem.MolToMolBlock(mol) + "$$$$\n")
    code, said = call(tmp_path, "morph", "a.sdf", "b.sdf", "--rigid", "--steps", "5", "-o", "way.sdf")
    assert code == 0 and "5 structures" in said, said
    made = [*Chem.SDMolSupplier(str(tmp_path / "way.sdf"), removeHs=False)]
    assert len(made) == 5 and float(made[2].GetProp("bond_change")) < 0.05 and made[4].GetConformer().Is3D()
    code, said = call(tmp_path, "morph", "a.sdf", "c.sdf", "-o", "way.sdf")
    assert code == 2 and "no conformers of one molecule" in said, said
