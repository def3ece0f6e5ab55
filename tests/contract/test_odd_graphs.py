"""Trials of every registered encoder with odd and huge graphs; of norms, readouts and poolings with odd ones too."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError, UsageError
from molgraph.base.registry import get, names
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graph_store import GraphStore
from molgraph.data.graph_values import Graph
from molgraph.data.sources.graph_files import classes_table
from molgraph.data.table import Entities, Table, make_table
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.encoder import Encoder
from molgraph.train.inputs import featuriser_of
from molgraph.train.method import GraphMethod
from tests.contract.members import two_of
from tests.contract.test_encoders import ENCODERS, nasty_of

PAIRS = ("dag", "graphgps", "pyg_pool", "structpool", "weave")  # those that may refuse a large graph
OF_GRAPHS = [name for name in ENCODERS if "graph" in get("encoder", name).reads]
OPTIONS: dict[str, list[dict[str, Any]]] = {  # beside norms and readouts, the choices that change the mechanism
    "mpnn": [{"message": "pair"}, {"d_master": 8}],
    "pyg_pool": [{"pool": pool, "levels": 2} for pool in ("diffpool", "mincut", "sagpool", "topk")],
    "structpool": [
        {"levels": 2, "assign": "hard", "compat": "fixed"},
        {"l_hop": 2},
        {"released": True, "k": 10},
    ],
}


def choices(name: str, which: str) -> list[dict[str, Any]]:
    """Options of an encoder: the default (molecules: in test_encoders), those above, and norms and readouts.

    All of these with one atom encoder and those that pool, and two of each with others that take them.
    """
    make = get("encoder", name)
    taken, whole = inspect.signature(make.__init__).parameters, name in ("gin", *two_of("PoolingNet"))
    tried = which not in ("bare", "molecules") or (issubclass(make, AtomEncoder) and not whole)
    tried |= which == "molecules" and name != "gin"
    parts = [
        {part: each}
        for part, base in (("norm", "Norm"), ("readout", "Readout"))
        for each in (names(part) if whole else two_of(base))
        if part in taken and not tried
    ]
    return [{}] * (which != "molecules") + OPTIONS.get(name, []) + parts


def graph(n: int, *edges: tuple[int, int], **arrays: Any) -> Graph:
    both = sorted({*edges, *((b, a) for a, b in edges)})
    return Graph(n, np.array(both, np.int32).reshape(-1, 2), **arrays)


BARE = [
    graph(1),
    graph(2),
    graph(5),
    graph(5, (0, 1), (1, 2)),  # two isolated nodes
    graph(3, (0, 1), (0, 2), (1, 2)),
    graph(70, *((0, i) for i in range(1, 70))),  # more neighbours than a degree has columns
    graph(6, *((i, j) for i in range(6) for j in range(i))),
]
RICH = [
    graph(n, *edges, node_label=np.arange(n) % 2, edge_features=np.zeros((2 * len(edges), 2), np.float32))
    for n, *edges in [(1,), (4, (0, 1)), (3, (0, 1), (1, 2))]
]
GRAPHS = {"bare": BARE, "rich": RICH, "without edges": [graph(1), graph(3)]}


@cache
def odd(name: str, which: str) -> GraphStore:
    if which == "molecules":
        return nasty_of(name)
    return featuriser_of(name, "graph").featurise([*GRAPHS[which], None])


def build(name: str, store: GraphStore, **params: Any) -> Encoder:
    torch.manual_seed(0)
    make = get("encoder", name)
    return make(store.spec, **{**({} if "released" in params else make.small), **params})


def train(encoder: Encoder, batch: GraphBatch, words: object) -> None:
    encoder.train().zero_grad()
    encoder.prepare(batch)
    encoded = encoder(batch)
    assert encoded.graphs.shape == (batch.n_graphs, encoder.d_out), words
    assert encoded.graphs.isfinite().all(), words
    loss = sum(encoded.penalties.values(), encoded.graphs.sin().sum())
    if loss.requires_grad:
        loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters()), words
    with torch.no_grad():
        assert encoder.eval()(batch).graphs.isfinite().all(), words


@pytest.mark.parametrize(
    ("which", "name"), [(which, e) for which in (*GRAPHS, "molecules") for e in OF_GRAPHS if choices(e, which)]
)
def test_odd_graphs_train_together_alone_and_not_at_all(which: str, name: str) -> None:
    store = odd(name, which)
    for i, params in enumerate(choices(name, which)):
        encoder = build(name, store, **params)
        alone = range(len(store)) if which == "bare" and not i else (0,)
        for rows in ([*range(len(store))], *([each] for each in alone), []):
            train(encoder, collate(store, np.array(rows, np.int64)), (params, rows))


@pytest.mark.parametrize("name", OF_GRAPHS)
@pytest.mark.parametrize("shape", ["path", "star"])
def test_a_graph_of_five_thousand_nodes_is_encoded_or_refused(name: str, shape: str) -> None:
    n = 5000
    edges = [(i - 1 if shape == "path" else 0, i) for i in range(1, n)]
    labels = np.random.default_rng(0).integers(0, 3, n)
    store = featuriser_of(name, "graph").featurise([graph(n, *edges, node_label=labels)])
    batch = collate(store, np.arange(1))
    for params in ({}, *OPTIONS.get(name, [])):
        encoder = build(name, store, **params)
        words = refusal(encoder, batch)
        dense = name == "graphgps" or (name == "pyg_pool" and params.get("pool", "diffpool") in ("diffpool", "mincut"))
        near = shape == "star" and (name in ("dag", "weave") or "l_hop" in params)  # all pairs are two edges apart
        assert bool(words) == (dense or near), params
        if words:
            assert "a graph of 5,000 nodes is too large for" in words, params
            assert "max_matrix_gb is 0." in words and "set max_matrix_gb " in words


@pytest.mark.parametrize(("name", "params"), [("dag", {}), ("weave", {}), ("structpool", {"l_hop": 2})])
def test_the_limit_that_a_refusal_calls_enough_is_enough(name: str, params: dict[str, Any]) -> None:
    store = featuriser_of(name, "graph").featurise([graph(400, *((0, i) for i in range(1, 400)), node_label=[0] * 400)])
    words = refusal(build(name, store, **params, max_matrix_gb=0.001), collate(store, np.arange(1)))
    enough = re.search(r"set max_matrix_gb above [\d.]+ \(([\d.]+) is enough\)", words)
    assert enough, words
    assert not refusal(build(name, store, **params, max_matrix_gb=float(enough[1])), collate(store, np.arange(1)))


def refusal(encoder: Encoder, batch: GraphBatch) -> str:
    """The words in which an encoder refuses a batch; none where it encodes it into finite states."""
    try:
        encoder.prepare(batch)
        assert encoder(batch).graphs.isfinite().all()
    except UsageError as error:
        return str(error)
    return ""


def paths(*sizes: int) -> Table:
    graphs = [graph(n, *((i, i + 1) for i in range(n - 1))) for n in sizes]
    return classes_table(graphs, np.arange(len(graphs)) % 2, Target("y", "multiclass", classes=("0", "1")))


def test_training_refuses_a_large_graph_at_the_start_and_names_its_row() -> None:
    small = {"d_hidden": 8, "heads": 2, "max_matrix_gb": 0.001}
    with pytest.raises(UnsupportedError, match=r"300 nodes .* graphgps") as found:
        molgraph.train(paths(*range(3, 40), 300), model="graphgps", params=small, split="random", epochs=10**6)
    assert "; 1 row with such graphs: id 37" in found.value.message and found.value.message.count(". ") == 0
    assert "set max_matrix_gb to 0.002 or more" in found.value.hint and "leave those rows out" in found.value.hint


def test_a_large_graph_of_the_validation_part_or_of_a_second_column_is_named_too() -> None:
    small = {"d_hidden": 8, "heads": 2, "max_matrix_gb": 0.001}
    with pytest.raises(UnsupportedError, match=r"1 row .*: id 2"):
        GraphMethod("graphgps", small, epochs=1).fit(paths(*range(3, 20)), paths(3, 4, 300))
    values = np.array(["CCO", "CCC", "CO", "C" * 300], dtype=object)
    columns = tuple(Entities(name, "molecule", each) for name, each in (("a", values[:3]), ("b", values[1:])))
    table = replace(make_table(["C"] * 3, targets=(Target("y"),), y=np.arange(3.0)[:, None]), entities=columns)
    params = {f"graphgps.{key}": value for key, value in small.items()}
    with pytest.raises(UnsupportedError, match=r"1 row .*: id 2"):
        GraphMethod("gin+graphgps", params, epochs=1).fit(table)


@pytest.mark.parametrize(
    ("name", "params"),
    [("graphgps", {"heads": 2}), ("dag", {}), ("structpool", {"l_hop": 30}), ("pyg_pool", {}), ("weave", {})],
)
def test_prediction_marks_a_large_graph_and_predicts_the_others(name: str, params: dict[str, Any]) -> None:
    assert name in PAIRS
    method = GraphMethod(name, {**get("encoder", name).small, **params, "max_matrix_gb": 0.001}, epochs=1)
    method.fit(paths(*range(3, 20)))
    table, alone = paths(5, 9000, 7), paths(5, 7)
    made = method.predict(table)
    assert made.status.tolist() == ["ok", "failed", "ok"] and np.isnan(made.value[1]).all()
    assert "a graph of 9,000 nodes is too large for" in made.reason[1]
    np.testing.assert_allclose(made.value[[0, 2]], method.predict(alone).value, atol=1e-6)
