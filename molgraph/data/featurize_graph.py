"""Featurise graphs without chemistry: node and edge labels one-hot beside their features, or node degrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch_geometric.data import Data

from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.data.content import value_digest
from molgraph.data.featuriser import Featuriser
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.graph_values import Graph
from molgraph.data.pyg import from_pyg

MAX_DEGREE = 64
PATH = Graph(3, np.array([[0, 1], [1, 0], [1, 2], [2, 1]], np.int32))
TRIANGLE = Graph(3, np.array([[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]], np.int32))


@register("featuriser", "graph", summary="node labels and features; degrees where there are none")
class Graphs(Featuriser):
    """Levels ``atom`` (the nodes) and ``bond`` (the edges).

    Labels are one-hot, features stand after them; nodes with neither have their degree, one-hot up to 64, as
    Xu et al. 2019 have it for social networks. How many labels and features there are is taken from the training
    graphs (``InputSpec.settings``); a graph with more is ``unreadable``.
    """

    name = "graph"
    kind: ClassVar[EntityKind] = "graph"
    versions = ("graph.1",)
    examples = (PATH, TRIANGLE)

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One graph a value; one with an edge to a node that it has not is ``unreadable``."""
        reason = np.array([_wrong(value) for value in values], dtype=object)
        settings = (
            _settings([v for v, why in zip(values, reason, strict=True) if not why])
            if spec is None
            else dict(spec.settings)
        )
        for i in np.flatnonzero(reason == ""):
            reason[i] = _unfit(values[int(i)], settings)
        none = Graph(0, np.zeros((0, 2), np.int32))
        made = [_data(none if why else value, settings) for value, why in zip(values, reason, strict=True)]
        store = from_pyg(made)
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        tables = store.tables if len(values) else _no_rows(settings)
        return GraphStore(store.levels, tables, status, reason, self.versions[0], settings=settings)

    def key(self, value: Any) -> str:
        """A hash of all that the graph holds."""
        return value_digest(value)


def _wrong(value: Any) -> str:
    if not isinstance(value, Graph):
        return f"no graph but {type(value).__name__}"
    if not value.n_nodes:
        return "a graph of no nodes"
    edges = np.asarray(value.edges)
    if len(edges) and (edges.min() < 0 or edges.max() >= value.n_nodes):
        return f"an edge to node {int(edges.max() if edges.min() >= 0 else edges.min())} of {value.n_nodes} nodes"
    for name, n in (("node", value.n_nodes), ("edge", len(edges))):
        for array in (getattr(value, f"{name}_label"), getattr(value, f"{name}_features")):
            if array is not None and len(array) != n:
                return f"{len(array)} {name} labels or features for {n} {name}s"
    return ""


def _settings(graphs: Sequence[Graph]) -> dict[str, int]:
    """How many labels and features the graphs have; degrees for nodes that have neither."""
    found = {}
    for name in ("node", "edge"):
        labels = [getattr(g, f"{name}_label") for g in graphs]
        features = [getattr(g, f"{name}_features") for g in graphs]
        found[f"{name}_labels"] = 1 + max((int(v.max(initial=-1)) for v in labels if v is not None), default=-1)
        found[f"{name}_features"] = max((v.shape[1] for v in features if v is not None), default=0)
    bare = not found["node_labels"] and not found["node_features"]
    degrees = [int(np.bincount(g.edges[:, 0], minlength=1).max()) for g in graphs if len(g.edges)] if bare else []
    found["degrees"] = min(max(degrees, default=0), MAX_DEGREE) + 1 if bare else 0
    return found


def _unfit(graph: Graph, settings: dict[str, int]) -> str:
    """Why a graph does not fit the settings."""
    for name in ("node", "edge"):
        label, features = getattr(graph, f"{name}_label"), getattr(graph, f"{name}_features")
        n, width = settings[f"{name}_labels"], settings[f"{name}_features"]
        if (label is None) != (n == 0) or (features is None) != (width == 0):
            return f"its {name}s lack labels or features that the others have, or have more"
        if label is not None and len(label) and not 0 <= label.min() <= label.max() < n:
            return f"a {name} label of {int(label.max())}, where {n} are known (0 to {n - 1})"
        if features is not None and features.shape[1] != width:
            return f"{features.shape[1]} features a {name}, where the others have {width}"
    return ""


def _no_rows(settings: dict[str, int]) -> dict[str, np.ndarray]:
    """Tables of the right widths for no graph at all."""
    nodes = settings["node_labels"] + settings["node_features"] + settings["degrees"]
    edges = settings["edge_labels"] + settings["edge_features"] or 1
    return {name: np.zeros((0, width), np.float32) for name, width in (("atom", nodes), ("bond", edges))}


def _data(graph: Graph, settings: dict[str, int]) -> Data:
    named: dict[str, Any] = {}
    degree = np.minimum(np.bincount(graph.edges[:, 0], minlength=graph.n_nodes), settings["degrees"] - 1)
    for name, key in (("node", "x"), ("edge", "edge_attr")):
        n, width = settings[f"{name}_labels"], settings[f"{name}_features"]
        size = graph.n_nodes if name == "node" else len(graph.edges)
        label, features = getattr(graph, f"{name}_label"), getattr(graph, f"{name}_features")
        parts = [] if not n else [np.eye(n, dtype=np.float32)[np.zeros(0, int) if label is None else label]]
        parts += [] if not width else [np.zeros((size, width), np.float32) if features is None else features]
        if name == "node" and settings["degrees"]:
            parts = [np.eye(settings["degrees"], dtype=np.float32)[degree]]
        if parts:
            named[key] = torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32, copy=False))
    edges = torch.from_numpy(graph.edges.astype(np.int64).T.copy())
    return Data(edge_index=edges, num_nodes=graph.n_nodes, **named)
