"""What PyG's own loaders hold gives the same tables as our readers; a server on this machine stands for theirs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from molgraph.base.errors import DataError, StorageError
from molgraph.data.card_parts import Source
from molgraph.data.cards import Card, card
from molgraph.data.content import content_hash
from molgraph.data.sources.dataset_files import Found, find
from molgraph.data.sources.graph_files import read_tu
from molgraph.data.sources.pyg import read_pyg
from tests.data.test_graph_files import TINY, zipped
from tests.data.web import Web, serving


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web()) as one:
        yield one


def source_of(one: Card) -> Source:
    return next(s for s in one.source if s.place == "pyg")


def through_pyg(one: Card, root: Path, member: str = "") -> str:
    source = source_of(one).model_copy(update={"member": member or source_of(one).member})
    return content_hash(read_pyg(one, Found(source, {"root": root})))


def test_a_tu_set_has_the_same_content_through_pyg(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_geometric.datasets import TUDataset

    monkeypatch.setattr(TUDataset, "url", web.address)
    more = {"A": "4, 5\n5, 4\n", "graph_indicator": "2\n", "node_labels": "5\n", "edge_labels": "2\n2\n"}
    more |= {"node_attributes": " 4.5, 5\n"}  # PyG loses a last graph that has no edges
    files = {name: text + more.get(name.removeprefix("T_").removesuffix(".txt"), "") for name, text in TINY.items()}
    ours = zipped(tmp_path / "t.zip", files, "T/")
    web.files = {"T.zip": ours.read_bytes()}
    one = card("mutag")
    assert through_pyg(one, tmp_path / "pyg", "T") == content_hash(read_tu(ours, "T", one.targets[0]))


@pytest.mark.data
@pytest.mark.parametrize("name", ["mutag", "ptc_mr"])
def test_a_published_set_has_its_cards_content_through_pyg(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from torch_geometric.datasets import TUDataset

    monkeypatch.setattr(TUDataset, "url", web.address)
    one = card(name)
    web.files = {f"{source_of(one).member}.zip": find(one).files["zip"].read_bytes()}
    assert through_pyg(one, tmp_path / "pyg") == one.hash


def test_qm7b_comes_as_a_graph_of_all_pairs_of_atoms(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    from torch_geometric.datasets import QM7b

    matrices = np.zeros((2, 23, 23), dtype=np.float32)
    matrices[0, :3, :3] = rng.random((3, 3)) + 1
    matrices[1, :2, :2] = 1.0
    file = io.BytesIO()
    scipy.io.savemat(file, {"X": matrices, "T": np.arange(28.0).reshape(2, 14)})
    web.files = {"qm7b.mat": file.getvalue()}
    monkeypatch.setattr(QM7b, "url", web.url("qm7b.mat"))
    one = card("qm7b")
    table = read_pyg(one, Found(source_of(one), {"root": tmp_path / "pyg"}))
    first, second = table.entity("graph").values
    assert (first.n_nodes, len(first.edges), first.edge_features.shape) == (3, 9, (9, 1))
    np.testing.assert_allclose(first.edge_features[:, 0], matrices[0, :3, :3].ravel())
    assert second.n_nodes == 2
    assert table.y.tolist() == np.arange(28.0).reshape(2, 14).tolist()


def test_what_pyg_cannot_have_is_said(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_geometric.datasets import TUDataset

    monkeypatch.setattr(TUDataset, "url", web.address)
    one = card("mutag")
    with pytest.raises(StorageError, match="PyG's loader cannot have mutag"):
        read_pyg(one, Found(source_of(one), {"root": tmp_path}))
    odd = source_of(one).model_copy(update={"files": {"loader": "Planetoid"}})
    with pytest.raises(DataError, match="'Planetoid'"):
        read_pyg(one, Found(odd, {"root": tmp_path}))
