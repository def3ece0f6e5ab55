"""Flat parents and scaffolds: against RDKit's own scaffolds, and unmoved by everything that a flat parent forgets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold

from molgraph.chem.cluster import cluster_butina
from molgraph.chem.scaffold import flat_parent, flat_parents, murcko, relate, scaffolds
from molgraph.chem.smiles import quiet
from molgraph.data.sources.builtin import chembl2321810, nci

NCI = [str(s) for s in nci().smiles[::7]]


@pytest.fixture(scope="module")
def molecules() -> list[Chem.Mol]:
    with quiet():
        return [mol for mol in map(Chem.MolFromSmiles, NCI) if mol is not None]


def test_scaffolds_equal_rdkits(molecules: list[Chem.Mol]) -> None:
    for mol in molecules:
        expected = MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=False)
        assert murcko(mol) == expected


def test_framework_is_rdkits_generic_scaffold_without_its_ends(molecules: list[Chem.Mol]) -> None:
    checked = 0
    for mol in molecules:
        try:
            generic = MurckoScaffold.MakeScaffoldGeneric(MurckoScaffold.GetScaffoldForMol(mol))
            expected = Chem.MolToSmiles(MurckoScaffold.GetScaffoldForMol(generic))
        except Chem.MolSanitizeException:  # RDKit refuses a carbon with more than four neighbours
            continue
        assert murcko(mol, generic=True) == expected
        checked += 1
    assert checked > 600


def test_flat_parent_is_a_fixed_point(molecules: list[Chem.Mol]) -> None:
    for mol in molecules:
        once = flat_parent(mol)
        assert flat_parent(Chem.MolFromSmiles(once)) == once


def test_flat_parents_reads_text_as_it_reads_molecules(molecules: list[Chem.Mol]) -> None:
    keys = flat_parents(NCI)
    readable = [v for v, r in zip(keys.values, keys.reasons, strict=True) if not r]
    assert readable == [flat_parent(mol) for mol in molecules]
    assert sum(bool(r) for r in keys.reasons) == len(NCI) - len(molecules)
    with_stereo = [str(s) for s in chembl2321810().smiles[:200]]
    assert list(flat_parents(with_stereo).values) == [flat_parent(Chem.MolFromSmiles(s)) for s in with_stereo]


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("OCC", "CCO", "duplicate"),
        ("CC(=O)O", "CC(=O)[O-].[Na+]", "salt form"),
        ("CC(=O)O", "CC(=O)O[Na]", "salt form"),
        ("NCC(=O)O", "[NH3+]CC(=O)[O-]", "salt form"),
        ("C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)O.[Cl-]", "salt form"),
        ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "stereoisomer"),
        ("C[C@H](N)C(=O)O", "CC(N)C(=O)O.Cl", "stereoisomer"),
        ("F/C=C/F", "F/C=C\\F", "stereoisomer"),
        ("CCO", "[13CH3]CO", "isotopologue"),
        ("CCO", "[2H]OCC", "isotopologue"),
        ("[H]OC([H])([H])C", "CCO", "duplicate"),
    ],
)
def test_forms_of_one_molecule_share_a_parent(first: str, second: str, what: str) -> None:
    one, two = flat_parents([first, second]).values
    assert one == two != ""
    assert relate(first, second) == relate(second, first) == what


@pytest.mark.parametrize(("first", "second"), [("CCO", "CCN"), ("CCO", "COC"), ("CC=O", "C=CO"), ("C", "CC.C")])
def test_other_molecules_have_other_parents(first: str, second: str) -> None:
    one, two = flat_parents([first, second]).values
    assert one != two


@given(st.integers(0, len(NCI) - 1), st.integers(0, 2**31 - 1), st.sampled_from(["", ".Cl", ".[Na+].[Cl-]", ".O"]))
def test_flat_parent_forgets_order_isotopes_maps_and_counter_ions(index: int, seed: int, partner: str) -> None:
    with quiet():
        mol = Chem.MolFromSmiles(NCI[index])
    if mol is None or mol.GetNumHeavyAtoms() < 4:
        return
    rng = np.random.default_rng(seed)
    disguised = Chem.RenumberAtoms(mol, rng.permutation(mol.GetNumAtoms()).tolist())
    disguised.GetAtomWithIdx(0).SetIsotope(int(rng.integers(0, 3)))
    disguised.GetAtomWithIdx(0).SetAtomMapNum(int(rng.integers(0, 3)))
    text = Chem.MolToSmiles(disguised, canonical=False) + partner
    with quiet():
        again = Chem.MolFromSmiles(text)
    assert flat_parent(again) == flat_parent(mol)


def test_unreadable_rows_have_a_reason_and_others_none() -> None:
    keys = scaffolds(["Cc1ccccc1", "C1CC", "", "c1ccccc1 name", "CCO", "C1CC"])
    assert list(keys.values) == ["c1ccccc1", "", "", "", "", ""]
    assert [bool(r) for r in keys.reasons] == [False, True, True, True, False, True]
    assert keys.reasons[1] == keys.reasons[5]


def test_atom_maps_come_off_when_asked() -> None:
    assert scaffolds(["[cH:3]1ccccc1C"], unmap=True).values[0] == "c1ccccc1"
    assert scaffolds(["[cH:3]1ccccc1C"]).values[0] != "c1ccccc1"


def test_other_processes_give_the_same_in_the_same_order() -> None:
    smiles = [str(s) for s in nci().smiles[:1500]]
    one, two = flat_parents(smiles, workers=1), flat_parents(smiles, workers=2)
    assert (one.values == two.values).all()
    assert (one.reasons == two.reasons).all()


@pytest.mark.parametrize("similarity", [0.3, 0.4, 0.65, 1.0])
def test_butina_equals_rdkits(molecules: list[Chem.Mol], similarity: float) -> None:
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator
    from rdkit.ML.Cluster import Butina

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
    prints = [generator.GetFingerprint(mol) for mol in molecules]
    distances = [1 - s for i, p in enumerate(prints) for s in DataStructs.BulkTanimotoSimilarity(p, prints[:i])]
    expected = np.empty(len(prints), dtype=np.int64)
    for number, members in enumerate(Butina.ClusterData(distances, len(prints), 1 - similarity, isDistData=True)):
        expected[list(members)] = number
    x = np.stack([generator.GetFingerprintAsNumPy(mol) for mol in molecules])
    assert (cluster_butina(x, similarity) == expected).all()


def test_butina_of_few_bits_of_none_and_of_copies() -> None:
    rng = np.random.default_rng(0)
    x = (rng.random((700, 24)) < 0.2).astype(np.uint8)
    x[:3] = 0
    clusters = cluster_butina(x, 0.5)
    assert len(set(clusters[:3])) == 3  # nothing in common is not similar
    assert set(clusters) == set(range(clusters.max() + 1))
    assert len(set(cluster_butina(np.ones((900, 8), np.uint8), 1.0))) == 1
    assert len(cluster_butina(np.zeros((0, 8), np.uint8), 0.5)) == 0


@pytest.mark.parametrize("similarity", [0.0, -1.0, 1.5])
def test_butina_refuses_a_similarity_outside_its_range(similarity: float) -> None:
    with pytest.raises(ValueError, match="similarity"):
        cluster_butina(np.ones((2, 8), np.uint8), similarity)
