"""Pruned texts: readable exactly when the whole is, and of the same scaffold; relatives are found all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem

from molgraph.chem.kin import parents_across
from molgraph.chem.pruning import prune, read_pruned
from molgraph.chem.scaffold import flat_parents
from molgraph.chem.smiles import quiet
from molgraph.data.read import read_table
from molgraph.data.sources.builtin import chembl2321810, nci
from molgraph.data.splits import split_table
from molgraph.data.splits.leaks import find_leaks

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


def scaffold(mol: Chem.Mol | None) -> str | None:
    return None if mol is None else Chem.MolToSmiles(Chem.MurckoDecompose(mol), isomericSmiles=False)


def assert_same(text: str) -> None:
    with quiet():
        whole = Chem.MolFromSmiles(text)
        short = prune(text)
        assert scaffold(whole) == scaffold(read_pruned(short)), (text, short)


@pytest.mark.parametrize("text", NASTY)
def test_nasty_texts(text: str) -> None:
    assert_same(text)


def test_the_lists_at_hand_and_many_texts_become_one() -> None:
    texts = [*nci().smiles[::9], *chembl2321810().smiles[::9]]
    for text in texts:
        assert_same(str(text))
    assert len({prune(str(t)) for t in texts}) < len(texts)


@given(st.data())
def test_other_writings_of_a_molecule(data: st.DataObject) -> None:
    mol = Chem.MolFromSmiles(data.draw(st.sampled_from([t for t in nci().smiles[::151] if Chem.MolFromSmiles(t)])))
    for text in Chem.MolToRandomSmilesVect(mol, 4, randomSeed=data.draw(st.integers(1, 1000))):
        assert_same(text)


@given(st.text("CNOc1(=)[]nHl", max_size=14))
def test_any_text(text: str) -> None:
    assert_same(text)


def test_only_relatives_across_parts_are_told() -> None:
    forms = [
        "CC(N)C(=O)O",
        "C[C@H](N)C(=O)O",
        "CC(N)C(=O)O.Cl",
        "c1ccccc1[N+](=O)[O-]",
        "CCO[Na]",
        "CCO",
        "CCS",
        "[Cl-].C[NH3+]",
        "CN",
    ]
    part_of = np.array([0, 1, 1, 0, 0, 1, 1, 0, 1])
    found, every = parents_across(forms, part_of, None), flat_parents(forms).values
    for i, parent in enumerate(every):
        shared = {part_of[j] for j in range(len(forms)) if every[j] == parent} == {0, 1}
        assert (found[i] == parent) or (not shared and found[i] == "")


@pytest.mark.data
@pytest.mark.parametrize("recipe", ["scaffold/deepchem", "scaffold/gem-chiral", "scaffold/chemprop", "scaffold/tdc"])
def test_no_leak_is_missed(recipe: str, data_dir: Path) -> None:
    table = read_table(str(data_dir / "clintox/clintox.csv.gz"), smiles="smiles")
    split = split_table(table, recipe, quiet=True)
    assert split.leaks == find_leaks(table, split.train, split.test, flat_parents(table.smiles).values)
