"""Values of atoms and bonds: read from every kind of file, followed through the standardiser, else marked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from molgraph.base.contracts import Target
from molgraph.base.errors import (
    AmbiguousColumnError,
    DataError,
    EmptyError,
    LabelError,
    MissingColumnError,
    UnsupportedError,
)
from molgraph.base.packed import Packed
from molgraph.chem.smiles import parse_smiles
from molgraph.data.content import content_hash
from molgraph.data.labels import check_targets
from molgraph.data.read import read_table
from molgraph.data.sources.builtin import chembl2321810
from molgraph.data.standardise import standardise
from molgraph.data.table import Table, make_table

NASTY = [t.split("\t")[0] for t in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
SALTS = [
    "[Na+].[O-]C(C)=O",
    "C[NH2+]CC(=O)[O-].Cl",
    "OC1CC1.O",
    "[O-][N+](=O)c1ccc(C[NH3+])cc1",
    "Cl.[2H]OC",
    "CCO",
    "N",
]


def numbers(level: str, text: str) -> list[float]:
    """The element of each atom, or the sum of each bond's elements with its order: they tell whose a value is."""
    return values_of(Chem.MolFromSmiles(text), level)


def table_of(level: str, texts: list[str]) -> Table:
    target = Target("q", level=level)  # type: ignore[arg-type]
    return make_table(texts, targets=(target,), packed={"q": Packed.of([numbers(level, text) for text in texts])})


def write_sdf(path: Path, texts: list[str], level: str) -> None:
    """As an RDKit user would: atoms in any order, values as a property list."""
    rng = np.random.default_rng(0)
    with Chem.SDWriter(str(path)) as writer:
        for text in texts:
            mol = Chem.MolFromSmiles(text)
            mol = Chem.RenumberAtoms(mol, rng.permutation(mol.GetNumAtoms()).tolist())
            for part, value in zip(
                mol.GetAtoms() if level == "atom" else mol.GetBonds(), values_of(mol, level), strict=True
            ):
                part.SetDoubleProp("q", value)
            getattr(Chem, f"Create{level.title()}DoublePropertyList")(mol, "q")
            writer.write(mol)


def values_of(mol: Chem.Mol, level: str) -> list[float]:
    if level == "atom":
        return [float(atom.GetAtomicNum()) for atom in mol.GetAtoms()]
    return [
        b.GetBeginAtom().GetAtomicNum() * b.GetEndAtom().GetAtomicNum() + b.GetBondTypeAsDouble() / 10
        for b in mol.GetBonds()
    ]


@pytest.mark.parametrize("level", ["atom", "bond"])
@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "python", "sdf"])
def test_every_source_gives_the_same_values(level: str, form: str, tmp_path: Path) -> None:
    texts = list(chembl2321810().smiles[:12])
    lists = [numbers(level, text) for text in texts]
    path = tmp_path / f"t.{form}"
    source: object = path
    if form == "csv":
        pd.DataFrame({"smiles": texts, "q": [json.dumps(each) for each in lists]}).to_csv(path, index=False)
    elif form == "parquet":
        pd.DataFrame({"smiles": texts, "q": lists}).to_parquet(path)
    elif form == "sdf":
        write_sdf(path, texts, level)
    else:
        cells = lists if form == "python" else [np.array(each) for each in lists]
        source = {"smiles": texts, "q": cells} if form == "python" else pd.DataFrame({"smiles": texts, "q": cells})
    table = read_table(source, targets=[f"q:{level}"])
    assert [(t.name, t.kind, t.level) for t in table.targets] == [("q", "regression", level)]
    assert table.ok.all() and table.y is None
    for text, values in zip(table.smiles, table.packed["q"].lists(), strict=True):
        assert values.tolist() == numbers(level, text)  # in the order of the SMILES that the table has


