"""Convert graphs to and from PyG's ``Data`` and ``Batch``, molecules or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from molgraph.base.errors import CellError, ShapeError
from molgraph.base.packed import offsets_of
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graph_store import BOND_INDEX, GraphStore, Level
from molgraph.data.packing import smallest
from molgraph.data.table import OK, UNREADABLE

if TYPE_CHECKING:
    from torch_geometric.data import Batch, Data

_CORE = {"x", "edge_index", "edge_attr", "batch", "ptr", "num_nodes"}


def to_pyg(graphs: GraphBatch | GraphStore, index: int | None = None) -> Data | Batch:
    """A batch as PyG's ``Batch``, or one graph of a store as PyG's ``Data``.

    Args:
        graphs: a batch, or a store.
        index: which graph, for a store.

    Returns:
        ``x`` float32 [n, d_atom], ``edge_index`` int64 [2, e] sorted by target, ``edge_attr`` float32 [e, d_bond],
        ``rev_edge_index`` int64 [e], and further arrays of the levels under their own names.

    Example:
        >>> from molgraph.data.featurize import featurize
        >>> to_pyg(featurize(["CCO"]), 0)
        Data(x=[3, 72], edge_index=[2, 4], edge_attr=[4, 14], rev_edge_index=[4])
    """
    from torch_geometric.data import Batch, Data  # imported late: it takes seconds

    if isinstance(graphs, GraphStore):
        if index is None:
            raise TypeError("say which graph of the store: to_pyg(store, index)")
        data = Data(**_fields(collate(graphs, np.array([index]))))
        for name, values in graphs.extra.items():
            data[name] = torch.from_numpy(np.array(values[index]))
        return data
    fields = _fields(graphs)
    out = Batch(_base_cls=Data, batch=graphs.graph_of("atom"), ptr=graphs["atom"].offsets, **fields)
    # with these PyG can take the batch apart again (to_data_list, batch[i]) without having put it together
    zeros = torch.zeros(graphs.n_graphs, dtype=torch.int64)
    atoms, bonds = graphs["atom"].offsets, graphs["bond"].offsets
    starts = {"edge_index": atoms[:-1], "rev_edge_index": bonds[:-1]}
    of_bonds = {"edge_index", "edge_attr", "rev_edge_index", *graphs["bond"].arrays}
    out._num_graphs = graphs.n_graphs
    out._slice_dict = {name: bonds if name in of_bonds else atoms for name in fields}
    out._inc_dict = {name: starts.get(name, zeros) for name in fields}
    return out


def _fields(batch: GraphBatch) -> dict[str, torch.Tensor]:
    fields = {
        "x": batch.features("atom"),
        "edge_index": torch.stack([batch.source, batch.target]),
        "edge_attr": batch.features("bond"),
    }
    reserved = {"code", "source", "target", "reverse"}
    further = {name: values for level in ("atom", "bond") for name, values in batch[level].arrays.items()}
    both_ways = {"rev_edge_index": batch.reverse} if "reverse" in further else {}
    return fields | both_ways | {name: values for name, values in further.items() if name not in reserved}


def from_pyg(graphs: Sequence[Data]) -> GraphStore:
    """A store of PyG graphs.

    Features become float32 codes into a table of distinct rows; where most rows are distinct, the table
    holds the rows themselves. Further attributes of nodes and edges become arrays of their level, those of
    whole graphs (``y``) go to ``extra``. Without ``x`` every node has the one feature 1, without
    ``edge_attr`` every edge likewise.

    Args:
        graphs: graphs with the same attributes each. Where an edge has no opposite, the store has no ``reverse``,
            and models that need it refuse such graphs.

    Raises:
        DataError: attributes that differ between graphs, or an edge that points outside its graph.

    Example:
        >>> from torch_geometric.data import Data
        >>> triangle = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), num_nodes=3)
        >>> store = from_pyg([triangle])
        >>> store.levels["bond"].arrays["source"].tolist(), store.levels["bond"].arrays["target"].tolist()
        ([1, 2, 0, 2, 1, 0], [0, 0, 1, 1, 2, 2])
    """
    n_nodes = np.array([data.num_nodes or 0 for data in graphs], dtype=np.int64)
    edges = [np.zeros((0, 2), np.int64) if d.edge_index is None else d.edge_index.cpu().numpy().T for d in graphs]
    n_edges = np.array([len(pairs) for pairs in edges], dtype=np.int64)
    further = _further(graphs, n_nodes, n_edges)
    nodes, bonds = _features(graphs, "x", n_nodes), _features(graphs, "edge_attr", n_edges)
    return store_of_edges(n_nodes, edges, nodes, bonds, featuriser="pyg", further=further)


def store_of_edges(
    n_nodes: np.ndarray, edges: Sequence[np.ndarray], nodes: np.ndarray, bonds: np.ndarray, *, featuriser: str,
    reason: np.ndarray | None = None, settings: Mapping[str, int] | None = None,
    further: Mapping[str, Mapping[str, np.ndarray]] | None = None,
) -> GraphStore:  # fmt: skip
    """A store of graphs from the edges of each (int [e, 2]) and the features of all nodes and all edges.

    ``further`` holds arrays of the levels ``atom`` and ``bond`` and of whole ``graph``s; ``reason``, why a graph could
    not be read, is by default that it has no nodes.
    """
    n_edges = np.array([len(pairs) for pairs in edges], dtype=np.int64)
    ends = np.concatenate([np.zeros((0, 2), np.int64), *edges])
    graph_of = np.arange(len(n_nodes)).repeat(n_edges)
    outside = (ends < 0).any(1) | (ends >= n_nodes[graph_of][:, None]).any(1)
    if outside.any():
        i = int(graph_of[outside.argmax()])
        raise CellError(f"graph {i} has an edge to a node that it has not ({n_nodes[i]} nodes)")
    atoms_at, bonds_at = offsets_of(n_nodes), offsets_of(n_edges)
    source, target = (ends + atoms_at[graph_of][:, None]).T
    atom_code, atom_table, _ = _table(nodes)
    bond_code, bond_table, bond_value = _table(bonds)
    order = np.argsort(target, kind="stable")
    reverse = _reverse(source, target, bond_value)
    local = smallest(int(max(n_nodes.max(initial=0), n_edges.max(initial=0))))
    arrays = {"source": ends[order, 0].astype(local), "target": ends[order, 1].astype(local)}
    if reverse is not None:
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        arrays["reverse"] = (place[reverse[order]] - bonds_at[graph_of]).astype(local)
    index = {name: of for name, of in BOND_INDEX.items() if name in arrays}
    more = further or {"atom": {}, "bond": {}, "graph": {}}
    arrays |= {"code": bond_code[order]} | {name: values[order] for name, values in more["bond"].items()}
    if reason is None:
        reason = np.where(n_nodes > 0, "", "a graph of no nodes").astype(object)
    return GraphStore(
        levels={"atom": Level(atoms_at, {"code": atom_code, **more["atom"]}), "bond": Level(bonds_at, arrays, index)},
        tables={"atom": atom_table, "bond": bond_table},
        status=np.where(reason == "", OK, UNREADABLE).astype(object),
        reason=reason,
        featuriser=featuriser,
        extra=more["graph"],
        settings=settings or {},
    )


def _features(graphs: Sequence[Data], name: str, counts: np.ndarray) -> np.ndarray:
    """float32 [rows, d] of all graphs."""
    if all(data.get(name) is None for data in graphs):
        return np.ones((int(counts.sum()), 1), np.float32)
    parts = []
    for i, (data, n) in enumerate(zip(graphs, counts, strict=True)):
        values = data.get(name)
        if values is None or len(values) != n:
            raise ShapeError(f"graph {i}: {name} has {0 if values is None else len(values)} rows, expected {n}")
        rows = values.detach().cpu().numpy().astype(np.float32)
        parts.append(rows.reshape(n, -1) if n else rows.reshape(0, rows.shape[1] if rows.ndim > 1 else 1))
        if parts[-1].shape[1] != parts[0].shape[1]:
            raise ShapeError(f"graph {i}: {name} has {parts[-1].shape[1]} columns, graph 0 has {parts[0].shape[1]}")
    return np.concatenate(parts)


def _table(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, the table that they point into, and for each row the number of its value.

    Rows are equal where all their bits are. The table has each distinct row once, or is the rows
    themselves where more than half of them are distinct.
    """
    if rows.size == 0:  # np.unique knows no rows of no width
        same = np.zeros(len(rows), np.int64)
        return same.astype(np.int16), rows[:1], same
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, value = np.unique(whole, return_index=True, return_inverse=True)
    if 2 * len(first) > len(rows):
        return np.arange(len(rows), dtype=smallest(len(rows))), rows, value
    return value.astype(smallest(len(first))), rows[first], value


