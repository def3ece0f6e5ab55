"""Read the layouts of graph benchmarks (TU zip, DGCNN text) as a table of graphs with classes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError
from molgraph.data.graph_values import Graph
from molgraph.data.sources.archives import member, open_zip
from molgraph.data.table import OK, Entities, Table


def read_tu(path: Path, name: str, target: Target) -> Table:
    """A dataset in the layout of Morris et al. 2020 (TUDataset): ``NAME_A.txt`` and its companions in one zip.

    Edges are made unique and sorted; labels of nodes, edges and classes are numbered in the order of their values.
    """
    with open_zip(path) as archive:
        edges = _numbers(member(archive, f"{name}_A.txt"), np.int64)
        graph_of = _column(member(archive, f"{name}_graph_indicator.txt")) - 1
        classes = _column(member(archive, f"{name}_graph_labels.txt"))
        node_label = member(archive, f"{name}_node_labels.txt", optional=True)
        edge_label = member(archive, f"{name}_edge_labels.txt", optional=True)
        features = member(archive, f"{name}_node_attributes.txt", optional=True)
    n_graphs, n_nodes = len(classes), len(graph_of)
    edges = edges - 1
    if len(edges) and (edges.min() < 0 or edges.max() >= n_nodes):
        raise DataError(f"{path.name} has an edge to a node that it has not ({n_nodes} nodes)")
    if (np.diff(graph_of) < 0).any() or graph_of[0] != 0 or graph_of[-1] != n_graphs - 1:
        raise DataError(f"{path.name}: nodes do not stand graph by graph, or not for each of the {n_graphs} graphs")
    labels = None if edge_label is None else _codes(_column(edge_label))
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(edges[order], axis=0) != 0).any(axis=1)
    order = order[first]  # some files list each directed edge twice
    edges, labels = edges[order], None if labels is None else labels[order]
    counts = np.bincount(graph_of, minlength=n_graphs)
    graphs = _cut(
        edges,
        counts,
        node_label=None if node_label is None else _codes(_column(node_label)),
        node_features=None if features is None else _numbers(features, np.float32),
        edge_label=labels,
    )
    return _graph_table(graphs, _codes(classes), target)


def read_dgcnn(path: Path, name: str, target: Target) -> Table:
    """A dataset as one text (DGCNN, GIN): the number of graphs; of each, ``nodes class``, then its nodes.

    A node's line is its tag, its number of neighbours and the neighbours; edges are made unique and sorted.
    """
    with open_zip(path) as archive:
        text = member(archive, f"{name}.txt") or b""
    graphs: list[Graph] = []
    classes: list[int] = []
    try:
        words = np.fromstring(text, dtype=np.int64, sep=" ")
        at = 1
        for _ in range(words[0]):
            n, label = words[at : at + 2].tolist()
            edges, at = _nodes(words, at + 2, n)
            graphs.append(Graph(n, edges))
            classes.append(label)
        if at != len(words):
            raise ValueError("there is more text than graphs")
    except (ValueError, IndexError, OverflowError) as error:
        raise DataError(f"{path.name}, graph {len(graphs)}: {error or 'the text ends early'}") from None
    return _graph_table(graphs, _codes(np.array(classes)), target)


def _nodes(words: np.ndarray, at: int, n: int) -> tuple[np.ndarray, int]:
    """The edges of the n nodes whose lines begin at a word, and where the next graph begins."""
    near, degrees = [], []
    for _ in range(n):
        degree = int(words[at + 1])
        if degree < 0:
            raise ValueError("a node has fewer than no neighbours")
        near.append(words[at + 2 : at + 2 + degree])
        degrees.append(degree)
        at += 2 + degree
    target = np.concatenate(near).astype(np.int64) if near else np.zeros(0, np.int64)
    source = np.repeat(np.arange(n, dtype=np.int64), degrees)
    if len(source) != len(target):
        raise ValueError("the text ends early")
    if len(target) and (target.min() < 0 or target.max() >= n):
        raise ValueError("an edge to a node that is not there")
    both = np.unique(np.concatenate([source * n + target, target * n + source]))
    return np.column_stack([both // max(n, 1), both % max(n, 1)]).astype(np.int32), at


def _graph_table(graphs: list[Graph], codes: np.ndarray, target: Target) -> Table:
    if codes.max(initial=0) >= len(target.classes):
        raise DataError(f"{codes.max() + 1} classes, the card names {len(target.classes)}")
    n = len(graphs)
    values = np.empty(n, dtype=object)
    values[:] = graphs
    ids = np.array([str(i) for i in range(n)], dtype=object)
    status, reason = np.full(n, OK, dtype=object), np.full(n, "", dtype=object)
    y = codes.astype(np.float64)[:, None]
    return Table(ids, (Entities("graph", "graph", values),), status, reason, (target,), y)


def _cut(edges: np.ndarray, counts: np.ndarray, **arrays: np.ndarray | None) -> list[Graph]:
    """All nodes and edges cut into graphs; edges are sorted by source, so each graph's stand together."""
    ends = np.cumsum(counts)
    starts = ends - counts
    low, high = np.searchsorted(edges[:, 0], starts), np.searchsorted(edges[:, 0], ends)
    graphs: list[Graph] = []
    for start, end, a, b in zip(starts, ends, low, high, strict=True):
        local = (edges[a:b] - start).astype(np.int32)
        if len(local) and (local.min() < 0 or local.max() >= end - start):
            raise DataError(f"graph {len(graphs)} has an edge into another graph")
        cut = {
            key: None if array is None else array[a:b] if key == "edge_label" else array[start:end]
            for key, array in arrays.items()
        }
        graphs.append(Graph(int(end - start), local, **cut))
    return graphs


def _numbers(data: bytes | None, kind: type) -> np.ndarray:
    try:
        return pd.read_csv(io.BytesIO(data or b""), header=None, skipinitialspace=True).to_numpy().astype(kind)
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"a member of the archive does not hold numbers: {error}") from None


def _column(data: bytes | None) -> np.ndarray:
    return _numbers(data, np.int64)[:, 0]


def _codes(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int32)
