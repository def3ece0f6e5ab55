"""Readers of the benchmarks' own layouts: TU zips, DGCNN texts, pairs, geometries, and what is wrong in them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from molgraph.base.contracts import Target
from molgraph.base.errors import (
    CellError,
    DataError,
    FormatError,
    MissingColumnError,
    RowIdError,
    ShapeError,
    TooLargeError,
)
from molgraph.data.featurize_graph import GraphFeaturiser
from molgraph.data.graph_values import Graph
from molgraph.data.sources import graph_files
from molgraph.data.sources.graph_files import read_dgcnn, read_tu
from molgraph.data.sources.layouts import read_coulomb, read_deepdta, read_npz
from pipelines.cards.graph_codes import graph_codes

TWO = Target("class", "multiclass", classes=("-1", "1"))
# a path of three nodes, whose edges stand twice, and one lonely node
TINY = {
    "T_A.txt": "1, 2\n2, 1\n2, 3\n3, 2\n1, 2\n2, 1\n2, 3\n3, 2\n",
    "T_graph_indicator.txt": "1\n1\n1\n2\n",
    "T_graph_labels.txt": "1\n-1\n",
    "T_node_labels.txt": "5\n7\n5\n9\n",
    "T_edge_labels.txt": "2\n2\n3\n3\n2\n2\n3\n3\n",
    "T_node_attributes.txt": " 0.5, 1\n 1.5, 2\n 2.5, 3\n 3.5, 4\n",
}


def zipped(path: Path, files: dict[str, str], folder: str = "T//") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{folder}{name}", text)
    return path


def test_a_tu_zip_is_read_whole(tmp_path: Path) -> None:
    table = read_tu(zipped(tmp_path / "t.zip", TINY), "T", TWO)
    path, lonely = table.entity("graph").values
    assert path.edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert (path.node_label.tolist(), path.edge_label.tolist()) == ([0, 1, 0], [0, 0, 1, 1])
    assert (lonely.n_nodes, len(lonely.edges), lonely.node_label.tolist()) == (1, 0, [2])
    assert path.node_features.tolist() == [[0.5, 1], [1.5, 2], [2.5, 3]]
    assert table.y[:, 0].tolist() == [1.0, 0.0]
    store = GraphFeaturiser().featurise(table.entity("graph").values)
    assert store.levels["atom"].offsets.tolist() == [0, 3, 4]
    assert store.tables["atom"][store.levels["atom"].arrays["code"]][1].tolist() == [0, 1, 0, 1.5, 2]


@pytest.mark.parametrize(
    ("file", "text", "kind", "noun"),
    [
        ("T_A.txt", "1, 9\n9, 1\n", CellError, "4 nodes"),
        ("T_A.txt", "3, 4\n4, 3\n", CellError, "graph 0"),
        ("T_A.txt", "1, x\n", FormatError, "numbers"),
        ("T_graph_indicator.txt", "1\n2\n1\n2\n", FormatError, "2 graphs"),
        ("T_graph_labels.txt", "1\n-1\n3\n", FormatError, "3 graphs"),
        ("T_graph_labels.txt", None, FormatError, "T_graph_labels.txt"),
    ],
)
def test_a_broken_tu_zip_says_where(
    tmp_path: Path, file: str, text: str | None, kind: type[DataError], noun: str
) -> None:
    files = {name: old for name, old in TINY.items() if name != file} | ({file: text} if text is not None else {})
    files.pop("T_edge_labels.txt")
    with pytest.raises(kind, match=noun):
        read_tu(zipped(tmp_path / "t.zip", files), "T", TWO)


def test_an_archive_can_neither_escape_nor_grow_nor_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = zipped(tmp_path / "evil.zip", TINY, folder="../../")
    assert len(read_tu(evil, "T", TWO)) == 2
    assert sorted(p.name for p in tmp_path.parent.parent.glob("T_*")) == []
    monkeypatch.setattr(graph_files, "MAX_MEMBER_BYTES", 20)
    with pytest.raises(TooLargeError, match="20 bytes"):
        read_tu(evil, "T", TWO)
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(FormatError, match=r"no\.zip"):
        read_tu(tmp_path / "no.zip", "T", TWO)


def test_a_dgcnn_text_gives_the_same_graphs(tmp_path: Path) -> None:
    text = "2\n3 1\n0 1 1\n0 2 0 2\n0 1 1\n1 0\n0 0\n"
    table = read_dgcnn(zipped(tmp_path / "t.zip", {"T.txt": text}, "T/"), "T", TWO)
    bare = {name: TINY[name] for name in ("T_A.txt", "T_graph_indicator.txt", "T_graph_labels.txt")}
    other = read_tu(zipped(tmp_path / "u.zip", bare), "T", TWO)
    for one, same in zip(table.entity("graph").values, other.entity("graph").values, strict=True):
        np.testing.assert_array_equal(one.edges, same.edges)
    assert table.y.tolist() == other.y.tolist()


@pytest.mark.parametrize(
    "text", ["2\n1 0\n0 0\n", "1\n2 0\n0 1 5\n0 0\n", "1\n1 0\n0 3 0\n", "x", "1\n1 0\n0 0\n7\n", ""]
)
def test_a_broken_dgcnn_text_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match=r"t\.zip, graph"):
        read_dgcnn(zipped(tmp_path / "t.zip", {"T.txt": text}, "T/"), "T", TWO)


def test_codes_of_graphs_do_not_hang_on_the_order_of_nodes(rng: np.random.Generator) -> None:
    graphs, moved = [], []
    for n in rng.integers(1, 12, size=40):
        upper = np.argwhere(np.triu(rng.random((n, n)) < 0.4, 1))
        label, place = rng.integers(0, 3, n).astype(np.int32), rng.permutation(n)
        for out, edges, labels in (
            (graphs, upper, label),
            (moved, place[upper] if len(upper) else upper, label[np.argsort(place)]),
        ):
            both = np.concatenate([edges, edges[:, ::-1]]).reshape(-1, 2)
            out.append(Graph(int(n), both[np.lexsort((both[:, 1], both[:, 0]))], node_label=labels))
    np.testing.assert_array_equal(graph_codes(graphs), graph_codes(moved))
    other = [Graph(g.n_nodes, g.edges, node_label=g.node_label + 1) for g in graphs]
    assert not set(graph_codes(graphs)) & set(graph_codes([Graph(g.n_nodes, g.edges) for g in graphs]))
    assert (graph_codes(graphs) != graph_codes(other)).all()


def test_pairs_stand_in_the_order_of_the_matrix_with_their_published_folds(tmp_path: Path) -> None:
    texts = {
        "ligands": json.dumps({"a": "CCO", "b": "CCN"}),
        "proteins": json.dumps({"p": "MK", "q": "MKF"}),
        "affinity": "1 nan\n1000 10\n",
        "test": "[2]",
        "train": "[[0], [1]]",
    }
    files = {role: tmp_path / role for role in texts}
    for role, text in texts.items():
        files[role].write_text(text)
    table = read_deepdta(files, Target("pKd"), molar=True)
    assert table.smiles.tolist() == ["CCO", "CCN", "CCN"]
    assert table.entity("sequence").values.tolist() == ["MK", "MK", "MKF"]
    np.testing.assert_allclose(table.y[:, 0], [9.0, 6.0, 8.0])
    assert table.split.tolist() == ["valid", "train", "test"]
    for role, text, kind, noun in (
        ("affinity", "1 nan 3\n4 5 6\n", ShapeError, "2 ligands"),
        ("test", "[7]", RowIdError, "pair 7"),
        ("proteins", "{", FormatError, "proteins"),
    ):
        files[role].write_text(text)
        with pytest.raises(kind, match=noun):
            read_deepdta(files, Target("pKd"), molar=True)
        files[role].write_text(texts[role])


def test_geometries_are_cut_where_each_molecule_ends_and_pickles_are_refused(tmp_path: Path) -> None:
    arrays = {
        "N": np.array([1, 2]),
        "Z": np.array([6, 8, 1]),
        "R": np.arange(9.0).reshape(3, 3),
        "E": np.array([1.0, 2.0]),
    }
    path = tmp_path / "g.npz"
    np.savez(path, **arrays)
    table = read_npz(path, (Target("e"),), {"e": "E"})
    assert [g.numbers.tolist() for g in table.entity("geometry").values] == [[6], [8, 1]]
    np.savez(path, **(arrays | {"E": np.array([{}, {}], dtype=object)}))
    with pytest.raises(MissingColumnError, match="'E'"):  # what is pickled is not read
        read_npz(path, (Target("e"),), {"e": "E"})
    np.savez(path, **(arrays | {"N": np.array([1, 3])}))
    with pytest.raises(ShapeError, match="Z and R"):
        read_npz(path, (Target("e"),), {"e": "E"})
    with pytest.raises(MissingColumnError, match="'x'"):
        read_npz(path, (Target("x"),), {})


def test_coulomb_matrices_are_the_graphs_of_all_pairs_of_atoms_that_pyg_makes(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    from torch_geometric.datasets import QM7b

    matrices = np.zeros((2, 23, 23), dtype=np.float32)
    matrices[0, :3, :3] = rng.random((3, 3)) + 1
    matrices[1, :2, :2] = 1.0
    path = tmp_path / "qm7b" / "raw" / "qm7b.mat"
    path.parent.mkdir(parents=True)
    scipy.io.savemat(path, {"X": matrices, "T": np.arange(28.0).reshape(2, 14)})
    table = read_coulomb(path, tuple(Target(f"y{i}") for i in range(14)))
    for graph, data in zip(table.entity("graph").values, QM7b(str(tmp_path / "qm7b")), strict=True):
        assert graph.n_nodes == data.num_nodes
        np.testing.assert_array_equal(graph.edges.T, data.edge_index)
        np.testing.assert_array_equal(graph.edge_features[:, 0], data.edge_attr)
    assert table.y.tolist() == np.arange(28.0).reshape(2, 14).tolist()
    path.write_bytes(b"MATLAB")
    with pytest.raises(FormatError, match=path.name):
        read_coulomb(path, table.targets)
