"""Trials that every registered featuriser meets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from molgraph.base.registry import entry, names
from molgraph.data.batch import collate
from molgraph.data.content import content_hash
from molgraph.data.featuriser import DEFAULT_FEATURISERS, Featuriser
from molgraph.data.featurize_geometry import METHANE, WATER
from molgraph.data.graph_cache import graphs_of
from molgraph.data.graph_io import load_store, save_store
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.graph_values import Geometry, Graph
from molgraph.data.read import read_table
from molgraph.data.splits.split import row_contents
from molgraph.data.table import Entities, make_table

NASTY = [line.split("\t")[0] for line in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
ODD = [None, 5, "", "\ud800", b"CCO", "\0", object(), float("nan"), [], "x" * 200_001]
NOTHING = [None, float("nan"), np.float32("nan"), pd.NA]
EDGE = np.array([[0, 1], [1, 0]])


def made(name: str) -> Featuriser:
    return entry("featuriser", name).value()


def same(a: GraphStore, b: GraphStore) -> None:
    assert a.spec == b.spec and list(a.status) == list(b.status) and list(a.reason) == list(b.reason)
    for name, level in a.levels.items():
        other = b.levels[name]
        assert np.array_equal(level.offsets, other.offsets) and level.index == other.index
        assert level.arrays.keys() == other.arrays.keys()
        for key, values in level.arrays.items():
            if key == "code" and name in a.tables:
                assert np.array_equal(a.tables[name][values], b.tables[name][other.arrays[key]])
            else:
                assert np.array_equal(values, other.arrays[key])


@pytest.mark.parametrize("name", names("featuriser"))
class TestEveryFeaturiser:
    def test_says_what_it_is(self, name: str) -> None:
        one = made(name)
        assert one.name == name and one.kind in DEFAULT_FEATURISERS and one.versions and len(one.examples) >= 2
        assert entry("featuriser", name).summary

    def test_makes_the_older_versions_that_it_names(self, name: str) -> None:
        one = made(name)
        for version in (one.versions[0], *one.older):
            again = one.as_of(version)
            assert again.versions == (version, *one.versions[1:])
            assert again.featurise(one.examples).featuriser == version and again.as_of("others") is again

    def test_one_graph_a_value_in_order(self, name: str) -> None:
        one = made(name)
        store = one.featurise(one.examples)
        assert len(store) == len(one.examples) and (store.status == "ok").all()
        assert store.featuriser == one.versions[0]
        backwards = one.featurise(one.examples[::-1], spec=store.spec)
        for i in range(len(store)):
            a, b = collate(store, np.array([i])), collate(backwards, np.array([len(store) - 1 - i]))
            for level, own in a.levels.items():
                assert (a.features(level) == b.features(level)).all() if own.table is not None else True
                assert len(own) == len(b[level]) > 0 or level == "bond"

    def test_values_that_are_none_of_its_kind_are_rows_with_reasons(self, name: str) -> None:
        one = made(name)
        spec = one.featurise(one.examples).spec
        values = [one.examples[0], *ODD, *([] if one.kind == "molecule" else NASTY)]
        store = one.featurise(values, spec=spec)
        assert store.status[0] == "ok" and len(store) == len(values)
        for i, status in enumerate(store.status):
            assert status in ("ok", "unreadable") and (status == "ok") == (store.reason[i] == "")
            assert "\n" not in store.reason[i]
            sizes = [level.offsets[i + 1] - level.offsets[i] for level in store.levels.values()]
            assert max(sizes) > 0 if status == "ok" else max(sizes) == 0
        for level in store.levels.values():
            assert all(np.isfinite(a).all() for a in level.arrays.values() if a.dtype.kind == "f")

    def test_nothing_is_a_row_with_a_reason_and_no_text(self, name: str) -> None:
        one = made(name)
        values = [one.examples[0], *NOTHING, 5, b"CCO", one.examples[0]]
        store = one.featurise(values, spec=one.featurise(one.examples).spec)
        assert list(store.status) == ["ok", *["unreadable"] * 6, "ok"]
        assert set(store.reason[1:5]) == {f"no {one.kind} in this row"}
        wanted = "not text: {}" if one.kind in ("molecule", "sequence", "reaction") else f"no {one.kind} but {{}}"
        assert list(store.reason[5:7]) == [wanted.format("int"), wanted.format("bytes")]
        assert not {one.key(value) for value in values[1:7]} & {one.key(str(value)) for value in values[1:7]}

    def test_nasty_molecules(self, name: str) -> None:
        one = made(name)
        if one.kind != "molecule":
            return
        store = one.featurise(NASTY)
        assert len(store) == len(NASTY) and (store.status == "ok").sum() > 20

    def test_no_value_at_all(self, name: str) -> None:
        one = made(name)
        spec = one.featurise(one.examples).spec
        none = one.featurise([], spec=spec)
        assert len(none) == 0 and none.spec.widths == spec.widths

    def test_stores_are_kept(self, name: str, tmp_path: Path) -> None:
        store = made(name).featurise(made(name).examples)
        save_store(store, tmp_path / "s")
        same(load_store(tmp_path / "s"), store)

    def test_specs_are_kept(self, name: str) -> None:
        spec = made(name).featurise(made(name).examples).spec
        assert InputSpec.from_json(spec.to_json()) == spec

    def test_keys_tell_entities_apart(self, name: str) -> None:
        one = made(name)
        keys = [one.key(value) for value in (*one.examples, *one.examples)]
        assert len(set(keys)) == len(one.examples)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Graph(2, np.array([[0, 5], [5, 0]])), "an edge to node 5 of 2 nodes"),
        (Graph(2, np.array([[0, -1]])), "an edge to node -1 of 2 nodes"),
        (Graph(0, np.zeros((0, 2), int)), "a graph of no nodes"),
        (Graph(2, EDGE, node_label=np.array([0])), "node labels must be of the shape [2], not [1]"),
        (Graph(2, EDGE, node_label=np.array([0, 9])), "a node label of 9, where 2 are known"),
        (Graph(2, EDGE), "its nodes lack labels or features that the others have"),
        (Graph(4, np.array([[0, 1, 2]])), "edges must be of the shape [e, 2], not [1, 3]"),
        (Graph(4, np.array([[0, 1, 2], [1, 2, 3]])), "edges must be of the shape [e, 2], not [2, 3]"),
        (Graph(3, np.array([0, 1, 1, 0])), "edges must be of the shape [e, 2], not [4]"),
        (Graph(3, [[0, 1], [2]]), "edges must be whole numbers"),
        (Graph(3, None), "edges must be whole numbers"),
        (Graph(3, np.array([[0.5, 1.2]])), "edges must be whole numbers"),
        (Graph(3, np.array([[np.nan, 1.0]])), "edges must be whole numbers"),
        (Graph(3, np.array([["0", "1"]])), "edges must be whole numbers, not '0'"),
        (Graph(-1, np.zeros((0, 2), int)), "a graph of -1 nodes"),
        (Graph(2.5, EDGE), "n_nodes must be a whole number"),
        (Graph(None, EDGE), "n_nodes must be a whole number"),
        (Graph(np.array([2]), EDGE), "n_nodes must be of the shape [], not [1]"),
        (Graph(10**12, EDGE), "a graph of 1,000,000,000,000 nodes, expected 1 to 10,000,000"),
        (Graph(10**30, EDGE), "n_nodes must be a whole number"),
        (Graph(2, EDGE, node_label=np.array([0, -1])), "a node label of -1, expected 0 to 9,999"),
        (Graph(2, EDGE, node_label=np.array([0, 10**9])), "a node label of 1000000000, expected 0 to 9,999"),
        (Graph(2, EDGE, node_label=np.array([[0], [1]])), "node labels must be of the shape [2], not [2, 1]"),
        (Graph(2, EDGE, node_label=np.array([0, 0.5])), "node labels must be whole numbers"),
        (Graph(2, EDGE, edge_label=np.array([0])), "edge labels must be of the shape [2], not [1]"),
        (Graph(2, EDGE, node_features=np.array([1.0, 2.0])), "node features must be of the shape [2, d], not [2]"),
        (Graph(2, EDGE, node_features=np.array([[np.nan], [1.0]])), "node features must be finite numbers"),
        (Graph(2, EDGE, node_features=np.array([[1e300], [1.0]])), "node features must be finite numbers"),
        (Graph(2, EDGE, edge_features=np.array([["a"], ["b"]])), "edge features must be finite numbers, not 'a'"),
        (
            Graph(2, EDGE[:1], node_label=np.array([0, 1])),
            "an edge without its opposite, which the training graphs have",
        ),
        (None, "no graph in this row"),
        ("CCO", "no graph but str"),
    ],
)
def test_a_graph_that_does_not_fit_is_a_row_with_a_reason(value: Any, words: str) -> None:
    good = Graph(2, EDGE, node_label=np.array([0, 1]))
    spec = made("graph").featurise([good]).spec
    fits_alone = any(word in words for word in ("where", "others", "training"))  # and not beside the others
    for known in (spec,) if fits_alone else (spec, None):
        store = made("graph").featurise([good, value, good], spec=known)
        assert list(store.status) == ["ok", "unreadable", "ok"] and words in store.reason[1]
        assert store.spec == spec and "\n" not in store.reason[1]
    values = np.empty(3, dtype=object)
    values[:] = [good, value, good]
    plain = replace(make_table(["C"] * 3), entities=(Entities("graph", "graph", values),))
    assert graphs_of(plain, plain.entities[0], made("graph")).graph_of_row.tolist() == [0, 1, 0]
    assert content_hash(plain) and repr(plain) and row_contents(plain)


def test_whole_numbers_may_be_floats_and_lists() -> None:
    one = made("graph")
    same(one.featurise([Graph(2.0, [[0.0, 1], [1, 0]], [0, True])]), one.featurise([Graph(2, EDGE, np.array([0, 1]))]))
    other = made("geometry")
    same(
        other.featurise([Geometry([8.0], [[0, 1, 2]])]),
        other.featurise([Geometry(np.array([8]), np.array([[0.0, 1, 2]]))]),
    )


@pytest.mark.parametrize(
    ("numbers", "positions", "words"),
    [
        ([6], np.zeros((2, 3)), "positions must be of the shape [1, 3], not [2, 3]"),
        ([6], [[0, 0, np.nan]], "positions must be finite numbers"),
        ([6], [["0", "0", "0"]], "positions must be finite numbers"),
        ([6], [0, 0, 0], "positions must be of the shape [1, 3], not [3]"),
        (["C"], [[0, 0, 0]], "atomic numbers must be whole numbers, not 'C'"),
        ([6.5], [[0, 0, 0]], "atomic numbers must be whole numbers"),
        ([np.nan], [[0, 0, 0]], "atomic numbers must be whole numbers"),
        ([[6]], [[0, 0, 0]], "atomic numbers must be of the shape [n], not [1, 1]"),
        ([-1], [[0, 0, 0]], "an atomic number of -1"),
        (None, [[0, 0, 0]], "atomic numbers must be whole numbers"),
        ([200], [[0, 0, 0]], "an atomic number of 200"),
        ([], np.zeros((0, 3)), "a geometry of no atoms"),
        ([6] * 2001, np.arange(6003.0).reshape(-1, 3), "a geometry of 2,001 atoms, of which 2,000 are read at most"),
        ([6] * 400, np.arange(1200.0).reshape(-1, 3) / 1e3, "more than 100 atoms within 5 angstrom of one"),
    ],
)
def test_a_geometry_that_cannot_be_is_a_row_with_a_reason(numbers: Any, positions: Any, words: str) -> None:
    value, one = Geometry(numbers, np.array(positions)), made("geometry")
    store = one.featurise([METHANE, value, WATER])
    assert list(store.status) == ["ok", "unreadable", "ok"] and words in store.reason[1]
    assert one.key(value) not in (one.key(METHANE), one.key(WATER)) and str(value)
    table = read_table({"shape": [METHANE, value, WATER]}, geometry="shape")
    assert list(table.status) == ["ok", "unreadable", "ok"] and words in table.reason[1]


@pytest.mark.parametrize(
    ("text", "words"), [("MKJL", "'J' is no amino acid"), ("", "an empty sequence"), ("MK-L", "'-'")]
)
def test_a_sequence_with_unknown_letters_is_a_row_with_a_reason(text: str, words: str) -> None:
    store = made("residues").featurise(["mk t\n", text])
    assert list(store.status) == ["ok", "unreadable"] and words in store.reason[1]
    assert store.levels["token"].offsets.tolist() == [0, 3, 3]
