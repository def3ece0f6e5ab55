"""Reproductions of other people's splits: the same sets as DeepChem's and chemprop's own, with the leaks they hold."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from molgraph.chem.identity import molecule_keys
from molgraph.chem.smiles import parse_smiles, quiet
from molgraph.data.read import read_table
from molgraph.data.sources.builtin import chembl2321810, nci
from molgraph.data.splits import Split, split_table
from molgraph.data.table import Table, make_table

FRACTIONS = [(0.8, 0.1, 0.1), (0.6, 0.3, 0.1), (0.7, 0.0, 0.3), (0.5, 0.25, 0.25)]


def deepchem_sets(table: Table, fractions: tuple[float, float, float]) -> list[list[int]]:
    """What DeepChem's own splitter says of the rows that its loaders leave: those that can be read."""
    logging.getLogger("deepchem").setLevel(logging.ERROR)
    deepchem = pytest.importorskip("deepchem")
    rows = np.flatnonzero([parse_smiles(s).mol is not None for s in table.smiles])
    empty = np.zeros(len(rows))
    dataset = deepchem.data.NumpyDataset(X=empty, y=empty, ids=table.smiles[rows])
    train, valid, test = fractions
    with quiet():
        sets = deepchem.splits.ScaffoldSplitter().split(dataset, frac_train=train, frac_valid=valid, frac_test=test)
    return [sorted(rows[np.asarray(s, dtype=int)].tolist()) for s in sets]


def chemprop_sets(table: Table, fractions: tuple[float, float, float], seed: int) -> list[list[int]]:
    """What chemprop's own ``make_split_indices`` says, for the rows that can be read."""
    splitting = pytest.importorskip("chemprop.data.splitting")
    mols = [parse_smiles(s).mol for s in table.smiles]
    rows = np.flatnonzero([mol is not None for mol in mols])
    sets = splitting.make_split_indices([mols[i] for i in rows], "scaffold_balanced", fractions, seed=seed)
    return [sorted(rows[np.asarray(s[0], dtype=int)].tolist()) for s in sets]


def sets_of(split: Split) -> list[list[int]]:
    return [part.tolist() for part in (split.train, split.valid, split.test)]


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    every = nci()
    return {"chembl": chembl2321810(), "nci": every.take(np.arange(1, len(every), 4))}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fractions", FRACTIONS)
@pytest.mark.parametrize("name", ["chembl", "nci"])
def test_deepchem_sets(name: str, fractions: tuple[float, float, float], tables: dict[str, Table]) -> None:
    split = split_table(tables[name], "scaffold/deepchem", fractions=fractions, quiet=True)
    assert sets_of(split) == deepchem_sets(tables[name], fractions)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("file", "smiles"),
    [
        ("bbbp/BBBP.csv", "smiles"),
        ("esol/delaney-processed.csv", "smiles"),
        ("bace/bace.csv.gz", "mol"),
        ("clintox/clintox.csv.gz", "smiles"),
    ],
)
def test_deepchem_and_chemprop_sets_on_marked_data(file: str, smiles: str, data_dir: Path) -> None:
    table = read_table(str(data_dir / file), smiles=smiles)
    split = split_table(table, "scaffold/deepchem", quiet=True)
    assert sets_of(split) == deepchem_sets(table, (0.8, 0.1, 0.1))
    split = split_table(table, "scaffold/chemprop", seed=7, quiet=True)
    assert sets_of(split) == chemprop_sets(table, (0.8, 0.1, 0.1), seed=7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fractions", [*FRACTIONS, (0.8, 0.2, 0.0)])
@pytest.mark.parametrize(("name", "seed"), [("chembl", 0), ("nci", 11)])
def test_chemprop_sets(name: str, seed: int, fractions: tuple[float, float, float], tables: dict[str, Table]) -> None:
    expected = chemprop_sets(tables[name], fractions, seed)
    split = split_table(tables[name], "scaffold/chemprop", fractions=fractions, seed=seed, quiet=True)
    assert sets_of(split) == expected


@pytest.mark.filterwarnings("ignore")
def test_chemprop_sets_with_atom_maps(tables: dict[str, Table]) -> None:
    table = tables["chembl"].take(np.arange(150))
    mapped = table.smiles.copy()
    for i in range(0, 150, 2):
        mol = parse_smiles(mapped[i]).mol
        for atom in mol.GetAtoms():
            atom.SetAtomMapNum(atom.GetIdx() + 1)
        mapped[i] = Chem.MolToSmiles(mol)
    table = table.with_smiles(mapped)
    split = split_table(table, "scaffold/chemprop", seed=1, quiet=True)
    assert sets_of(split) == chemprop_sets(table, (0.8, 0.1, 0.1), 1)


def test_leaks_of_the_reproductions_are_carried_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rings = ["Cc1ccccc1", "Clc1ccccc1", "Cc1ccccc1.Cl", "Oc1ccccc1", "C1CC[NH2+]CC1C.[Cl-]"]
    table = make_table([*rings, "C1CC1", "C1CCC1", "C1CCNCC1C"])
    split = split_table(table, "scaffold/deepchem", fractions=(0.7, 0.0, 0.3))
    parents = molecule_keys(table.smiles, stereo=False).values
    pairs = {(str(a), str(b)) for a in split.train for b in split.test if parents[a] == parents[b]}
    assert {(leak.train, leak.test) for leak in split.leaks} == pairs
    printed = capsys.readouterr().err
    for train, test in pairs:
        assert f"id {test} of the test is a salt form of id {train} in training" in printed
    assert len(pairs) == 1


@pytest.mark.data
def test_bbbp_leaks_in_the_reproductions_and_not_in_ours(data_dir: Path) -> None:
    table = read_table(str(data_dir / "bbbp/BBBP.csv"), smiles="smiles")
    theirs = split_table(table, "scaffold/deepchem", quiet=True)
    assert len(theirs.leaks) > 0
    assert split_table(table, "scaffold/balanced").leaks == ()