def test_cells_that_do_not_fit_mark_their_row_and_no_other() -> None:
    cells = ["[1, null, 3]", "[1, 2]", "[1, x, 2]", "", "[1, 2, Infinity]", "[]", "1 n/a 3", "[0.5,, 1]", "5"]
    table = read_table({"smiles": ["CCO"] * len(cells), "q": cells}, targets=["q:atom"])
    assert list(table.status) == ["ok", *["unreadable"] * 2, "ok", *["unreadable"] * 2, "ok", "ok", "unreadable"]
    assert table.reason[1] == "q has 2 values, the molecule 3 atoms"
    assert table.reason[2] == "atom 2: column 'q' holds 'x', which is no number"
    assert table.reason[4] == "atom 3: column 'q' is infinite"
    assert table.packed["q"].sizes.tolist() == [3, 0, 0, 0, 0, 0, 3, 3, 0]
    np.testing.assert_array_equal(table.packed["q"].values, [1, np.nan, 3, 1, np.nan, 3, 0.5, np.nan, 1])
    assert content_hash(table) != content_hash(read_table({"smiles": ["CCO"] * len(cells)}))


@pytest.mark.parametrize(
    ("asked", "cells", "kind", "values"),
    [
        ("q:atom", ["[0, 1]", "[1]"], "binary", [0, 1, 1]),
        ("q:atom:regression", ["[0, 1]", "[1]"], "regression", [0, 1, 1]),
        ("q:atom:binary", ["[true, no]", "[yes]"], "binary", [1, 0, 1]),
        ("q:atom:multiclass", ['["sp3", "sp2"]', '["sp3"]'], "multiclass", [1, 0, 1]),
    ],
)
def test_kinds(asked: str, cells: list[str], kind: str, values: list[float]) -> None:
    table = read_table({"smiles": ["CO", "C"], "q": cells}, targets=[asked])
    assert (table.targets[0].kind, table.packed["q"].values.tolist()) == (kind, values)


@pytest.mark.parametrize(
    ("asked", "kind", "noun"),
    [
        ("q:atoms", LabelError, "'atoms'"),
        ("q:atom:number", LabelError, "'number'"),
        ("p:atom", MissingColumnError, "'p'"),
    ],
)
def test_a_notation_that_says_nothing(asked: str, kind: type[DataError], noun: str) -> None:
    with pytest.raises(kind, match=noun):
        read_table({"smiles": ["CO"], "q": ["[1, 2]"]}, targets=[asked])


def test_a_table_in_which_no_list_fits_says_why() -> None:
    table = read_table({"smiles": ["CCO", "CC"], "q": ["[1]", "[2]"]}, targets=["q:atom"])
    with pytest.raises(EmptyError, match=r"q .*3 atoms"):
        check_targets(table)
    with pytest.raises(LabelError, match="NAME:atom"):
        read_table({"smiles": ["CCO"], "q": ["[1, 2, 3]"]}, targets=["q"])
    with pytest.raises(UnsupportedError, match="logarithms"):
        read_table({"smiles": ["CCO"], "q": ["[1, 2, 3]"]}, targets=["q:atom"], log=True)


@pytest.mark.parametrize("level", ["atom", "bond"])
@pytest.mark.parametrize("preset", ["standard", "desalt", "none"])
def test_values_follow_their_atoms_through_the_standardiser(level: str, preset: str) -> None:
    clean = standardise(table_of(level, SALTS), preset)
    assert clean.ok.all()
    for text, values in zip(clean.smiles, clean.packed["q"].lists(), strict=True):
        assert sorted(values.tolist()) == sorted(numbers(level, text))
        assert values.tolist() == numbers(level, text)


def test_values_of_two_columns_of_molecules_are_nobodys() -> None:
    table = table_of("atom", ["CCO", "C"])
    solvent = replace(table.entities[0], name="solvent")
    with pytest.raises(AmbiguousColumnError, match="molecules"):
        standardise(replace(table, entities=(*table.entities, solvent)))


def test_the_nasty_list_keeps_every_row_with_values_or_a_reason() -> None:
    mols = [parse_smiles(text).mol for text in NASTY]
    cells = ["[1]" if mol is None else json.dumps([0.5] * mol.GetNumAtoms()) for mol in mols]
    table = read_table({"smiles": NASTY, "q": cells}, targets=["q:atom"])
    assert len(table) == len(NASTY)
    clean = standardise(table)
    for mol, size, ok, why in zip(mols, clean.packed["q"].sizes, clean.ok, clean.reason, strict=True):
        assert ok or why
        assert (size > 0) or mol is None or why, (size, why)
