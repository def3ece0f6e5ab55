"""Hold the graphs of many entities, each once, packed into a few long arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from molgraph.base.errors import DataError

BOND_INDEX = {"source": "atom", "target": "atom", "reverse": "bond"}
"""The index arrays of directed bonds."""


@dataclass(frozen=True)
class Level:
    """The rows of one level (``atom``, ``bond``, ``token``, ...) of all graphs, graph after graph.

    Args:
        offsets: int64 [n_graphs + 1]; graph i's rows are ``offsets[i]:offsets[i + 1]``.
        arrays: each of length ``offsets[-1]``, of any rank. Features that take few distinct values are kept as an
            integer ``code`` into the store's table of that level (features = ``tables[level][code]``).
        index: the arrays that hold row numbers, counted from the start of their graph, and the level whose rows they
            number; a batch counts them over all its graphs.
    """

    offsets: np.ndarray
    arrays: Mapping[str, np.ndarray]
    index: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class InputSpec:
    """What the graphs of a store hold: all that an encoder is built from.

    Args:
        featuriser: name and version of what made the features.
        widths: width of the feature rows of each level that has features.
        arrays: shape of a row of each further array, by ``level.array``: ``{"atom.position": (3,)}``.
        settings: what a featuriser took from the training data, such as the number of node labels.

    Example:
        >>> spec = InputSpec("v2.1", {"atom": 72, "bond": 14}, {"bond.source": ()})
        >>> spec.width("atom"), spec.missing(("bond.source", "atom.position"))
        (72, ('atom.position',))
    """

    featuriser: str
    widths: Mapping[str, int]
    arrays: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)

    def width(self, level: str) -> int:
        """Width of a level's features.

        Raises:
            DataError: the level has none.
        """
        if level not in self.widths:
            have = ", ".join(self.widths) or "none"
            raise DataError(f"the features {self.featuriser!r} have no level {level!r}", hint=f"levels: {have}")
        return self.widths[level]

    @property
    def has_edge_features(self) -> bool:
        """Whether bonds have features: edges of graphs without labels and features have one column of ones."""
        known = [self.settings.get(name) for name in ("edge_labels", "edge_features")]
        return any(known) if None not in known else self.width("bond") > 0

    def missing(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the needed levels (``bond``) and arrays (``atom.position``) that the graphs do not hold."""
        return tuple(name for name in needs if name not in self.arrays and name not in self.widths)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        arrays = {name: list(shape) for name, shape in self.arrays.items()}
        return {**vars(self), "widths": dict(self.widths), "arrays": arrays, "settings": dict(self.settings)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> InputSpec:
        """From plain values; those of another type raise ``ValueError`` or ``TypeError``."""
        arrays = {str(name): tuple(map(int, shape)) for name, shape in dict(values["arrays"]).items()}
        widths, settings = ({str(k): int(v) for k, v in dict(values[part]).items()} for part in ("widths", "settings"))
        if any(v < 0 for v in (*widths.values(), *settings.values(), *(n for shape in arrays.values() for n in shape))):
            raise ValueError("a width below 0")
        return cls(str(values["featuriser"]), widths, arrays, settings)


@dataclass(frozen=True)
class GraphStore:
    """Packed graphs of many entities.

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
        extra: further arrays of one row a graph.
        settings: what the featuriser took from the data.
    """

    levels: Mapping[str, Level]
    tables: Mapping[str, np.ndarray]
    status: np.ndarray
    reason: np.ndarray
    featuriser: str
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.status)

    @property
    def spec(self) -> InputSpec:
        """What an encoder of these graphs is built from."""
        arrays = {
            f"{name}.{array}": values.shape[1:]
            for name, level in self.levels.items()
            for array, values in level.arrays.items()
            if array != "code"
        }
        widths = {name: table.shape[1] for name, table in self.tables.items()}
        return InputSpec(self.featuriser, widths, arrays, self.settings)
