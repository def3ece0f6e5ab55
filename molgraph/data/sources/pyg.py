"""Load a dataset through PyG's own loader as a table of graphs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.errors import DataError, StorageError, nearest
from molgraph.data.cards import Card
from molgraph.data.graph_values import Graph
from molgraph.data.sources.dataset_files import Found
from molgraph.data.sources.graph_files import classes_table, plain_table
from molgraph.data.table import Table

LOADERS = ("TUDataset", "QM7b")


def read_pyg(card: Card, found: Found) -> Table:
    """Let PyG download, unpack and read a dataset below our cache, and take its graphs over.

    PyG neither resumes a download nor checks one: the content's hash, which the first load records, does.

    Raises:
        StorageError: PyG cannot have it.
    """
    name = found.source.files["loader"]
    if name not in LOADERS:
        raise DataError(f"{card.name}: no loader of PyG's is named {name!r}", hint=nearest(name, LOADERS))
    try:
        graphs = _load(name, found.files["root"], found.source.member)
    except OSError as error:
        raise StorageError(
            f"PyG's loader cannot have {card.name}: {error}", hint="is there a network? nothing of it is kept"
        ) from None
    y = np.stack([np.asarray(data.y).reshape(-1) for data in graphs])
    if card.targets[0].kind == "multiclass":
        return classes_table(_graphs(graphs), y[:, 0], card.targets[0])
    return plain_table({"graph": _graphs(graphs)}, card.targets, y)


def _load(name: str, root: Path, member: str) -> Any:
    from torch_geometric import datasets

    if name == "TUDataset":
        return datasets.TUDataset(str(root), member, use_node_attr=True)
    return datasets.QM7b(str(root))


def _graphs(graphs: Any) -> list[Graph]:
    """PyG's one-hot labels as numbers again; its ``x`` holds attributes first, then labels."""
    n_attributes = getattr(graphs, "num_node_attributes", 0)
    out = []
    for data in graphs:
        edges = data.edge_index.numpy().T.astype(np.int32)
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        x = None if data.x is None else data.x.numpy()
        bond = None if data.edge_attr is None else data.edge_attr.numpy()[order].reshape(len(edges), -1)
        one_hot = bond is not None and bond.shape[1] > 1 and bool(((bond != 0).sum(axis=1) == 1).all())
        out.append(
            Graph(
                int(data.num_nodes),
                edges[order],
                node_label=x[:, n_attributes:].argmax(1) if x is not None and x.shape[1] > n_attributes else None,
                node_features=x[:, :n_attributes] if x is not None and n_attributes else None,
                edge_label=bond.argmax(1) if bond is not None and one_hot else None,
                edge_features=bond if not one_hot else None,
            )
        )
    return _renumbered(_renumbered(out, "node_label"), "edge_label")


def _renumbered(graphs: list[Graph], name: str) -> list[Graph]:
    """Labels as 0, 1, ... of those that there are: PyG counts the gaps between them too."""
    labels = [getattr(graph, name) for graph in graphs]
    if any(each is None for each in labels) or not labels:
        return graphs
    codes = np.unique(np.concatenate(labels), return_inverse=True)[1].reshape(-1).astype(np.int32)
    parts: list[Any] = np.split(codes, np.cumsum([len(each) for each in labels])[:-1])
    return [replace(graph, **{name: part}) for graph, part in zip(graphs, parts, strict=True)]
