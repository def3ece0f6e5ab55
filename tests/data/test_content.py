"""The hash of a table's content: what it sees, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molgraph.base.contracts import Target
from molgraph.data.content import content_hash
from molgraph.data.graph_values import Geometry, Graph
from molgraph.data.table import Entities, Table, make_table

BASE = make_table(["CCO", "CCN"], targets=(Target("y"), Target("z", "binary")), y=[[1.0, 0.0], [np.nan, 1.0]])


def changed() -> dict[str, Table]:
    y = BASE.y.copy()
    y[0, 0] = np.nextafter(1.0, 2.0)
    return {
        "value": replace(BASE, y=y),
        "missing": replace(BASE, y=np.zeros((2, 2))),
        "molecule": BASE.with_smiles(np.array(["OCC", "CCN"], dtype=object)),
        "id": replace(BASE, ids=np.array(["0", "2"], dtype=object)),
        "order": BASE.take(np.array([1, 0])),
        "target": replace(BASE, targets=(Target("x"), BASE.targets[1])),
        "kind": replace(BASE, targets=(Target("y", "bounded"), BASE.targets[1])),
        "fewer": BASE.take(np.array([0])),
        "one target": BASE.with_targets(["y"]),
    }


@pytest.mark.parametrize("what", changed())
def test_whatever_is_learned_from_changes_it(what: str) -> None:
    assert content_hash(changed()[what]) != content_hash(BASE)


def test_what_is_not_learned_from_does_not() -> None:
    other = replace(
        BASE,
        entities=(replace(BASE.entities[0], name="structure"),),
        weights=np.ones(2),
        split=np.array(["train", "test"], dtype=object),
        y=np.where(np.isnan(BASE.y), -np.nan, BASE.y + -0.0),
    )
    assert content_hash(other) == content_hash(BASE)


@given(st.lists(st.text(max_size=4), min_size=1, max_size=4), st.lists(st.text(max_size=4), min_size=1, max_size=4))
def test_two_lists_of_texts_never_run_together_alike(one: list[str], other: list[str]) -> None:
    def table(texts: list[str]) -> Table:
        values = np.empty(len(texts), dtype=object)
        values[:] = texts
        plain = np.full(len(texts), "", dtype=object)
        return Table(plain, (Entities("s", "sequence", values),), plain, plain)

    assert (content_hash(table(one)) == content_hash(table(other))) == (one == other)


def test_graphs_and_geometries_count_with_every_array() -> None:
    edges = np.array([[0, 1], [1, 0]], dtype=np.int32)
    things = [
        Graph(2, edges),
        Graph(3, edges),
        Graph(2, edges, node_label=np.array([0, 1], dtype=np.int32)),
        Graph(2, edges, edge_label=np.array([0, 1], dtype=np.int32)),
        Graph(2, edges, node_features=np.ones((2, 1), np.float32)),
        Graph(2, edges[:0]),
        Geometry(np.array([6], np.uint8), np.zeros((1, 3), np.float32)),
        Geometry(np.array([6], np.uint8), np.ones((1, 3), np.float32)),
    ]
    hashes = set()
    for thing in things:
        values = np.empty(1, dtype=object)
        values[0] = thing
        plain = np.array([""], dtype=object)
        kind = "graph" if isinstance(thing, Graph) else "geometry"
        hashes.add(content_hash(Table(plain, (Entities("g", kind, values),), plain, plain)))
    assert len(hashes) == len(things)
