"""Graphs and geometries as plain arrays, what a table of them holds; a graph store of them out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from molgraph.base.errors import DataError
from molgraph.data.table import Table

if TYPE_CHECKING:
    from molgraph.data.graphstore import GraphStore


@dataclass(frozen=True)
class Graph:
    """One graph without SMILES.

    Args:
        n_nodes: how many nodes.
        edges: int32 [e, 2]: source and target, each edge in both directions, sorted, each once.
        node_label: int32 [n] in 0, 1, ..., or None.
        node_features: float32 [n, d], or None.
        edge_label: int32 [e], or None.
        edge_features: float32 [e, d], or None.
    """

    n_nodes: int
    edges: np.ndarray
    node_label: np.ndarray | None = None
    node_features: np.ndarray | None = None
    edge_label: np.ndarray | None = None
    edge_features: np.ndarray | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the graph is, by name; what it lacks left out."""
        return {"n_nodes": np.array([self.n_nodes])} | _arrays(self, "n_nodes")

    def __str__(self) -> str:
        return f"graph of {self.n_nodes} nodes, {len(self.edges) // 2} edges"


@dataclass(frozen=True)
class Geometry:
    """Atoms in space.

    Args:
        numbers: uint8 [n], atomic numbers.
        positions: float32 [n, 3], angstrom.
    """

    numbers: np.ndarray
    positions: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """Both arrays by name."""
        return _arrays(self)

    def __str__(self) -> str:
        return f"geometry of {len(self.numbers)} atoms"


def _arrays(value: Graph | Geometry, *but: str) -> dict[str, np.ndarray]:
    named = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in but}
    return {name: array for name, array in named.items() if array is not None}


def graph_store(table: Table) -> GraphStore:
    """The store of a table's graphs: node labels one-hot, then the node features; edges likewise.

    Args:
        table: with a graph column.

    Returns:
        One graph for each row, as models take them.

    Example:
        >>> from molgraph.data.table import Entities, Table
        >>> graphs = np.empty(1, dtype=object)
        >>> graphs[0] = Graph(2, np.array([[0, 1], [1, 0]]), node_label=np.array([0, 2]))
        >>> none = np.full(1, "", dtype=object)
        >>> table = Table(np.array(["0"]), (Entities("graph", "graph", graphs),), np.array(["ok"]), none)
        >>> graph_store(table).tables["atom"].tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    import torch
    from torch_geometric.data import Data

    from molgraph.data.pyg import from_pyg

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
