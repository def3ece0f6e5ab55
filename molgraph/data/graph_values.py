"""Graphs and geometries as plain arrays: what a table of them holds in its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


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


def value_of(kind: str, arrays: Mapping[str, np.ndarray]) -> Graph | Geometry | None:
    """The graph or geometry whose ``arrays()`` these are; None where there are none.

    Example:
        >>> print(value_of("graph", Graph(3, np.array([[0, 1], [1, 0]])).arrays()))
        graph of 3 nodes, 1 edges
    """
    if not arrays or kind == "geometry":
        return Geometry(**arrays) if arrays else None
    own: dict[str, Any] = {**arrays, "n_nodes": int(arrays["n_nodes"][0])}
    return Graph(**own)


def _arrays(value: Graph | Geometry, *but: str) -> dict[str, np.ndarray]:
    named = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in but}
    return {name: array for name, array in named.items() if array is not None}
