"""Columns of reactions are found by their values or named, in one column or two, and keep every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import molgraph
from molgraph.base.errors import AmbiguousColumnError, MissingColumnError, UnsupportedError, UnusedSettingError
from molgraph.data.read import read_table
from molgraph.data.splits.make import split_table
from tests.data.test_featurize_reaction import MAPPED

SIDES = {"reactants": [text.split(">")[0] for text in MAPPED], "product": [text.split(">")[2] for text in MAPPED]}
Y = [float(len(text)) for text in MAPPED]


@pytest.mark.parametrize(
    ("source", "columns", "name"),
    [
        ({"rxn": MAPPED, "y": Y}, {}, "rxn"),
        ({"smiles": MAPPED, "y": Y}, {}, "smiles"),
        (list(MAPPED), {}, "smiles"),
        (list(MAPPED), {"reaction": "rxn"}, "smiles"),
        (SIDES, {}, "reactants>>product"),
        ({**SIDES, "smiles": ["C"] * 10}, {"reaction": "Reactants>>product"}, "reactants>>product"),
        ({"smiles": ["C"] * 10, "rxn": MAPPED}, {"reaction": "rxn"}, "rxn"),
    ],
)
def test_reactions_are_found_or_named(source: Any, columns: Any, name: str) -> None:
    table = read_table(source, **columns)
    assert [(e.name, e.kind) for e in table.entities] == [(name, "reaction")]
    assert all(text.count(">") == 2 for text in table.entities[0].values)


def test_molecules_go_before_reactions_that_nobody_named() -> None:
    table = read_table({"smiles": ["C"] * 10, "rxn": MAPPED, "y": Y}, targets="y", need_targets=True)
    assert table.entities[0].kind == "molecule" and "--reaction rxn" in table.notes[0]
    with pytest.raises(AmbiguousColumnError, match="several columns"):
        read_table({"a": MAPPED, "b": MAPPED})
    with pytest.raises(MissingColumnError, match="rx"):
        read_table({"rxn": MAPPED}, reaction="rx")


def test_empty_cells_and_bad_reactions_are_rows_with_reasons() -> None:
    texts = [*MAPPED, "", "CC>>CO", "[CH4:1]>>[CH4"]
    table = read_table({"rxn": texts})
    assert table.status.tolist() == ["ok"] * 10 + ["missing"] + ["ok"] * 2 and len(table) == 13
    kept = read_table({"rxn": texts}, on_error="drop")
    assert len(kept) == 10


def test_one_reaction_is_on_one_side_of_a_split_and_scaffolds_are_those_of_the_reactants() -> None:
    rings = [f"[CH3:1][O:2]{ring}>>[CH3:1][OH:2]" for ring in ("c1ccccc1", "C1CCCC1", "c1ccncc1") for _ in range(4)]
    again = [f"{ring}[O:5][CH3:3]>>[OH:5][CH3:3]" for ring in ("C1=CC=CC=C1", "C1CCCC1", "n1ccc(cc1)")]
    table = read_table({"rxn": [*rings, *again, "CC>>CO"]})
    for recipe in ("random", "scaffold/balanced"):
        split = split_table(table, recipe, fractions=(0.4, 0.3, 0.3))
        assert split.groups == 4 and not split.leaks
        for part in (split.train, split.test):
            held = set(table.entities[0].values[part])
            other = set(table.entities[0].values[np.setdiff1d(np.arange(15), part)])
            assert not held & other


def test_a_model_of_reactions_predicts_what_it_was_trained_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 1, "baseline": False, "split": "random", "fractions": (0.8, 0.2, 0.0)}
    source = {"rxn": [*MAPPED, "CC>>CO"], "y": [*Y, 1.0]}
    params = {"d_hidden": 8, "featuriser": "reaction(mode=prod_diff)"}
    model = molgraph.train(source, targets="y", model="dmpnn", params=params, **options).model
    model.save(tmp_path / "m.mgm")
    again = molgraph.load(tmp_path / "m.mgm")
    found = again.predict(source)
    assert found.status.tolist() == ["ok"] * 10 + ["unreadable"] and np.isfinite(found.value[:10]).all()
    np.testing.assert_array_equal(again.predict(list(MAPPED)).value, found.value[:10])
    plain = molgraph.train(source, targets="y", model="dmpnn", params={"d_hidden": 8}, **options).model
    assert np.abs(plain.predict(source).value[:10] - found.value[:10]).max() > 1e-4
    usual = {"params": {"d_hidden": 8, "featuriser": "reaction"}, **options}
    with pytest.raises(UnsupportedError, match="other features"):
        molgraph.train(source, targets="y", model="dmpnn", init=str(tmp_path / "m.mgm"), **usual)
    with pytest.raises(UnusedSettingError, match="featuriser"):
        molgraph.train({"smiles": SIDES["product"], "y": Y}, targets="y", model="dmpnn", params=params, **options)
    with pytest.raises(UnsupportedError, match="column of molecules"):
        molgraph.train(source, targets="y", model="random_forest", **options)
