"""Featurise atoms in space: their elements one-hot, and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.data.content import value_digest
from molgraph.data.featuriser import Featuriser
from molgraph.data.graph_store import GraphStore, InputSpec, Level
from molgraph.data.graph_values import Geometry

N_ELEMENTS = 119  # 0 stands for a dummy atom
WATER = Geometry(np.array([8, 1, 1], np.uint8), np.array([[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]], np.float32))
METHANE = Geometry(
    np.array([6, 1, 1, 1, 1], np.uint8),
    np.array([[0, 0, 0], [0.63, 0.63, 0.63], [-0.63, -0.63, 0.63], [-0.63, 0.63, -0.63], [0.63, -0.63, -0.63]]).astype(
        np.float32
    ),
)


@register("featuriser", "geometry", summary="elements one-hot, positions in angstrom")
class Geometries(Featuriser):
    """One level, ``atom``: ``code`` is the atomic number, ``position`` float32 [n, 3] in angstrom; no bonds."""

    name = "geometry"
    kind: ClassVar[EntityKind] = "geometry"
    versions = ("geometry.1",)
    examples = (WATER, METHANE)

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One row an atom; positions that are not finite, or of another number than the atoms, are ``unreadable``."""
        reason = np.array([_wrong(value) for value in values], dtype=object)
        sound = [value for value, why in zip(values, reason, strict=True) if not why]
        counts = np.zeros(len(values), np.int64)
        counts[reason == ""] = [len(value.numbers) for value in sound]
        offsets = offsets_of(counts)
        numbers = np.concatenate([np.zeros(0, np.uint8), *(np.asarray(v.numbers, np.uint8) for v in sound)])
        at = np.concatenate([np.zeros((0, 3), np.float32), *(np.asarray(v.positions, np.float32) for v in sound)])
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        atoms = Level(offsets, {"code": numbers, "position": at})
        table = np.eye(N_ELEMENTS, dtype=np.float32)
        return GraphStore({"atom": atoms}, {"atom": table}, status, reason, self.versions[0])

    def key(self, value: Any) -> str:
        """A hash of numbers and positions."""
        return value_digest(value)


def _wrong(value: Any) -> str:
    if not isinstance(value, Geometry):
        return f"no geometry but {type(value).__name__}"
    numbers, positions = np.asarray(value.numbers), np.asarray(value.positions)
    if positions.shape != (len(numbers), 3):
        return f"positions of the shape {list(positions.shape)} for {len(numbers)} atoms"
    if not len(numbers):
        return "a geometry of no atoms"
    if numbers.min() < 0 or numbers.max() >= N_ELEMENTS:
        return f"an atomic number of {int(numbers.max())}"
    return "" if np.isfinite(positions).all() else "a position that is not finite"
