"""The graph store: each distinct molecule's graph once, all of them packed into a few long arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Level:
    """The rows of one level (``atom``, ``bond``, ...) of all graphs, graph after graph.

    Args:
        offsets: int64 [n_graphs + 1]; graph i's rows are ``offsets[i]:offsets[i + 1]``.
        arrays: each of length ``offsets[-1]``. Features that take few distinct values are kept as an
            integer ``code`` into the store's table of that level (features = ``tables[level][code]``).
    """

    offsets: np.ndarray
    arrays: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class GraphStore:
    """Packed graphs of many molecules.

    Levels of a molecule store:

    - ``atom``: ``code`` (uint16 or int32, row of ``tables["atom"]``)
    - ``bond``: directed bonds, sorted by target atom within a graph, two for each chemical bond:
      ``source``, ``target`` (atom numbers within the graph), ``reverse`` (number within the graph's
      bonds of the opposite direction), ``code`` (row of ``tables["bond"]``)

    Args:
        levels: levels by name.
        tables: distinct feature rows by level, float32 [n_distinct, width].
        status: object [n_graphs]: ``ok``, or ``unreadable`` (such a graph has no rows at all).
        reason: object [n_graphs].
        featuriser: name and version of what made the features.
    """

    levels: Mapping[str, Level]
    tables: Mapping[str, np.ndarray]
    status: np.ndarray
    reason: np.ndarray
    featuriser: str
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.status)
