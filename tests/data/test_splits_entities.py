"""Splits of pairs by new drugs, new proteins, and both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from molgraph.base.errors import BadValueError, EmptyError, MismatchError, MissingColumnError
from molgraph.chem.identity import molecule_keys
from molgraph.data.splits import Split, kfold, split_table
from molgraph.data.splits.splitter import CROSSED
from molgraph.data.table import OK, Entities, Table, Target

DRUGS = ("CCO", "OCC", "[Na+].CC(=O)[O-]", "CC(=O)O", *("C" * n + "N" for n in range(1, 21)), "C1CC")
PROTEINS = ("MKTAYIA", "mktay ia", "MKTAYIA*", *("GIVE" * n for n in range(1, 16)))
COLD = ("cold-drug", "cold-protein", "cold-both")


@pytest.fixture(scope="module")
def table() -> Table:
    """Most pairs of drugs and proteins, some of them written in two ways, one drug unreadable; hits are rare."""
    rng = np.random.default_rng(0)
    drug, protein = np.nonzero(rng.random((len(DRUGS), len(PROTEINS))) < 0.8)
    columns = {"drug": ("molecule", DRUGS, drug), "protein": ("sequence", PROTEINS, protein)}
    entities = tuple(Entities(n, k, np.array(v, object)[i]) for n, (k, v, i) in columns.items())  # type: ignore[arg-type]
    n = len(drug)
    y = (rng.random(n) < 0.2).astype(float)[:, None]
    status, reason = np.full(n, OK, object), np.full(n, "", object)
    return Table(np.array([f"p{i}" for i in range(n)], object), entities, status, reason, (Target("hit", "binary"),), y)


def keys(table: Table) -> dict[str, np.ndarray]:
    proteins = ["".join(text.split()).upper().removesuffix("*") for text in table.column("protein").values]
    return {"drug": molecule_keys(table.smiles, stereo=False).values, "protein": np.array(proteins, dtype=object)}


def assert_cold(split: Split, table: Table, splitter: str) -> None:
    """No entity that must be new is in two parts, every row is in one part or left out, with a reason."""
    parts = [part for part in (split.train, split.valid, split.test) if len(part)]
    rows = np.concatenate([*parts, [out.row for out in split.left_out]])
    assert sorted(rows.tolist()) == list(range(len(table)))
    cold = ("drug", "protein") if splitter == "cold-both" else (splitter.removeprefix("cold-"),)
    for name in cold:
        found = [set(keys(table)[name][part]) for part in parts]
        assert sum(map(len, found)) == len(set().union(*found)), name
    crossed = [out for out in split.left_out if out.reason == CROSSED]
    assert bool(crossed) == (splitter == "cold-both")
    unread = {str(table.smiles[out.row]) for out in split.left_out if out.reason != CROSSED}
    assert unread == (set() if splitter == "cold-protein" else {"C1CC"})


@pytest.mark.parametrize("splitter", COLD)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_entity_that_is_new_trains(table: Table, splitter: str, seed: int) -> None:
    split = split_table(table, splitter, fractions=(0.6, 0.2, 0.2), seed=seed)
    assert_cold(split, table, splitter)
    sizes = np.array([len(split.train), len(split.valid), len(split.test)]) / len(table)
    wanted = np.square([0.6, 0.2, 0.2]) if splitter == "cold-both" else np.array([0.6, 0.2, 0.2])
    assert (np.abs(sizes - wanted) < 0.07).all()
    assert split.leaks == () and split.hash != split_table(table, splitter, seed=seed + 9).hash


@pytest.mark.parametrize("splitter", COLD)
@pytest.mark.parametrize("with_valid", [False, True])
def test_folds_test_every_new_entity_once(table: Table, splitter: str, with_valid: bool) -> None:
    splits = kfold(table, 4, splitter, 0, with_valid=with_valid)
    for split in splits:
        assert_cold(split, table, splitter)
        assert bool(len(split.valid)) == with_valid
    for name, found in keys(table).items():
        tested = [set(found[split.test]) for split in splits]
        if splitter in ("cold-both", f"cold-{name}"):
            assert sum(map(len, tested)) == len(set().union(*tested))
    if splitter == "cold-both":
        assert splits[0].groups == len(set(keys(table)["drug"]) - {""}) + len(set(keys(table)["protein"]))
    else:
        assert len(set(np.concatenate([s.test for s in splits]))) == sum(s.sizes["test"] for s in splits)


def test_marks_of_folds_with_one_class_are_those_of_their_own_rows(table: Table) -> None:
    rare = replace(table, y=(np.arange(len(table)) < 3).astype(float)[:, None])
    for split in kfold(rare, 3, "cold-both", 0):
        found = {part: len(np.unique(rare.y[getattr(split, part)])) < 2 for part in ("train", "test")}
        assert set(split.params.get("one_class", {})) == {part for part, lacking in found.items() if lacking}


def test_a_split_is_of_both_columns(table: Table) -> None:
    split = split_table(table, "cold-both", fractions=(0.6, 0.2, 0.2))
    split.check(table)
    for name in ("drug", "protein"):
        values = table.column(name).values.copy()
        values[0] = "CCCCCO" if name == "drug" else "MMMM"
        changed = tuple(replace(e, values=values) if e.name == name else e for e in table.entities)
        with pytest.raises(MismatchError):
            split.check(replace(table, entities=changed))


def test_columns_are_named_and_lacking_ones_said(table: Table) -> None:
    again = Entities("solvent", "molecule", table.smiles[::-1].copy())
    both = replace(table, entities=(again, *table.entities))
    assert_cold(split_table(both, "cold-drug", drug="drug"), table, "cold-drug")
    with pytest.raises(BadValueError, match="'protein'"):
        split_table(both, "cold-drug", drug="protein")
    with pytest.raises(MissingColumnError, match="sequence"):
        split_table(table.with_entities(["drug"]), "cold-both")
    with pytest.raises(EmptyError, match=r"20 folds.*'cold-both'.* 16"):
        kfold(table, 20, "cold-both")
