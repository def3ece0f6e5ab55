"""Read PyG's graphs as a table: a list of ``Data``, one of PyG's datasets, or a frame with a column of ``Data``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data, Dataset

from molgraph.base.errors import ShapeError
from molgraph.data.graph_values import Graph
from molgraph.data.table import OK, Entities, Table

_READ = ("x", "edge_index", "edge_attr", "y")


class GraphColumns(NamedTuple):
    """A source of PyG's graphs as columns that a table is read from."""

    columns: dict[str, Any]  # a column a target, and texts in place of the graphs
    name: str  # of the column of graphs
    graphs: np.ndarray  # object array [n]: a graph, or whatever stands there
    targets: list[str]  # what the graphs' own ``y`` gives to learn
    notes: tuple[str, ...]

    def table(self, table: Table) -> Table:
        """The table that was read from the columns, with the graphs in their place."""
        gone = np.flatnonzero(np.array([graph is None for graph in self.graphs], dtype=bool) & (table.status != OK))
        reason = table.reason.copy()
        reason[gone] = "no graph in this row"
        graphs = Entities(self.name, "graph", self.graphs)
        entities = tuple(graphs if e.name == self.name else e for e in table.entities)
        return replace(table, entities=entities, reason=reason, notes=(*self.notes, *table.notes))


def graph_columns(source: Any) -> GraphColumns | None:
    """The columns of a source that holds PyG's graphs; None for one that does not.

    A list or dataset has the targets of ``y`` ([1], or [1, t] for ``y0``, ``y1``, ...; NaN is a missing label): whole
    numbers that are more than two are classes, as PyG has them. A frame or mapping has its own columns of labels.

    Raises:
        DataError: ``y`` has another size in some graphs, as it has where it belongs to nodes.

    Example:
        >>> ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
        >>> found = graph_columns([Data(edge_index=ring, num_nodes=3, y=torch.tensor([1.5]))])
        >>> found.targets, found.columns["y"].tolist(), str(found.graphs[0])
        (['y'], [1.5], 'graph of 3 nodes, 3 edges')
    """
    if isinstance(source, Dataset):
        source = list(source)
    if isinstance(source, pd.DataFrame | Mapping):
        columns = {str(name): source[name] for name in source}
        name = next((name for name, values in columns.items() if _holds_graphs(values)), None)
        if name is None:
            return None
        labels, targets = {other: values for other, values in columns.items() if other != name}, list[str]()
        values = list(columns[name])
    elif _holds_graphs(source):
        name, values = "graph", list(source)
        labels, targets = _labels(values)
    else:
        return None
    known = [value for value in values if isinstance(value, Data)]
    unread = sorted({key for data in known for key, held in data if torch.is_tensor(held)} - {*_READ})
    notes = [f"of PyG's graphs x, edge_index, edge_attr and y are read, and not {', '.join(unread)}"] * bool(unread)
    graphs = np.empty(len(values), dtype=object)
    graphs[:] = [_graph(value) for value in values]
    texts = ["" if graph is None else "graph" for graph in graphs]
    return GraphColumns({name: texts, **labels}, name, graphs, targets, tuple(notes))


def _holds_graphs(values: Any) -> bool:
    """Whether the first value of a column that is no missing one is a graph of PyG's."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray | pd.Series):
        return False
    if getattr(values, "ndim", 1) != 1:
        return False
    return isinstance(next((value for value in values if value is not None), None), Data)


def _graph(value: Any) -> Any:
    """A graph as plain arrays; None where there is none, and what is no graph as it is."""
    if not isinstance(value, Data):
        return None if pd.api.types.is_scalar(value) and pd.isna(value) else value
    edges = np.zeros((0, 2), np.int32) if value.edge_index is None else _array(value.edge_index).T.astype(np.int32)
    x, edge_attr = (None if array is None else _array(array).astype(np.float32) for array in (value.x, value.edge_attr))
    if x is not None and x.ndim == 1:
        x = x[:, None]
    if edge_attr is not None and edge_attr.ndim == 1:
        edge_attr = edge_attr[:, None]
    return Graph(value.num_nodes or 0, edges, node_features=x, edge_features=edge_attr)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def _labels(values: Sequence[Any]) -> tuple[dict[str, np.ndarray], list[str]]:
    """The columns of ``y``, and the targets that they are."""
    ys = [torch.as_tensor(y).flatten() if (y := getattr(value, "y", None)) is not None else None for value in values]
    sizes = {len(y) for y in ys if y is not None}
    if not sizes:
        return {}, []
    if len(sizes) > 1:
        raise ShapeError(
            f"y has {min(sizes)} to {max(sizes)} values in these graphs",
            hint="one of [1] or [1, t] belongs to a whole graph; leave y of nodes or edges out (del data.y)",
        )
    n = sizes.pop()
    rows = np.stack([np.full(n, np.nan) if y is None else _array(y.to(torch.float64)) for y in ys])
    whole = not any(y is not None and y.is_floating_point() for y in ys)
    columns = {f"y{j}" if n > 1 else "y": column for j, column in enumerate(rows.T)}
    many = {name: whole and len(np.unique(column[~np.isnan(column)])) > 2 for name, column in columns.items()}
    return columns, [f"{name}:multiclass" if classes else name for name, classes in many.items()]
