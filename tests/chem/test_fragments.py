"""Junction trees: every bond once or more in a connected tree, and the same molecule again, stereochemistry too."""

from __future__ import annotations

import itertools
import json
from copy import deepcopy

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from molgraph.chem.fragments.assembly import Assembly, assemble, matches
from molgraph.chem.fragments.atom_ranks import canonical_order
from molgraph.chem.fragments.atom_types import AtomType, most_bonds
from molgraph.chem.fragments.cluster_label import canonical_label, sorted_bonds
from molgraph.chem.fragments.junction_tree import JunctionTree, decompose
from molgraph.chem.fragments.stereo import Site, constitution_of, stereo_sites, with_stereo, write_stereo
from molgraph.chem.fragments.vocabulary import Vocabulary, read_corpus
from tests.tiny import series

RINGS = {
    "fused": "c1ccc2ccccc2c1",
    "spiro": "C1CCC2(CC1)CCCC2",
    "norbornane": "C1CC2CCC1C2",
    "adamantane": "C1C2CC3CC1CC(C2)C3",
    "cubane": "C12C3C4C1C5C2C3C45",
    "phenalene": "C1C=CC2=CC=CC3=CC=CC1=C23",
    "propellane": "C1CC23CCC2(C1)CC3",
    "pyrene": "c1cc2ccc3cccc4ccc(c1)c2c34",
    "porphin": "C1=CC2=CC3=CC=C(N3)C=C4C=CC(=N4)C=C5C=CC(=N5)C=C1N2",
    "paracyclophane": "C1CC2=CC=C(CCC3=CC=C1C=C3)C=C2",
    "macrocycle": "C1CCCCCCCCCCCCCCCCC1",
    "azulene": "c1ccc2cccc2cc1",
    "steroid": "CC12CCC3C(CCC4=CC(=O)CCC34C)C1CCC2O",
    "bicyclobutane": "C1C2C1C2",
    "sulfur": "CS(=O)(=O)N1CCCS1(=O)=O",
    "phosphorus": "O=P1(N(CCCl)CCCl)NCCCO1",
    "quaternary": "C[N+](C)(C)CC([O-])=O",
    "nitro": "O=[N+]([O-])c1ccccc1",
    "azide": "CN=[N+]=[N-]",
    "radical": "C[CH]C",
    "isotope": "[13CH3]C([2H])([2H])O",
    "pyrrole": "c1cc[nH]c1",
    "one atom": "C",
    "borate": "C[B-](F)(F)F",
    "hydride": "[SiH4]",
    "selenium": "C[Se]C",
    "betaine": "[O-][n+]1ccccc1",
    "iodine": "OI(=O)=O",
}


def constitution(mol: Chem.Mol) -> str:
    """Canonical SMILES without stereochemistry."""
    bare = Chem.Mol(mol)
    Chem.RemoveStereochemistry(bare)
    for atom in bare.GetAtoms():
        atom.SetAtomMapNum(0)
    return Chem.CanonSmiles(Chem.MolToSmiles(bare))


def tree_of(smiles: str) -> JunctionTree:
    found = decompose(Chem.MolFromSmiles(smiles))
    assert found.tree is not None, found.reason
    return found.tree


def molecules() -> list[str]:
    texts = [*series(250).smiles.tolist(), *RINGS.values()]
    mols = [(text, Chem.MolFromSmiles(text)) for text in dict.fromkeys(texts)]
    return [text for text, mol in mols if mol is not None and decompose(mol).tree is not None]


@pytest.fixture(scope="module")
def corpus() -> list[tuple[str, JunctionTree]]:
    return [(text, tree_of(text)) for text in molecules()]


def test_clusters_cover_every_bond_and_those_of_an_atom_are_connected(corpus: list[tuple[str, JunctionTree]]) -> None:
    assert len(corpus) > 250
    for text, tree in corpus:
        mol = Chem.MolFromSmiles(text)
        assert tree.parent[0] == -1 and all(0 <= above < k for k, above in enumerate(tree.parent) if k), text
        covered = {
            frozenset((atoms[i], atoms[j]))
            for label, atoms in zip(tree.labels, tree.atoms, strict=True)
            for i, j, _ in label.bonds
        }
        assert len(covered) == mol.GetNumBonds() and tree.n_atoms == mol.GetNumAtoms(), text
        for atom in range(tree.n_atoms):
            held = {k for k, atoms in enumerate(tree.atoms) if atom in atoms}
            assert sum(tree.parent[k] not in held for k in held) == 1, f"{text}: atom {atom} is in several pieces"


