"""Featurise atoms in space: their elements one-hot, and their positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.complexes import MAX_PROTEIN_ATOMS, OTHER
from molgraph.chem.elements import SYMBOLS
from molgraph.data.content import value_digest
from molgraph.data.featuriser import Featuriser, is_absent
from molgraph.data.graph_store import GraphStore, InputSpec, Level
from molgraph.data.graph_values import Geometry, numbers_of

N_ELEMENTS = 119  # 0 stands for a dummy atom
MAX_ATOMS = 2_000  # of a molecule: networks in space take a second or two for so many
CROWD, WITHIN = 100, 5.0  # neighbours of an atom on average within so many angstrom; matter has about 50
NEAREST = 1e-3  # angstrom, below which two atoms are at one place
ALONG = np.array([0.36, 0.48, 0.8])  # a direction, of length 1, in which hardly two atoms are alike
NONE = Geometry(np.zeros(0, np.uint8), np.zeros((0, 3), np.float32))
WATER = Geometry(np.array([8, 1, 1], np.uint8), np.array([[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]], np.float32))
METHANE = Geometry(
    np.array([6, 1, 1, 1, 1], np.uint8),
    np.array([[0, 0, 0], [0.63, 0.63, 0.63], [-0.63, -0.63, 0.63], [-0.63, 0.63, -0.63], [0.63, -0.63, -0.63]]).astype(
        np.float32
    ),
)


@register("featuriser", "geometry", summary="elements one-hot, positions in angstrom")
class Geometries(Featuriser):
    """One level, ``atom``: ``code`` is the atomic number, ``position`` float32 [n, 3] in angstrom; no bonds.

    Where any geometry has forces there is ``force`` too, float32 [n, 3], NaN for the atoms of those that have none.
    """

    name = "geometry"
    kind: ClassVar[EntityKind] = "geometry"
    versions = ("geometry.1",)
    examples = (WATER, METHANE)
    elements = SYMBOLS

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One row an atom; numbers or positions that make no geometry are ``unreadable``."""
        read = [_few_atoms(*read_geometry(value)) for value in values]
        reason = np.array([problem for _, problem in read], dtype=object)
        numbers = np.concatenate([NONE.numbers, *(item.numbers for item, _ in read)], dtype=np.uint8, casting="unsafe")
        positions = np.concatenate([NONE.positions, *(item.positions for item, _ in read)])
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        arrays = {"code": numbers, "position": positions}
        if any(item.forces is not None for item, _ in read):
            forces = (np.full_like(item.positions, np.nan) if item.forces is None else item.forces for item, _ in read)
            arrays["force"] = np.concatenate([NONE.positions, *forces])
        atoms = Level(offsets_of([len(item.numbers) for item, _ in read]), arrays)
        table = np.eye(N_ELEMENTS, dtype=np.float32)
        return GraphStore({"atom": atoms}, {"atom": table}, status, reason, self.versions[0])

    def key(self, value: Any) -> str:
        """A hash of numbers and positions."""
        return value_digest(value)


def read_geometry(value: Any) -> tuple[Geometry, str]:
    """The geometry with numbers as int64 and positions as float32; or an empty one, and why the value is none.

    Residues and charges of a protein or a complex are kept, as whole numbers and as float32.
    """
    if not isinstance(value, Geometry):
        return NONE, "no geometry in this row" if is_absent(value) else f"no geometry but {type(value).__name__}"
    try:
        numbers = numbers_of(value.numbers, "atomic numbers", ("n",), np.int64)
        if not len(numbers):
            raise ValueError("a geometry of no atoms")
        if len(odd := numbers[(numbers < 0) | (numbers >= N_ELEMENTS)]):
            raise ValueError(f"an atomic number of {odd[0]}")
        shape = (len(numbers), 3)
        positions = numbers_of(value.positions, "positions", shape, np.float32)
        forces = None if value.forces is None else numbers_of(value.forces, "forces", shape, np.float32)
        most = MAX_ATOMS if value.residue is None else MAX_PROTEIN_ATOMS
        if len(numbers) > most:
            raise ValueError(f"a geometry of {len(numbers):,} atoms, of which {most:,} are read at most")
        _check_places(positions if value.residue is not None else positions[numbers > 0], value.residue is None)
        geometry = Geometry(numbers, positions, forces)
        return geometry if value.residue is None else _with_residues(geometry, value), ""
    except ValueError as error:
        return NONE, str(error)


def _few_atoms(value: Geometry, why: str) -> tuple[Geometry, str]:
    n = len(value.numbers)
    words = f"a geometry of {n:,} atoms, of which {MAX_ATOMS:,} are read at most"
    return (NONE, words) if n > MAX_ATOMS else (value, why)


def _with_residues(made: Geometry, value: Geometry) -> Geometry:
    n = len(made.numbers)
    residue = numbers_of(value.residue, "residues", (n,), np.int64)
    index = numbers_of(np.full(n, -1) if value.residue_index is None else value.residue_index, "residue numbers",
                       (n,), np.int64)  # fmt: skip
    charge = numbers_of(np.zeros(n) if value.charge is None else value.charge, "charges", (n,), np.float32)
    if len(odd := residue[(residue < 0) | (residue > OTHER)]):
        raise ValueError(f"a residue of the kind {odd[0]}, which is none of 0 to {OTHER}")
    return replace(made, residue=residue, residue_index=index, charge=charge)


def _check_places(positions: np.ndarray, apart: bool) -> None:
    """Refuse more atoms at one place than a network works on in two seconds, and two at one where ``apart``."""
    pairs: Iterable[tuple[int, int]] = ()
    if len(positions) > CROWD:
        tree = cKDTree(positions)
        if tree.count_neighbors(tree, WITHIN) > (CROWD + 1) * len(positions):
            raise ValueError(f"more than {CROWD} atoms within {WITHIN:g} angstrom of one: are positions in angstrom?")
        pairs = tree.query_pairs(NEAREST) if apart else ()
    elif apart and (np.diff(np.sort(positions @ ALONG)) < NEAREST).any():  # else no two atoms are nearer than that
        near = pdist(positions) < NEAREST
        pairs = zip(*(side[near] for side in np.triu_indices(len(positions), 1)), strict=True)
    if first := min(pairs, default=None):
        raise ValueError(f"the atoms {first[0] + 1} and {first[1] + 1} are less than {NEAREST:g} angstrom apart")
