"""A table of graphs without SMILES in; the graph store that models take out."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from molgraph.base.errors import DataError
from molgraph.data.graph_store import GraphStore
from molgraph.data.graphs import Graph
from molgraph.data.pyg import from_pyg
from molgraph.data.table import Table


def graph_store(table: Table) -> GraphStore:
    """The store of a table's graphs: node labels one-hot, then the node features; edges likewise.

    Args:
        table: with a graph column.

    Returns:
        One graph for each row, as models take them.

    Example:
        >>> from molgraph.data.table import Entities
        >>> graphs = np.empty(1, dtype=object)
        >>> graphs[0] = Graph(2, np.array([[0, 1], [1, 0]]), node_label=np.array([0, 2]))
        >>> none = np.full(1, "", dtype=object)
        >>> table = Table(np.array(["0"]), (Entities("graph", "graph", graphs),), np.array(["ok"]), none)
        >>> graph_store(table).tables["atom"].tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    values = table.entity("graph").values
    odd = [i for i, value in enumerate(values) if not isinstance(value, Graph)]
    if odd:
        raise DataError(f"row {odd[0] + 1} holds no graph but {type(values[odd[0]]).__name__}")
    n_node = 1 + max((int(g.node_label.max(initial=-1)) for g in values if g.node_label is not None), default=-1)
    n_edge = 1 + max((int(g.edge_label.max(initial=-1)) for g in values if g.edge_label is not None), default=-1)
    made = []
    for graph in values:
        parts = [np.eye(n_node, dtype=np.float32)[graph.node_label]] if graph.node_label is not None else []
        parts += [graph.node_features] if graph.node_features is not None else []
        named = {"x": torch.from_numpy(np.concatenate(parts, axis=1))} if parts else {}
        ends = [np.eye(n_edge, dtype=np.float32)[graph.edge_label]] if graph.edge_label is not None else []
        ends += [graph.edge_features] if graph.edge_features is not None else []
        if ends:
            named["edge_attr"] = torch.from_numpy(np.concatenate(ends, axis=1))
        edges = torch.from_numpy(graph.edges.astype(np.int64).T.copy())
        made.append(Data(edge_index=edges, num_nodes=graph.n_nodes, **named))
    return from_pyg(made)
