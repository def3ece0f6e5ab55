"""A model of graphs without chemistry that starts from a pretrained encoder of such graphs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError
from molgraph.data.graph_values import Graph
from molgraph.data.sources.graph_files import classes_table
from molgraph.data.table import Table
from molgraph.train.card import ModelCard
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model


def cycles(n: int, labels: int) -> Table:
    """Rings of 3 to 7 nodes with so many edge labels, half of them of a class of their own."""
    made = []
    for i in range(n):
        k = 3 + i % 5
        edges = np.array([(j, (j + 1) % k) for j in range(k)], np.int32)
        label = np.arange(k) % labels
        made.append(Graph(k, np.concatenate([edges, edges[:, ::-1]]), edge_label=np.concatenate([label, label])))
    return classes_table(made, np.arange(n) % 2, Target("y", "multiclass", classes=("0", "1")))


def test_an_encoder_of_graphs_starts_on_graphs_that_have_fewer_labels(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "molgraph")
    small = {"params": {"d_hidden": 8, "depth": 2}, "epochs": 1}
    first = GraphMethod("gin", objective="infograph", **small).fit(cycles(20, labels=3).with_targets([]))
    path = Model(first, targets=(), card=ModelCard(what="an encoder")).save(tmp_path / "encoder.mgm")
    made = GraphMethod("gin", init=str(path), epochs=1).fit(cycles(20, labels=2))
    assert made.ready().inputs[0].spec == first.ready().inputs[0].spec
    found = made.predict(cycles(20, labels=3))
    assert np.isfinite(found.value).all() and any("started from encoder.mgm" in note for note in made.notes)
    more = GraphMethod("gin", init=str(path), epochs=1).fit(cycles(20, labels=4))  # those that fit are learned from
    assert made.ready().inputs[0].spec == more.ready().inputs[0].spec
    out = "left out of the training part: 16 x an edge label of 3, where 3 are known (0 to 2)"  # rings of 4 to 7
    assert [note for note in more.notes if "left out" in note] == [out] and out in caplog.messages
    assert not any("left out" in note for note in made.notes)
    bare = [replace(graph, edge_label=None) for graph in cycles(20, labels=2).entities[0].values]
    none = classes_table(bare, np.arange(20) % 2, Target("y", "multiclass", classes=("0", "1")))
    with pytest.raises(UnsupportedError, match=r"encoder\.mgm"):
        GraphMethod("gin", init=str(path), epochs=1).fit(none)