@pytest.mark.parametrize("text", RINGS.values(), ids=RINGS)
def test_a_tree_does_not_depend_on_how_the_molecule_is_written(text: str) -> None:
    mol, tree = Chem.MolFromSmiles(text), tree_of(text)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(mol.GetNumAtoms()).tolist()
        other = decompose(Chem.RenumberAtoms(mol, order)).tree
        assert other is not None
        assert (other.labels, other.parent) == (tree.labels, tree.parent)
        assert assemble(other).smiles() == constitution(mol)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_labels_and_automorphisms_against_a_search_of_all_isomorphisms(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    kinds = data.draw(st.lists(st.sampled_from([AtomType(6), AtomType(7), AtomType(7, 1)]), min_size=n, max_size=n))
    pairs = [*itertools.combinations(range(n), 2)]
    bonds = [(i, j, data.draw(st.integers(0, 2))) for i, j in pairs]
    bonds = [bond for bond in bonds if bond[2]]
    order = data.draw(st.permutations(range(n)))
    label, places = canonical_label(tuple(kinds), sorted_bonds(bonds))
    place = {old: new for new, old in enumerate(order)}
    moved = sorted_bonds((place[i], place[j], o) for i, j, o in bonds)
    assert canonical_label(tuple(kinds[k] for k in order), moved)[0] == label
    assert label.atoms == tuple(kinds[k] for k in places)
    graph = nx.Graph()
    graph.add_nodes_from((k, {"kind": kind}) for k, kind in enumerate(label.atoms))
    graph.add_edges_from((i, j, {"order": o}) for i, j, o in label.bonds)
    matcher = nx.isomorphism.GraphMatcher(
        graph, graph, lambda a, b: a["kind"] == b["kind"], lambda a, b: a["order"] == b["order"]
    )
    found = {tuple(mapping[k] for k in range(n)) for mapping in matcher.isomorphisms_iter()}
    assert {*label.automorphisms} == found


def test_keys_are_those_of_this_code_and_not_of_a_library() -> None:
    benzene = tree_of("c1ccccc1").labels[0]
    assert benzene.bonds == ((0, 1, 1), (0, 2, 2), (1, 4, 2), (2, 3, 1), (3, 5, 2), (4, 5, 1))
    assert benzene.key == "4d5408e939c757935d6c6759", benzene.key


def test_an_attachment_can_be_taken_back() -> None:
    tree = tree_of("CC(C)(O)c1ccc2[nH]ccc2c1")
    made = Assembly(tree.labels[0])
    states = []
    for node in range(1, len(tree)):
        states.append(deepcopy(vars(made)))
        made.attach(tree.parent[node], tree.labels[node], tree.overlaps[node])
    for before in reversed(states):
        made.undo()
        assert vars(made) == before


def test_valences_bound_attachments() -> None:
    oxygen, carbonyl = tree_of("CO").labels[0], tree_of("C=O").labels[0]
    made = Assembly(oxygen)
    (way,) = made.overlaps(0, carbonyl)  # at the carbon: the oxygen has no room for a double bond more
    made.attach(0, carbonyl, way)
    assert made.smiles() == "O=CO"


@pytest.mark.parametrize(
    ("kind", "most"), [(AtomType(9), 1), (AtomType(8), 2), (AtomType(8, -1), 1), (AtomType(7, 1), 4), (AtomType(15), 5)]
)
def test_bonds_that_an_atom_can_have(kind: AtomType, most: int) -> None:
    assert most_bonds(kind) == most


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[Na+].[Cl-]", "several molecules"),
        ("*CC", "dummy"),
        ("C" * 401, "atoms"),
        ("N->[Pt]", "dative"),
        ("C1" + "C" * 60 + "1", "cluster of 61 atoms"),
    ],
)
def test_molecules_without_a_tree_have_a_reason(text: str, why: str) -> None:
    found = decompose(Chem.MolFromSmiles(text))
    assert found.tree is None and why in found.reason, found.reason


