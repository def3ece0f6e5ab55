"""Featurise a ligand beside a protein: elements, amino acids, partial charges and positions of all atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.elements import SYMBOLS
from molgraph.data.content import value_digest
from molgraph.data.featuriser import Featuriser
from molgraph.data.featurize_geometry import METHANE, N_ELEMENTS, WATER, read_geometry
from molgraph.data.graph_store import GraphStore, InputSpec, Level
from molgraph.data.graph_values import Geometry

SERINE = Geometry(
    np.concatenate([WATER.numbers[:1], np.array([7, 6, 6, 8, 6, 8], np.uint8)]),
    np.array([[0, 0, 0], [4.6, 1, 0], [3.9, 2.2, 0.5], [4.7, 3.4, 0.1], [4.3, 4.2, -0.8], [2.6, 2.4, -0.1],
              [2.2, 1.3, 0.5]], np.float32),
    None,
    np.array([0, 16, 16, 16, 16, 16, 16], np.uint8),
    np.array([-1, 0, 0, 0, 0, 0, 0], np.int32),
    np.array([-0.4, -0.3, 0.1, 0.2, -0.3, 0.1, -0.4], np.float32),
)  # fmt: skip
"""Water, its hydrogens left out, at the hydroxyl group of a serine."""


@register("featuriser", "complex", summary="atoms of a ligand and a protein: elements, amino acids, charges, positions")
class Complexes(Featuriser):
    """One level, ``atom``: ``code`` is the atomic number, ``position`` float32 [n, 3] in angstrom, ``residue`` and
    ``charge`` as ``Geometry`` has them; 0 for all atoms of a geometry without a protein."""

    name = "complex"
    kind: ClassVar[EntityKind] = "geometry"
    versions = ("complex.1",)
    examples = (SERINE, WATER, METHANE)
    elements = SYMBOLS

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One row an atom; what makes no geometry is ``unreadable``."""
        read = [read_geometry(value) for value in values]
        reason = np.array([problem for _, problem in read], dtype=object)
        shapes = [shape for shape, _ in read]
        numbers = [shape.numbers for shape in shapes]
        arrays = {
            "code": _joined(numbers, np.uint8),
            "position": np.concatenate([np.zeros((0, 3), np.float32), *(shape.positions for shape in shapes)]),
            "residue": _joined([_or_zeros(shape.residue, shape) for shape in shapes], np.uint8),
            "charge": _joined([_or_zeros(shape.charge, shape) for shape in shapes], np.float32),
        }
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        atoms, table = Level(offsets_of([*map(len, numbers)]), arrays), np.eye(N_ELEMENTS, dtype=np.float32)
        return GraphStore({"atom": atoms}, {"atom": table}, status, reason, self.versions[0])

    def key(self, value: Any) -> str:
        """A hash of all arrays."""
        return value_digest(value)


def _or_zeros(values: np.ndarray | None, shape: Geometry) -> np.ndarray:
    return np.zeros(len(shape.numbers)) if values is None else values


def _joined(pieces: Sequence[np.ndarray], kind: type[np.uint8 | np.float32]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *pieces]).astype(kind)
