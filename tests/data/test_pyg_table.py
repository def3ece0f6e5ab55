"""PyG's graphs are a table: lists of ``Data``, datasets, and frames with a column of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

import molgraph
from molgraph.base.errors import ShapeError
from molgraph.data.read import read_table

nan = float("nan")


def ring(n: int, **more: torch.Tensor) -> Data:
    ends = torch.arange(n)
    edges = torch.cat([torch.stack([ends, (ends + 1) % n]), torch.stack([(ends + 1) % n, ends])], 1)
    return Data(x=torch.ones(n, 2) * n, edge_index=edges, edge_attr=torch.ones(2 * n), **more)


class Rings(InMemoryDataset):
    def __init__(self, graphs: list[Data]) -> None:
        super().__init__()
        self.data, self.slices = self.collate(graphs)


def test_labels_of_whole_graphs_are_targets() -> None:
    graphs = [ring(n, y=torch.tensor([[n + 0.5, nan if n == 4 else n % 2]])) for n in range(3, 9)]
    for source in (graphs, Rings(graphs), pd.Series(graphs)):
        table = read_table(source, need_targets=True)
        np.testing.assert_array_equal(table.y[:, 0], np.arange(3, 9) + 0.5)
        assert [t.kind for t in table.targets] == ["regression", "binary"] and np.isnan(table.y[1, 1])
        graph = table.entity("graph").values[2]
        assert graph.n_nodes == 5 and graph.node_features.shape == (5, 2) and graph.edge_features.shape == (10, 1)
        np.testing.assert_array_equal(graph.edges, graphs[2].edge_index.T)
    classes = [ring(n, y=torch.tensor(n % 3)) for n in range(3, 9)]
    assert read_table(classes, need_targets=True).targets[0].classes == ("0", "1", "2")
    assert read_table(classes, targets=["y:regression"]).targets[0].kind == "regression"
    with pytest.raises(ShapeError, match="3 to 5"):
        read_table([ring(n, y=torch.ones(n)) for n in (3, 5)], need_targets=True)
    assert "not pos" in read_table([ring(3, pos=torch.ones(3, 3))]).notes[0]


def test_train_predict_and_evaluate(tmp_path: Path) -> None:
    graphs = [ring(3 + i % 6, y=torch.tensor([float(i % 6)])) for i in range(40)]
    model = molgraph.train(graphs, model="gin", params={"d_hidden": 8}, epochs=1).model
    expected = model.predict(graphs).value
    bare = [ring(3 + i % 6) for i in range(40)]
    np.testing.assert_array_equal(model.predict(bare).value, expected)
    np.testing.assert_array_equal(model.predict(pd.DataFrame({"mol": bare})).value, expected)
    assert model.evaluate(graphs).n.eq(40).all()
    made = molgraph.load(model.save(tmp_path / "m.mgm")).predict([bare[0], None, Data(num_nodes=0), "CCO"])
    assert made.status.tolist() == ["ok", "missing", "unreadable", "unreadable"]
    frame = pd.DataFrame({"mol": bare, "t": np.arange(40.0)})
    assert (
        molgraph.train(frame, targets="t", model="gin", params={"d_hidden": 8}, epochs=1).model.targets[0].name == "t"
    )