STEREO = (
    "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/Cl", r"F/C=C\Cl", "C[C@H]1CC[C@@H](C)CC1", "C[C@H]1CC[C@H](C)CC1",
    "O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O", "C[S@](=O)c1ccccc1", r"C/C(=N\O)/C=C/[C@H](F)Cl", "CC(F)Cl",
    "C[C@H](O)[C@@H](O)C", "C[C@@](F)(Cl)Br", "N[C@@H](CC1=CNC=N1)C(O)=O", r"C/C=C/C=C\C",
)  # fmt: skip


@pytest.mark.parametrize("text", STEREO)
def test_stereochemistry_comes_off_and_on_again(text: str) -> None:
    mol, true = Chem.MolFromSmiles(text), Chem.CanonSmiles(text)
    bare, sites = constitution_of(text)
    assert bare == constitution(mol) and write_stereo(bare, sites) == true
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(mol.GetNumAtoms()).tolist()
        other = Chem.RenumberAtoms(mol, order)
        plain = Chem.MolFromSmiles(bare)
        to = dict(zip(canonical_order(other), canonical_order(plain), strict=True))
        moved = [Site(to[i], to[j], label) for i, j, label in stereo_sites(other)]
        assert Chem.CanonSmiles(Chem.MolToSmiles(with_stereo(plain, moved))) == true
    flipped = [site._replace(label=3 - site.label) for site in sites if site.label]
    assert Chem.MolFromSmiles(write_stereo(bare, flipped)) is not None


def test_a_vocabulary_and_back_and_molecules_outside_it() -> None:
    found, vocabulary = read_corpus(["CCO", "c1ccccc1C", "c1ccccc1C", "[Na+].[Cl-]", "nonsense"])
    assert [each.tree is None for each in found] == [False, False, False, True, True]
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again == vocabulary and again.counts == tuple(sorted(again.counts, reverse=True))
    known, unknown, bad = again.trees(["Cc1ccccc1O", "C1CCC1", "C1CC"])
    assert known.tree is not None and bad.reason
    assert unknown.tree is None and "outside the vocabulary: a ring C1CCC1" in unknown.reason


def test_a_rare_joint_cluster_is_taken_as_single_rings_where_those_are_known() -> None:
    norbornane, single = "C1CC2CCC1C2", ["C1CCCC1", "C1CCCCC1"]
    found, vocabulary = read_corpus([norbornane, *single * 3], min_count=3)
    assert vocabulary.longest > 2 and found[0].tree is not None and len(found[0].tree) == 2
    assert assemble(found[0].tree).smiles() == "C1CC2CCC1C2"
    assert vocabulary.trees([norbornane])[0].tree == found[0].tree
    lone, small = read_corpus([norbornane, *["C1CCCCC1"] * 3], min_count=3)
    assert lone[0].tree is None and "a rare cluster" in lone[0].reason and len(small) == 1


def test_odd_vocabularies_are_refused() -> None:
    good = read_corpus(["Cc1ccccc1O"])[1].to_json()
    assert Vocabulary.from_json(good)

    def changed(edit: object) -> dict:
        made = deepcopy(good)
        edit(made)  # type: ignore[operator]
        return made

    odd = [
        lambda v: v["labels"].clear(),
        lambda v: v["labels"].append(v["labels"][0]),
        lambda v: v["counts"].pop(),
        lambda v: v.update(longest=1),
        lambda v: v["labels"][0][0].append([999, 0, -1, 0]),
        lambda v: v["labels"][0][0].extend([[6, 0, -1, 0]] * 100),
        lambda v: v["labels"][0][1].append([0, 99, 1]),
        lambda v: v["labels"][0][1].append([0, 1, 7]),
        lambda v: v["labels"][0].reverse(),
        lambda v: v.pop("labels"),
    ]
    for edit in odd:
        with pytest.raises((ValueError, TypeError, LookupError)):
            Vocabulary.from_json(changed(edit))


def test_matches_are_one_of_each_that_the_child_s_symmetry_makes_equal() -> None:
    benzene, methyl = tree_of("c1ccccc1").labels[0], tree_of("CC").labels[0]
    assert len(matches(methyl, benzene, 2)) == 2, "either carbon, all six of the ring alike"
    assert {len(each) for each in matches(benzene, benzene, 2)} == {1, 2}
