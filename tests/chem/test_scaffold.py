"""Stereo-free parents and scaffolds against RDKit's own, and for other writings and forms of a molecule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold

from molgraph.chem.cluster import cluster_butina
from molgraph.chem.identity import molecule_key, molecule_keys, relate
from molgraph.chem.scaffold import murcko, scaffolds
from molgraph.chem.smiles import quiet
from molgraph.data.sources.builtin import chembl2321810, nci

NCI = [str(s) for s in nci().smiles[::7]]
NASTY = [
    "Cc12cccc1cccc2",
    "C1(C)(C)(C)CC1",
    "C1(C)(C)CC1",
    "c1ccccc1C(C)(C)(C)C",
    "c1ccccc1N(C)(C)C",
    "CN1C=CC=C1",
    "Cn1cccc1",
    "Cn1cnc2cncnc12",
    "n1(C)cnc2cncnc12",
    "C=1(C)CCCC=1",
    "C1(C)CCCC=1",
    "CC1CC(=C(C)C)C1",
    "C1CC1=C=O",
    "C1CC1C=O",
    "O=C(O)CC1CC1",
    "c1ccccc1[N+](=O)[O-]",
    "O=[N+]([O-])c1ccccc1",
    "C[n+]1ccccc1",
    "C[C@H]1CC[C@@H](O)C1",
    "F/C=C/c1ccccc1",
    "CS(=O)(=O)c1ccccc1",
    "CP(=O)(O)c1ccccc1",
    "c1ccccc1.CC",
    "[H]c1ccccc1",
    "C[Si](C)(C)c1ccccc1",
    "cC",
    "c1ccccc1Cl(C)",
    "CCC",
    "C%10CCC%10C",
    "CC(C)(C)",
    "C1CC1(",
    "*c1ccccc1",
    "N(C)(C)(C)C1CC1",
    "O(C)(C)C1CC1",
    "C1CC1N=[N+]=[N-]",
    "C(C)1CC1",
    "C1CC1C.OS(=O)(=O)O",
    "[Na+].[O-]C(=O)c1ccc[nH]1",
    "C1CC1.C1CC1",
    "C1CC1.C=",
    "C.C1CC1 |$;a;b;c$|",
    "C12CC.C1CC2",
    "CC(.C)C1CC1",
    "CC1=CCC1",
    "CC1(C)=CC1",
    "CC12CCC1CC2",
    "CC12(C)CC1C2",
    "Cc1(C)cccc1",
    "[2H]c1cc[nH]c1",
]


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


def test_stereo_free_parent_is_a_fixed_point(molecules: list[Chem.Mol]) -> None:
    for mol in molecules:
        once = molecule_key(mol, stereo=False)
        assert molecule_key(Chem.MolFromSmiles(once), stereo=False) == once


def test_stereo_free_parents_reads_text_as_it_reads_molecules(molecules: list[Chem.Mol]) -> None:
    keys = molecule_keys(NCI, stereo=False)
    readable = [v for v, r in zip(keys.values, keys.reasons, strict=True) if not r]
    assert readable == [molecule_key(mol, stereo=False) for mol in molecules]
    assert sum(bool(r) for r in keys.reasons) == len(NCI) - len(molecules)
    with_stereo = [str(s) for s in chembl2321810().smiles[:200]]
    assert list(molecule_keys(with_stereo, stereo=False).values) == [
        molecule_key(Chem.MolFromSmiles(s), stereo=False) for s in with_stereo
    ]


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
    one, two = molecule_keys([first, second], stereo=False).values
    assert one == two != ""
    assert relate(first, second) == relate(second, first) == what


@pytest.mark.parametrize(("first", "second"), [("CCO", "CCN"), ("CCO", "COC"), ("CC=O", "C=CO"), ("C", "CC.C")])
def test_other_molecules_have_other_parents(first: str, second: str) -> None:
    one, two = molecule_keys([first, second], stereo=False).values
    assert one != two


@given(st.integers(0, len(NCI) - 1), st.integers(0, 2**31 - 1), st.sampled_from(["", ".Cl", ".[Na+].[Cl-]", ".O"]))
def test_stereo_free_parent_forgets_order_isotopes_maps_and_counter_ions(index: int, seed: int, partner: str) -> None:
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
    assert molecule_key(again, stereo=False) == molecule_key(mol, stereo=False)


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
    one, two = molecule_keys(smiles, stereo=False, workers=1), molecule_keys(smiles, stereo=False, workers=2)
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


@pytest.mark.parametrize("text", NASTY)
def test_nasty_texts_have_rdkits_scaffold_or_a_reason(text: str) -> None:
    with quiet():
        mol = Chem.MolFromSmiles(text)
    keys, parents = scaffolds([text]), molecule_keys([text], stereo=False)
    assert (keys.reasons[0] == "") == (parents.reasons[0] == "") == (mol is not None)
    if mol is not None:
        assert keys.values[0] == Chem.MolToSmiles(Chem.MurckoDecompose(mol), isomericSmiles=False)
        assert parents.values[0] == molecule_key(mol, stereo=False)


@pytest.mark.parametrize(
    ("text", "parent"),
    [
        ("C[N+](=O)[O-]", "C[N+](=O)[O-]"),
        ("[O-][N+](=O)c1ccc(cc1)[C@H](F)[O-].[Na+]", "O=[N+]([O-])c1ccc(C(O)F)cc1"),
        ("C[N+](C)([O-])C", "C[N+](C)(C)[O-]"),
        ("[CH3:1][13CH2]O", "CCO"),
        ("[2H]C([2H])O", "CO"),
        ("CO[Na]", "CO"),
        ("[H][H]", "[H][H]"),
        ("CC[N+]([O-])=O.C", "CC[N+](=O)[O-]"),
        ("[nH]1cccc1", "c1cc[nH]c1"),
    ],
)
def test_what_a_parent_loses(text: str, parent: str) -> None:
    assert molecule_keys([text], stereo=False).values[0] == parent