def _reverse(source: np.ndarray, target: np.ndarray, value: np.ndarray) -> np.ndarray | None:
    """For each edge its opposite, the k-th of parallel edges with the k-th of those back; None where one has none."""
    order = np.arange(len(source))
    there, back = np.lexsort((order, value, target, source)), np.lexsort((order, value, source, target))
    if ((source[there] != target[back]) | (target[there] != source[back])).any():
        return None
    reverse = np.empty_like(order)
    reverse[there] = back
    return reverse


def _further(graphs: Sequence[Data], n_nodes: np.ndarray, n_edges: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """Attributes beside the features, by level: ``atom``, ``bond``, ``graph``."""
    out: dict[str, dict[str, np.ndarray]] = {"atom": {}, "bond": {}, "graph": {}}
    names = sorted({key for data in graphs for key in data.to_dict()} - _CORE - {"rev_edge_index"})
    for name in names:
        values: list[Any] = [data.get(name) for data in graphs]
        odd = [i for i, value in enumerate(values) if not isinstance(value, torch.Tensor)]
        if odd:
            raise CellError(f"graph {odd[0]} has no tensor {name!r}", hint="give all graphs the same attributes")
        sizes = [len(value) if value.ndim else -1 for value in values]
        arrays = [value.detach().cpu().numpy() for value in values]
        if name != "y" and sizes == n_nodes.tolist():
            out["atom"][name] = np.concatenate(arrays)
        elif name != "y" and sizes == n_edges.tolist():
            out["bond"][name] = np.concatenate(arrays)
        elif all(a.shape == arrays[0].shape for a in arrays):
            out["graph"][name] = np.stack(arrays)
        else:
            raise ShapeError(f"{name!r} has neither a row a node, nor one an edge, nor one shape in all graphs")
    return out
