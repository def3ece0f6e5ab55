"""PyG: there and back, for molecules and for graphs that are none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from molgraph.base.errors import CellError, DataError, ShapeError, UnsupportedError
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.graph_cache import load_store, save_store
from molgraph.data.pyg import from_pyg, to_pyg
from molgraph.models.dmpnn import DMPNN
from molgraph.models.pyg_conv import PyGConv
from molgraph.nn.encoder import check_input

SMILES = ["CCO", "c1ccccc1", "C", "[Na+].[Cl-]", "C[C@H](N)C(=O)O"]


def by_edge(data: Data) -> list[tuple]:
    """Edges with their features in an order of their own."""
    attributes = [[]] * data.num_edges if data.edge_attr is None else data.edge_attr.tolist()
    return sorted((s, t, *a) for (s, t), a in zip(data.edge_index.T.tolist(), attributes, strict=True))


@st.composite
def graphs(draw: st.DrawFn) -> list[Data]:
    """Undirected graphs with parallel edges and loops; features of few or of many values; some without edges."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    few = draw(st.booleans())
    out = []
    for _ in range(draw(st.integers(1, 4))):
        n, m = draw(st.integers(1, 6)), draw(st.integers(0, 8))
        half = rng.integers(0, n, (m, 2))
        loops = half[:, 0] == half[:, 1]
        attributes = rng.integers(0, 2, (m, 3)) if few else rng.normal(size=(m, 3))
        edges = np.concatenate([half, half[~loops][:, ::-1]])
        features = np.concatenate([attributes, attributes[~loops]])
        order = rng.permutation(len(edges))
        x = rng.integers(0, 2, (n, 4)) if few else rng.normal(size=(n, 4))
        out.append(
            Data(
                x=torch.tensor(x, dtype=torch.float32),
                edge_index=torch.tensor(edges[order].T.reshape(2, -1), dtype=torch.int64),
                edge_attr=torch.tensor(features[order].reshape(-1, 3), dtype=torch.float32),
                pos=torch.tensor(rng.normal(size=(n, 3))),
                y=torch.tensor([float(n)]),
            )
        )
    return out


@settings(max_examples=60)
@given(graphs())
def test_there_and_back(given_graphs: list[Data]) -> None:
    store = from_pyg(given_graphs)
    for i, data in enumerate(given_graphs):
        back = to_pyg(store, i)
        assert torch.equal(back.x, data.x) and torch.equal(back.pos, data.pos) and torch.equal(back.y, data.y)
        assert by_edge(back) == by_edge(data)
        assert (back.edge_index[1].diff() >= 0).all()
        assert torch.equal(back.edge_index[:, back.rev_edge_index], back.edge_index.flip(0))
        assert torch.equal(back.edge_attr[back.rev_edge_index], back.edge_attr)
        assert torch.equal(back.rev_edge_index[back.rev_edge_index], torch.arange(data.num_edges))


@settings(max_examples=30)
@given(graphs())
def test_a_batch_is_pygs_own(given_graphs: list[Data]) -> None:
    store = from_pyg(given_graphs)
    store_without_y = from_pyg([data.clone().update({"y": torch.zeros(1)}) for data in given_graphs])
    ours = to_pyg(collate(store_without_y, np.arange(len(store))))
    singles = [to_pyg(store, i) for i in range(len(store))]
    theirs = Batch.from_data_list([Data(**{k: v for k, v in d.to_dict().items() if k != "y"}) for d in singles])
    for key in ("x", "edge_index", "edge_attr", "pos", "batch", "ptr"):
        assert torch.equal(ours[key], theirs[key]), key
    assert ours.num_graphs == len(store)
    for mine, single in zip(ours.to_data_list(), singles, strict=True):
        for key in ("x", "edge_index", "edge_attr", "rev_edge_index", "pos"):
            assert torch.equal(mine[key], single[key]), key


def test_molecules_survive() -> None:
    store = featurize(SMILES)
    again = from_pyg([to_pyg(store, i) for i in range(len(store))] * 3)
    a, b = collate(store, np.arange(5)), collate(again, np.arange(5))
    for level in ("atom", "bond"):
        assert torch.equal(a.features(level), b.features(level))
        assert torch.equal(a[level].offsets, b[level].offsets)
    for key in ("source", "target", "reverse"):
        assert torch.equal(getattr(a, key), getattr(b, key)), key
    assert len(again.tables["atom"]) == len(store.tables["atom"])


def test_few_values_are_coded_and_many_are_kept() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    few = from_pyg([Data(x=torch.ones(2, 3), edge_index=edges) for _ in range(10)])
    assert few.tables["atom"].shape == (1, 3)
    x = torch.arange(40.0).reshape(20, 2)
    many = from_pyg([Data(x=x[2 * i : 2 * i + 2], edge_index=edges) for i in range(10)])
    np.testing.assert_array_equal(many.tables["atom"], x.numpy())


def test_without_features_every_row_has_a_one(tmp_path) -> None:  # type: ignore[no-untyped-def]
    store = from_pyg([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3), Data(num_nodes=0)])
    assert store.tables["atom"].tolist() == [[1.0]] and list(store.status) == ["ok", "unreadable"]
    save_store(store, tmp_path / "s")
    loaded = load_store(tmp_path / "s")
    assert list(loaded.reason) == ["", "a graph of no nodes"]
    assert to_pyg(loaded, 0).num_nodes == 3


def test_edges_of_one_direction_are_kept_and_models_that_need_both_refuse_them() -> None:
    path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    store = from_pyg([path, path])
    batch = collate(store, np.arange(2))
    assert batch.source.tolist() == [0, 1, 3, 4] and batch.target.tolist() == [1, 2, 4, 5]
    assert "rev_edge_index" not in to_pyg(batch)
    with pytest.raises(UnsupportedError, match=r"mine .*bond\.reverse"):
        check_input(DMPNN, store.spec, "mine")
    check_input(PyGConv, store.spec, "mine")


@pytest.mark.parametrize(
    ("bad", "kind", "noun"),
    [
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 2], [2, 0]])), CellError, "graph 1"),
        (Data(x=torch.ones(2, 2), edge_index=torch.zeros(2, 0, dtype=torch.int64)), ShapeError, "graph 1: x .*2"),
        (Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2), ShapeError, "graph 1: x .*0"),
    ],
)
def test_what_can_be_no_graph_is_named(bad: Data, kind: type[DataError], noun: str) -> None:
    good = Data(x=torch.ones(1, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    with pytest.raises(kind, match=noun):
        from_pyg([good, bad])


def test_no_graphs() -> None:
    assert len(from_pyg([])) == 0
