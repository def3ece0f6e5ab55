"""Featurise graphs without chemistry: node and edge labels one-hot beside their features, or node degrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from molgraph.base.registry import register
from molgraph.base.table import EntityKind
from molgraph.data.content import value_digest
from molgraph.data.featuriser import Featuriser
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.graph_values import Graph
from molgraph.data.pyg import store_of_edges

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
        sound = [value for value, why in zip(values, reason, strict=True) if not why]
        settings = dict(spec.settings) if spec else _settings(sound)
        for i in np.flatnonzero(reason == ""):
            reason[i] = _unfit(values[int(i)], settings)
        none = Graph(0, np.zeros((0, 2), np.int32))
        graphs = [none if why else value for value, why in zip(values, reason, strict=True)]
        edges = [np.asarray(graph.edges).reshape(-1, 2) for graph in graphs]
        return store_of_edges(
            np.array([graph.n_nodes for graph in graphs], dtype=np.int64), edges,
            _rows(graphs, "node", settings), _rows(graphs, "edge", settings),
            featuriser=self.versions[0], reason=reason, settings=settings,
        )  # fmt: skip

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


def _rows(graphs: Sequence[Graph], name: str, settings: dict[str, int]) -> np.ndarray:
    """float32 [rows, d]: the features of all nodes or edges."""

    def given(what: str) -> list[np.ndarray]:
        return [values for graph in graphs if (values := getattr(graph, f"{name}_{what}")) is not None]

    parts = []
    if name == "node" and settings["degrees"]:
        degrees = [np.bincount(graph.edges[:, 0], minlength=graph.n_nodes) for graph in graphs]
        parts.append(_one_hot(degrees, settings["degrees"]))
    if settings[f"{name}_labels"]:
        parts.append(_one_hot(given("label"), settings[f"{name}_labels"]))
    if settings[f"{name}_features"]:
        none = np.zeros((0, settings[f"{name}_features"]))
        parts.append(np.concatenate([none, *given("features")], dtype=np.float32))
    n = sum(len(graph.edges) for graph in graphs)
    return np.concatenate(parts, axis=1) if parts else np.ones((n, 1), np.float32)


def _one_hot(codes: Sequence[np.ndarray], width: int) -> np.ndarray:
    return np.eye(width, dtype=np.float32)[np.minimum(np.concatenate([np.zeros(0, np.int64), *codes]), width - 1)]
