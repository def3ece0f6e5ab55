"""Recipes of benchmarks: what they mean, what is wrong with them, and that they come back as they were written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from molgraph.api.benchmarking import FACTORY
from molgraph.base.errors import BadValueError, MissingFileError, UnknownNameError, UsageError
from molgraph.base.resources import recipe_names, recipe_path
from molgraph.evaluate.benchmark.cells import Cell, cell_key, in_order
from molgraph.evaluate.benchmark.plan import check_recipe
from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe

LEAST = {"name": "a", "datasets": ["x", "y"], "split": [{"splitter": "random"}], "method": [{"name": "mean"}]}


def made(**change: object) -> BenchRecipe:
    """The least recipe, changed."""
    return BenchRecipe.from_dict(LEAST | change)


@pytest.mark.parametrize(
    "name",
    [
        "quick",
        "moleculenet",
        "adme",
        "zoo",
        "tu-graphs",
        "tu-large",
        "davis",
        "hiv",
        "kiba",
        "pdbbind",
        "pdbbind-complexes",
        "quality",
        "tdc-admet",
    ],
)
def test_shipped_recipes_name_what_there_is(name):
    recipe = BenchRecipe.from_toml(recipe_path(name))
    check_recipe(recipe, FACTORY, {})
    assert recipe.name == name in recipe_names() and recipe.title


def test_headline_boards_have_the_methods_that_they_must_have():
    costly = {"xgboost-tuned", "forest-tuned", "dmpnn-tuned", "dmpnn-ens5", "chemprop"}  # on one of the two (0023)
    plain = {"mean", "knn", "random_forest", "xgboost", "maplight", "dmpnn", "dmpnn+rdkit"}
    for name, rows in (("moleculenet", plain), ("adme", plain | costly)):
        recipe = BenchRecipe.from_toml(recipe_path(name))
        assert rows <= {m.row for m in recipe.method}
        assert {s.splitter for s in recipe.split} >= {"scaffold/balanced", "cluster/butina", "random"}
        assert len({m.search.trials for m in recipe.method if m.search}) <= 1, "equal trials"


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [
        ({"dataset": ["x"]}, UnknownNameError, "'dataset'"),
        ({"method": [{"name": "mean", "parms": {}}]}, UnknownNameError, "'method.0.parms'"),
        ({"method": [{"nam": "mean"}]}, UnknownNameError, "'method.0.nam'"),
        ({"method": [{"name": "mean", "search": {"trails": 3}}]}, UnknownNameError, "search.trails'"),
        ({"budget": {"second": 3}}, UnknownNameError, "'budget.second'"),
        ({"budget": {"seconds": 0}}, BadValueError, "budget.seconds"),
        ({"run": {"job": 3}}, UnknownNameError, "'run.job'"),
        ({"method": []}, BadValueError, "recipe, method"),
        ({"datasets": []}, BadValueError, "datasets"),
        ({"table": [{"name": "x", "path": "p", "targets": []}]}, BadValueError, "names no targets"),
        ({"table": [{"name": "", "path": "p", "targets": ["y"]}]}, BadValueError, "table.0.name"),
        ({"method": [{"name": "mean"}, {"name": "mean"}]}, BadValueError, "methods are called 'mean'"),
        ({"split": [{"splitter": "random"}, {"splitter": "random"}]}, BadValueError, "splits are called 'random'"),
        ({"split": [{"splitter": "random", "folds": 5, "seeds": [0, 1]}]}, BadValueError, "one seed"),
        ({"split": [{"splitter": "random", "repeats": 5}]}, BadValueError, "repeats need folds"),
        ({"split": [{"splitter": "random", "seeds": [1, 1]}]}, BadValueError, "split.0.seeds: 1"),
        ({"split": [{"splitter": "random", "fractions": [0.9, 0.1, 0.0]}]}, BadValueError, "fractions"),
        ({"split": [{"splitter": "random", "fractions": [0.5, 0.1, 0.1]}]}, BadValueError, "fractions"),
        ({"split": [{"splitter": "random", "folds": 2, "repeats": 10**9}]}, BadValueError, "1000000000 times"),
        ({"split": [{"splitter": "random", "datasets": ["z"]}]}, BadValueError, "'z'"),
        ({"reference": "rf"}, BadValueError, "reference 'rf'"),
        ({"method": [{"name": "mean", "skip": ["z"]}]}, BadValueError, "'z'"),
        ({"datasets": ["x", "x"]}, BadValueError, "'x'"),
        ({"method": [{"name": "mean", "label": "../up"}]}, BadValueError, "label"),
        ({"method": [{"name": "mean", "label": "-a"}]}, BadValueError, "'-a'"),
        ({"method": [{"name": "mean", "label": "pKa \u00b5"}]}, BadValueError, "'pKa \u00b5'"),
        ({"name": "a/b"}, BadValueError, "'a/b'"),
        ({"name": ""}, BadValueError, "recipe, name"),
        ({"name": None}, BadValueError, "None"),
    ],
)
def test_what_is_wrong_is_said_with_the_nearest_known_key(change, kind, word):
    with pytest.raises(kind) as error:
        made(**change)
    assert word in str(error.value)


def test_files_that_are_none(tmp_path):
    (tmp_path / "a.toml").write_text("name = ")
    with pytest.raises(UsageError, match="TOML"):
        BenchRecipe.from_toml(tmp_path / "a.toml")
    with pytest.raises(MissingFileError, match=r"b\.toml"):
        BenchRecipe.from_toml(tmp_path / "b.toml")


TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40)
@given(params=st.dictionaries(TEXTS, VALUES, max_size=4), title=TEXTS, seed=st.integers(0, 2**31))
def test_a_recipe_comes_back_from_its_toml(params, title, seed):
    methods = [{"name": "mean", "params": params, "search": {"fraction": 0.25}}, {"name": "knn", "label": "k"}]
    quoted = dict.fromkeys(("dataset", "split", "method", "metric", "protocol", "source"), "q") | {"value": 0.5}
    folds = {"splitter": "random", "folds": 5, "repeats": 2, "params": params}
    recipe = made(title=title, method=methods, split=[folds], seeds=[seed], quoted=[quoted], run={"jobs": 3})
    assert BenchRecipe.from_dict(tomllib.loads(recipe.to_toml())) == recipe


@pytest.mark.parametrize("asked", ["random", "scaffold", "rows.json"])
def test_a_stored_recipe_may_have_the_splitters_former_name(asked):
    old, new = made(split=[{"recipe": asked}]), made(split=[{"splitter": asked}])
    assert old == new and "\nrecipe = " not in old.to_toml()
    with pytest.raises(UnknownNameError, match="recipe"):
        made(split=[{"splitter": asked, "recipe": "random"}])


def test_a_key_depends_on_everything_that_predictions_depend_on():
    method, resolved = BenchMethod(name="mean", params={"a": 1}), {"a": 1, "b": 2}
    key = cell_key("d", "s", method, 0, resolved)
    same = BenchMethod(name="mean", params={"a": 1, "b": 2}, label="other", skip=("x",))
    assert key == cell_key("d", "s", same, 0, resolved), "a default that is written out is the same cell"
    others = [
        cell_key("e", "s", method, 0, resolved),
        cell_key("d", "t", method, 0, resolved),
        cell_key("d", "s", method, 0, resolved | {"b": 3}),
        cell_key("d", "s", BenchMethod(name="knn", params={"a": 1}), 0, resolved),
        cell_key("d", "s", BenchMethod.model_validate(method.model_dump() | {"search": {}}), 0, resolved),
        cell_key("d", "s", BenchMethod.model_validate(method.model_dump() | {"inputs": ["smiles"]}), 0, resolved),
        cell_key("d", "s", method, 1, resolved),
        cell_key("d", "s", method, 0, resolved, version="0.2.0"),
        cell_key("d", "s", method, 0, None),
    ]
    assert len({key, *others}) == len(others) + 1


def test_resolved_parameters_have_the_defaults_of_what_they_name():
    method = [
        {"name": "dmpnn", "params": {"depth": 4}},
        {"name": "ensemble", "params": {"method": "random_forest", "n": 2}},
    ]
    recipe = made(datasets=["chembl2321810"], method=method)
    resolved, _ = check_recipe(recipe, FACTORY, {})
    assert resolved["dmpnn"]["params"] == {"depth": 4} and resolved["dmpnn"]["batch_size"] == 64
    assert resolved["dmpnn"]["defaults"]["dmpnn"]["d_hidden"] == 300 and "concat" in resolved["dmpnn"]["defaults"]
    assert [member["n_estimators"] for member in resolved["ensemble"]["members"]] == [300, 300]
    assert json.loads(json.dumps(resolved)) == resolved, "plain values"


def test_cheap_methods_and_small_datasets_come_first_and_folds_stay_together():
    splits = [{"splitter": "random", "folds": 2}, {"splitter": "scaffold/deepchem"}]
    recipe = made(split=splits, method=[{"name": "mean"}, {"name": "dmpnn"}])
    labels = [s.name for s in recipe.split]
    cells = [
        Cell(d, s, 0, f, m, 0, f"{d}{s}{f}{m}")
        for d in ("x", "y")
        for s in labels
        for f in (1, 0)
        for m in ("dmpnn", "mean")
    ]
    found = [(c.split, c.method, c.dataset, c.fold) for c in in_order(recipe, cells, {"x": 50, "y": 10})]
    expected = [(s, m, d, f) for s in labels for m in ("mean", "dmpnn") for d in ("y", "x") for f in (0, 1)]
    assert found == expected


def test_names_of_splits_and_the_parts_they_stand_for():
    splits = [{"splitter": "scaffold/deepchem", "seeds": [3, 4]}, {"splitter": "random", "folds": 2, "repeats": 2}]
    recipe = made(split=[*splits, {"splitter": "random", "label": "r", "method_seeds": [7]}], seeds=[0, 1])
    assert [s.name for s in recipe.split] == ["scaffold-deepchem", "random-2x2", "r"]
    assert [s.parts for s in recipe.split] == [[(0, 0), (1, 0)], [(0, 0), (0, 1), (1, 0), (1, 1)], [(0, 0)]]
    assert [recipe.seeds_of(s) for s in recipe.split] == [(0, 1), (0, 1), (7,)]
    folder = Cell("x@c1", "r", 0, 1, "mean", 2, "0123456789").folder(Path("o"))
    assert folder.as_posix() == "o/cells/x@c1/r/mean/r0-f1-s2-01234567"
