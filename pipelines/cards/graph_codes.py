"""Find isomorphic graphs by colour refinement of all graphs at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.data.graph_values import Graph

ROUNDS = 5
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # splitmix64's finaliser
_OWN, _SEED = np.uint64(0xD6E8FEB86659FD93), np.uint64(0x9E3779B97F4A7C15)


def graph_codes(graphs: Sequence[Graph], rounds: int = ROUNDS) -> np.ndarray:
    """A 64-bit hash of each graph that does not depend on the order of its nodes (Weisfeiler and Leman 1968).

    Equal graphs have equal codes. Graphs of equal codes are nearly always isomorphic; refinement cannot tell some
    regular ones apart. Node labels, edge labels and features count.

    Args:
        graphs: n graphs.
        rounds: how far a node sees.

    Returns:
        uint64 [n].

    Example:
        >>> path = Graph(3, np.array([[0, 1], [1, 0], [1, 2], [2, 1]]))
        >>> other = Graph(3, np.array([[0, 2], [1, 2], [2, 0], [2, 1]]))
        >>> codes = graph_codes([path, other, Graph(3, path.edges[:2])])
        >>> bool(codes[0] == codes[1]), bool(codes[0] == codes[2])
        (True, False)
    """
    counts = np.array([g.n_nodes for g in graphs], dtype=np.int64)
    n_edges = np.array([len(g.edges) for g in graphs], dtype=np.int64)
    first = np.cumsum(counts) - counts
    edges = np.concatenate([g.edges for g in graphs] or [np.zeros((0, 2), np.int32)]).astype(np.int64)
    source, target = (edges + np.repeat(first, n_edges)[:, None]).T
    order = np.argsort(source, kind="stable")
    source, target = source[order], target[order]
    colour = _labels([(g.node_label, g.node_features) for g in graphs], counts)
    bond = _labels([(g.edge_label, g.edge_features) for g in graphs], n_edges)[order]
    for _ in range(rounds):
        colour = _mix(colour * _OWN + _sums(_mix(colour[target] + _mix(bond)), source, len(colour)))
    graph_of = np.repeat(np.arange(len(graphs)), counts)
    return _mix(_sums(_mix(colour), graph_of, len(graphs)) + counts.astype(np.uint64))


def _labels(parts: list[tuple[np.ndarray | None, np.ndarray | None]], counts: np.ndarray) -> np.ndarray:
    """One number for the label and features of each row, uint64 [all rows]."""
    out = np.full(int(counts.sum()), _SEED, dtype=np.uint64)
    labels = [label for label, _ in parts if label is not None]
    features = [values for _, values in parts if values is not None]
    if len(labels) == len(parts) and labels:
        out = _mix(out + np.concatenate(labels).astype(np.uint64))
    if len(features) == len(parts) and features:
        for column in np.concatenate(features).astype(np.float64).T:
            out = _mix(out * _OWN + np.ascontiguousarray(column + 0.0).view(np.uint64))
    return out


def _mix(x: np.ndarray) -> np.ndarray:
    """splitmix64: every bit of the outcome hangs on every bit of ``x``; the sums wrap round on purpose."""
    x = x + _SEED
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


def _sums(values: np.ndarray, group: np.ndarray, n: int) -> np.ndarray:
    """Wrapping sums by group, whose numbers rise; the order of a group's members does not count."""
    out = np.zeros(n, dtype=np.uint64)
    if len(values):
        starts = np.flatnonzero(np.r_[True, np.diff(group) != 0])
        out[group[starts]] = np.add.reduceat(values, starts)
    return out
