"""molgraph's own splitters: parts, groups, hashes, folds, files; no form of a training molecule is tested."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from molgraph.base.errors import (
    BadValueError,
    DataError,
    EmptyError,
    FormatError,
    MismatchError,
    RowIdError,
    UnknownNameError,
    UnsupportedError,
)
from molgraph.base.registry import names
from molgraph.chem.identity import molecule_keys
from molgraph.chem.scaffold import scaffolds
from molgraph.data.read import read_table
from molgraph.data.sources.builtin import chembl2321810, nci
from molgraph.data.splits import Leak, Split, kfold, repeated_kfold, split_table
from molgraph.data.splits.make import fewest_rows
from molgraph.data.splits.structures import find_leaks
from molgraph.data.table import Entities, Table, make_table

OWN = ("random", "scaffold/balanced", "scaffold/generic", "cluster/butina")
FORMS = [
    ("CC(N)C(=O)O", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)[O-].[Na+]", "OC(=O)C(C)N.Cl"),
    ("c1ccccc1O", "Oc1ccccc1", "[O-]c1ccccc1.[K+]", "[2H]Oc1ccccc1"),
    ("C/C=C/c1ccncc1", "C/C=C\\c1ccncc1", "CC=Cc1cc[nH+]cc1.[Br-]", "CC=Cc1ccncc1"),
    ("CCCCCC", "C(CCCC)C", "[13CH3]CCCCC", "CCCCCC.O"),
    ("O=C1CCCCC1", "C1CCCCC1=O", "O=C1CCCCC1.Cl", "O=C1CC[13CH2]CC1"),
]


@pytest.fixture(scope="module")
def table() -> Table:
    return chembl2321810().take(np.arange(0, 1017, 3))


def assert_partition(split: Split, table: Table) -> None:
    rows = np.concatenate([split.train, split.valid, split.test, [out.row for out in split.left_out]])
    assert sorted(rows.tolist()) == list(range(len(table)))
    for part in (split.train, split.valid, split.test):
        assert part.dtype == np.int64
        assert (np.diff(part) > 0).all()


def assert_no_form_of_a_training_molecule_is_tested(split: Split, table: Table) -> None:
    parents = molecule_keys(table.smiles, stereo=False).values
    parts = [set(parents[part]) for part in (split.train, split.valid, split.test)]
    for one, two in combinations(parts, 2):
        assert not one & two
    assert split.leaks == find_leaks(table, split.train, split.test) == ()


@pytest.mark.parametrize("splitter", OWN)
def test_own_splitters_partition_and_group(splitter: str, table: Table) -> None:
    split = split_table(table, splitter, seed=1)
    assert_partition(split, table)
    assert_no_form_of_a_training_molecule_is_tested(split, table)
    assert split.groups is not None
    if splitter != "cluster/butina":  # one chemical series makes a few large clusters
        for part, fraction in zip((split.train, split.valid, split.test), (0.8, 0.1, 0.1), strict=True):
            assert abs(len(part) - fraction * len(table)) <= 0.02 * len(table)


@pytest.mark.parametrize("splitter", OWN)
def test_own_splitters_on_nci_with_rows_that_cannot_be_read(splitter: str) -> None:
    table = make_table(["C1CC", *nci().smiles[::15], "CN(C)(C)C"])
    split = split_table(table, splitter, seed=3)
    assert_partition(split, table)
    assert_no_form_of_a_training_molecule_is_tested(split, table)
    assert [out.row for out in split.left_out] == [0, len(table) - 1]
    assert "unclosed ring" in split.left_out[0].reason
    assert "valence" in split.left_out[1].reason


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("file", ["bbbp/BBBP.csv", "clintox/clintox.csv.gz"])
def test_own_splitters_on_marked_data(file: str, data_dir: Path) -> None:
    table = read_table(str(data_dir / file), smiles="smiles")
    parents = molecule_keys(table.smiles, stereo=False).values
    for splitter in OWN:
        split = split_table(table, splitter)
        assert_partition(split, table)
        one, two, three = (set(parents[part]) for part in (split.train, split.valid, split.test))
        assert not one & two | one & three | two & three
    assert find_leaks(table, split.train, split.test) == ()


@given(st.data())
@settings(max_examples=25)
def test_forms_of_one_molecule_are_never_parted(data: st.DataObject) -> None:
    fillers = ["CCO", "CCN", "c1ccsc1", "C1CC1", "C1CCNCC1", "CCOC", "CC#N", "OCCO", "c1cocc1", "C1COC1"]
    forms = data.draw(st.lists(st.sampled_from([f for family in FORMS for f in family]), min_size=1, max_size=12))
    smiles = data.draw(st.permutations(fillers + forms))
    splitter, seed = data.draw(st.sampled_from(OWN)), data.draw(st.integers(0, 5))
    table = make_table(smiles)
    family_of = {form: i for i, family in enumerate(FORMS) for form in family}
    split = split_table(table, splitter, fractions=(0.5, 0.0, 0.5), seed=seed)
    assert_partition(split, table)
    part_of = defaultdict(set)
    for text, word in zip(smiles, split.words, strict=True):
        part_of[family_of.get(text, text)].add(word)
    assert all(len(parts) == 1 for parts in part_of.values())


@pytest.mark.parametrize("splitter", ["scaffold/balanced", "scaffold/generic"])
def test_scaffolds_are_never_parted_and_acyclic_molecules_are_their_own(splitter: str, table: Table) -> None:
    split = split_table(table, splitter, seed=4)
    parents = molecule_keys(table.smiles, stereo=False).values
    keys = scaffolds(parents, generic=splitter == "scaffold/generic").values
    words = defaultdict(set)
    for key, word in zip(keys, split.words, strict=True):
        words[key].add(word)
    assert all(len(parts) == 1 for key, parts in words.items() if key)
    chains = make_table(["C" * n for n in range(1, 41)])
    assert split_table(chains, splitter).groups == 40
    assert split_table(chains, splitter).sizes == {"train": 32, "valid": 4, "test": 4, "left_out": 0}


def test_same_seed_same_split_another_seed_another(table: Table) -> None:
    one, again, other = (split_table(table, "random", seed=s) for s in (5, 5, 6))
    assert (one.test == again.test).all()
    assert one.hash == again.hash != other.hash
    assert set(one.test) != set(other.test)


def test_the_hash_knows_splitter_content_and_rows(table: Table) -> None:
    few = table.take(np.arange(100))
    split = split_table(few, "random")
    smiles = few.smiles.copy()
    smiles[0] = "CCCCCCCCCCCCCCCC"
    others = [
        split_table(few, "random", fractions=(0.7, 0.2, 0.1)),
        split_table(few.with_smiles(smiles), "random"),
        split_table(few, "cluster/butina"),
        split_table(few, "cluster/butina", similarity=0.7),
    ]
    assert len({s.hash for s in [split, *others]}) == 5


def test_a_split_is_for_its_own_table(table: Table) -> None:
    split = split_table(table, "random")
    train, valid, test = split.tables(table)
    assert (train.ids == table.ids[split.train]).all()
    assert len(train) + len(valid) + len(test) == len(table)
    with pytest.raises(MismatchError, match=r"339 rows.* 10"):
        split.check(table.take(np.arange(10)))
    with pytest.raises(MismatchError, match="another order"):
        split.check(table.take(np.arange(len(table))[::-1]))


def test_a_saved_split_loads_as_it_was(tmp_path: Path) -> None:
    table = make_table(["CCO", "OCC", "C1CC", None, "c1ccccc1", "CCN", "[Na+].CCO", "CCC"], ids="aabcdefg")
    split = split_table(table, "scaffold/deepchem", fractions=(0.5, 0.0, 0.5), quiet=True)
    split.save(tmp_path / "s.json")
    again = Split.load(tmp_path / "s.json")
    for name in ("train", "valid", "test"):
        assert (getattr(split, name) == getattr(again, name)).all()
    for name in ("splitter", "seed", "fractions", "n_rows", "content", "hash", "leaks", "left_out", "groups", "params"):
        assert getattr(split, name) == getattr(again, name)
    again.check(table)
    assert list(json.loads((tmp_path / "s.json").read_text()))[:2] == ["format", "recipe"], "the keys of its format"
    assert list(tmp_path.iterdir()) == [tmp_path / "s.json"]


@pytest.mark.parametrize(
    ("change", "kind", "noun"),
    [
        ({"format": "other"}, FormatError, "its format"),
        ({"train": [0, 1, 2, 3, 3]}, RowIdError, "row 0"),
        ({"train": [0, 99]}, RowIdError, "row 99"),
        ({"train": [-1]}, RowIdError, "row -1"),
        ({"test": "text"}, FormatError, "s.json"),
        ({"hash": None, "leaks": 3}, FormatError, "s.json"),
    ],
)
def test_a_corrupt_split_file_is_one_clear_error(change, kind, noun, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    split_table(make_table(["CCO", "CCN", "CCC", "CCS"]), "random", fractions=(0.5, 0.25, 0.25)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(kind, match=noun):
        Split.load(path)
    path.write_text("{")
    with pytest.raises(FormatError, match=r"s\.json"):
        Split.load(path)
    with pytest.raises(DataError, match=r"none\.json"):
        Split.load(tmp_path / "none.json")


def test_errors_say_what_to_do_next(table: Table) -> None:
    with pytest.raises(UnknownNameError, match="'scaffold/balanced'"):
        split_table(table, "scafold/balanced")
    with pytest.raises(BadValueError, match=r"1\.1"):
        split_table(table, fractions=(0.8, 0.2, 0.1))
    with pytest.raises(BadValueError, match="2 values"):
        split_table(table, fractions=(0.8, 0.2))
    with pytest.raises(BadValueError, match="nan"):
        split_table(table, fractions=(float("nan"), 0.5, 0.5))
    with pytest.raises(UnknownNameError, match=r"'similarty'.*\n.*'similarity'"):
        split_table(table, "cluster/butina", similarty=0.3)
    with pytest.raises(BadValueError, match="similarity is 4"):
        split_table(table, "cluster/butina", similarity=4)
    with pytest.raises(EmptyError, match=r"valid.* 1 groups"):
        split_table(make_table(["CCO", "OCC", "C(O)C"]), "random")
    for fractions in ((0.95, 0.05, 0.0), (0.8, 0.1, 0.1), (0.5, 0.25, 0.25)):
        n = fewest_rows(fractions)
        with pytest.raises(EmptyError, match=rf"(?s): {n - 1} usable.* {n} distinct"):
            split_table(make_table(["C" * k for k in range(1, n)]), "random", fractions=fractions)
        for more in range(n, 30):
            split_table(make_table(["C" * k for k in range(1, more + 1)]), "random", fractions=fractions)
    with pytest.raises(EmptyError, match="2 rows"):
        split_table(make_table([None, ""]))
    with pytest.raises(EmptyError, match="row 1"):
        split_table(make_table(["C1CC"]))
    with pytest.raises(UnsupportedError, match="scaffold/deepchem"):
        kfold(table, 5, "scaffold/deepchem")
    with pytest.raises(BadValueError, match="k is 1"):
        kfold(table, 1)
    with pytest.raises(EmptyError, match="3 folds"):
        kfold(make_table(["CCO", "OCC", "C"]), 3, "random")


def test_a_part_of_no_fraction_may_be_empty(table: Table) -> None:
    split = split_table(table, "scaffold/balanced", fractions=(0.9, 0.0, 0.1))
    assert split.sizes["valid"] == 0
    assert split.sizes["test"] > 30


def test_leaks_name_the_pairs_and_what_ties_them() -> None:
    table = make_table(
        ["CC(N)C(=O)O", "CCO", "OCC", "C[C@H](N)C(=O)O", "CC(N)C(=O)O.Cl", "CCC", "[13CH3]CO"], ids="abcdefg"
    )
    leaks = find_leaks(table, np.array([0, 1, 5]), np.array([2, 3, 4, 6]))
    assert leaks == (
        Leak("b", "c", "duplicate"),
        Leak("a", "d", "stereoisomer"),
        Leak("a", "e", "salt form"),
        Leak("b", "g", "isotopologue"),
    )


def test_a_molecule_that_trains_a_thousand_times_is_named_ten_times() -> None:
    table = make_table(["CCO"] * 1001)
    assert len(find_leaks(table, np.arange(1000), np.array([1000]))) == 10


def test_random_splits_tables_of_other_things() -> None:
    proteins = np.array(["MKV", "MKV", "GGA", "PLK", "WWW", "AAA"], dtype=object)
    plain = make_table(["CCO"] * 6)
    table = Table(plain.ids, (Entities("sequence", "sequence", proteins),), plain.status, plain.reason)
    split = split_table(table, "random", fractions=(0.5, 0.25, 0.25))
    assert split.words[0] == split.words[1]
    pairs = Table(plain.ids, (*plain.entities, *table.entities), plain.status, plain.reason)
    assert split_table(pairs, "random", fractions=(0.5, 0.25, 0.25)).groups == 5


def test_the_splitter_may_be_named_by_its_former_keyword(table: Table) -> None:
    assert split_table(table, recipe="random").hash == split_table(table, "random").hash
    assert [s.hash for s in kfold(table, 3, recipe="random")] == [s.hash for s in kfold(table, 3, "random")]
    (old, *_), (new, *_) = repeated_kfold(table, 1, 3, recipe="random"), repeated_kfold(table, 1, 3, "random")
    assert old.hash == new.hash


def test_every_splitter_is_registered() -> None:
    assert set(OWN) | {"time", "group", "column", "file", "scaffold/deepchem", "scaffold/chemprop"} <= set(
        names("split")
    )


def test_text_tells_sizes_leaks_and_what_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    table = make_table(["CCO", "OCC", "C1CC", "C[C@H](F)O", "c1ccccc1", "C[C@@H](F)O"])
    words = ["train", "test", "test", "train", "train", "test"]
    text = split_table(table, "column", column=words).text()
    assert "LEAKS: 2 of 2 test rows hold a molecule" in text
    assert "id 1 of the test is a duplicate of id 0 in training" in text
    assert "left out: row 3" in text
    assert capsys.readouterr().err == ""
