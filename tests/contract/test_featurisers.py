"""Trials that every registered featuriser meets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from molgraph.base.registry import entry, names
from molgraph.data.batch import collate
from molgraph.data.featuriser import DEFAULT_FEATURISERS, Featuriser
from molgraph.data.graph_io import load_store, save_store
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.graph_values import Geometry, Graph

NASTY = [line.split("\t")[0] for line in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
ODD = [None, 5, "", "\ud800", b"CCO", "\0", object(), float("nan"), [], "x" * 200_001]


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
        values = [
            one.examples[0],
            *(ODD if one.kind in ("graph", "geometry") else [v for v in ODD if isinstance(v, str)]),
        ]
        values += [] if one.kind == "molecule" else NASTY
        store = one.featurise(values, spec=spec)
        assert store.status[0] == "ok" and len(store) == len(values)
        for i, status in enumerate(store.status):
            assert status in ("ok", "unreadable") and (status == "ok") == (store.reason[i] == "")
            assert "\n" not in store.reason[i]
            sizes = [level.offsets[i + 1] - level.offsets[i] for level in store.levels.values()]
            assert max(sizes) > 0 if status == "ok" else max(sizes) == 0
        for level in store.levels.values():
            assert all(np.isfinite(a).all() for a in level.arrays.values() if a.dtype.kind == "f")

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
        (Graph(2, np.array([[0, 1], [1, 0]]), node_label=np.array([0])), "1 node labels or features for 2 nodes"),
        (Graph(2, np.array([[0, 1], [1, 0]]), node_label=np.array([0, 9])), "a node label of 9, where 2 are known"),
        (Graph(2, np.array([[0, 1], [1, 0]])), "its nodes lack labels or features that the others have"),
    ],
)
def test_a_graph_that_does_not_fit_is_a_row_with_a_reason(value: Graph, words: str) -> None:
    good = Graph(2, np.array([[0, 1], [1, 0]]), node_label=np.array([0, 1]))
    spec = made("graph").featurise([good]).spec
    store = made("graph").featurise([good, value, good], spec=spec)
    assert list(store.status) == ["ok", "unreadable", "ok"] and words in store.reason[1]


@pytest.mark.parametrize(
    ("numbers", "positions", "words"),
    [
        ([6], np.zeros((2, 3)), "positions of the shape [2, 3] for 1 atoms"),
        ([6], [[0, 0, np.nan]], "a position that is not finite"),
        ([200], [[0, 0, 0]], "an atomic number of 200"),
        ([], np.zeros((0, 3)), "a geometry of no atoms"),
    ],
)
def test_a_geometry_that_cannot_be_is_a_row_with_a_reason(numbers: list, positions: object, words: str) -> None:
    value = Geometry(np.array(numbers, np.uint8), np.array(positions, np.float32))
    store = made("geometry").featurise([value])
    assert store.status[0] == "unreadable" and words in store.reason[0]


@pytest.mark.parametrize(
    ("text", "words"), [("MKJL", "'J' is no amino acid"), ("", "an empty sequence"), ("MK-L", "'-'")]
)
def test_a_sequence_with_unknown_letters_is_a_row_with_a_reason(text: str, words: str) -> None:
    store = made("residues").featurise(["mk t\n", text])
    assert list(store.status) == ["ok", "unreadable"] and words in store.reason[1]
    assert store.levels["token"].offsets.tolist() == [0, 3, 3]
