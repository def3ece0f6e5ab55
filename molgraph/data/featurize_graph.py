"""Featurise graphs without chemistry: node and edge labels one-hot beside their features, or node degrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.table import EntityKind
from molgraph.data.content import value_digest
from molgraph.data.featuriser import Featuriser, is_absent
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.graph_values import Graph, as_array, numbers_of
from molgraph.data.pyg import store_of_edges

MAX_DEGREE = 64
MAX_NODES = 10_000_000
ARTICLE = {"node": "a", "edge": "an"}
MAX_LABEL = 9_999  # a label is a column of features
NONE = Graph(0, np.zeros((0, 2), np.int64))
PATH = Graph(3, np.array([[0, 1], [1, 0], [1, 2], [2, 1]], np.int32))
TRIANGLE = Graph(3, np.array([[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]], np.int32))


@register("featuriser", "graph", summary="node labels and features; degrees where there are none")
class GraphFeaturiser(Featuriser):
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
        """One graph a value; one whose arrays do not make a graph, or another kind of graph, is ``unreadable``."""
        read = [_read(value) for value in values]
        settings = dict(spec.settings) if spec else _settings([graph for graph, problem in read if not problem])
        paired = spec is not None and "bond.reverse" in spec.arrays
        reason = np.array([problem or _unfit(graph, settings, paired) for graph, problem in read], dtype=object)
        graphs = [NONE if problem else graph for (graph, _), problem in zip(read, reason, strict=True)]
        return store_of_edges(
            np.array([graph.n_nodes for graph in graphs], dtype=np.int64), [graph.edges for graph in graphs],
            _rows(graphs, "node", settings), _rows(graphs, "edge", settings),
            featuriser=self.versions[0], reason=reason, settings=settings,
        )  # fmt: skip

    def examples_for(self, spec: InputSpec) -> tuple[Graph, ...]:
        """Paths and triangles with labels and features drawn from a fixed seed, as many as the spec's graphs have."""
        settings, examples = dict(spec.settings), []
        for k in range(8):
            plain, draw = (PATH, TRIANGLE)[k % 2], generator(k, "example graph")
            arrays: dict[str, np.ndarray] = {}
            for name, rows in (("node", plain.n_nodes), ("edge", len(plain.edges))):
                if n := settings[f"{name}_labels"]:
                    arrays[f"{name}_label"] = draw.integers(0, n, rows)
                if n := settings[f"{name}_features"]:
                    arrays[f"{name}_features"] = draw.normal(size=(rows, n)).astype(np.float32)
            examples.append(Graph(plain.n_nodes, plain.edges, **arrays))
        return tuple(examples)

    def key(self, value: Any) -> str:
        """A hash of all that the graph holds."""
        return value_digest(value)


def _read(value: Any) -> tuple[Graph, str]:
    """The graph with arrays of int64 and float32 alone; or an empty one, and why the value is none."""
    if not isinstance(value, Graph):
        return NONE, "no graph in this row" if is_absent(value) else f"no graph but {type(value).__name__}"
    try:
        n = int(numbers_of(value.n_nodes, "n_nodes", (), np.int64))
        if not 0 < n <= MAX_NODES:
            raise ValueError(f"a graph of {n:,} nodes, expected 1 to {MAX_NODES:,}" if n else "a graph of no nodes")
        edges = numbers_of(value.edges if as_array(value.edges).size else NONE.edges, "edges", ("e", 2), np.int64)
        if len(odd := edges[(edges < 0) | (edges >= n)]):
            raise ValueError(f"an edge to node {odd[0]} of {n} nodes")
        arrays: dict[str, np.ndarray] = {}
        for name, rows in (("node", n), ("edge", len(edges))):
            if (label := getattr(value, f"{name}_label")) is not None:
                arrays[f"{name}_label"] = labels = numbers_of(label, f"{name} labels", (rows,), np.int64)
                if len(odd := labels[(labels < 0) | (labels > MAX_LABEL)]):
                    raise ValueError(f"{ARTICLE[name]} {name} label of {odd[0]}, expected 0 to {MAX_LABEL:,}")
            if (features := getattr(value, f"{name}_features")) is not None:
                arrays[f"{name}_features"] = numbers_of(features, f"{name} features", (rows, "d"), np.float32)
    except ValueError as error:
        return NONE, str(error)
    return Graph(n, edges, **arrays), ""


def _settings(graphs: Sequence[Graph]) -> dict[str, int]:
    """How many labels and features the graphs have; degrees for nodes that have neither."""
    sizes = {}
    for name in ("node", "edge"):
        labels = [getattr(g, f"{name}_label") for g in graphs]
        features = [getattr(g, f"{name}_features") for g in graphs]
        sizes[f"{name}_labels"] = 1 + max((int(v.max(initial=-1)) for v in labels if v is not None), default=-1)
        sizes[f"{name}_features"] = max((v.shape[1] for v in features if v is not None), default=0)
    bare = not sizes["node_labels"] and not sizes["node_features"]
    degrees = [int(np.bincount(g.edges[:, 0], minlength=1).max()) for g in graphs if len(g.edges)] if bare else []
    sizes["degrees"] = min(max(degrees, default=0), MAX_DEGREE) + 1 if bare else 0
    return sizes


def _unfit(graph: Graph, settings: dict[str, int], paired: bool) -> str:
    """Why a graph does not fit the settings, or has an edge without its opposite where all edges are ``paired``."""
    source, target = graph.edges.T
    if paired and (np.sort(source * graph.n_nodes + target) != np.sort(target * graph.n_nodes + source)).any():
        return "an edge without its opposite, which the training graphs have"
    for name in ("node", "edge"):
        label, features = getattr(graph, f"{name}_label"), getattr(graph, f"{name}_features")
        n, width = settings[f"{name}_labels"], settings[f"{name}_features"]
        if (label is None) != (n == 0) or (features is None) != (width == 0):
            return f"its {name}s lack labels or features that the others have, or have more"
        if label is not None and label.max(initial=0) >= n:
            return f"{ARTICLE[name]} {name} label of {int(label.max())}, where {n} are known (0 to {n - 1})"
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
    code = np.minimum(np.concatenate([np.zeros(0, np.int64), *codes]), width - 1)
    out = np.zeros((len(code), width), np.float32)
    out[np.arange(len(code)), code] = 1
    return out
