"""Graphs and geometries as plain arrays: what a table of them holds in its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

_MAGIC, _NO_ELEMENT = b"\0geometry1\0", 65_535


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
        return {"n_nodes": as_array([self.n_nodes])} | _arrays(self, "n_nodes")

    def __str__(self) -> str:
        return f"graph of {self.n_nodes} nodes, {as_array(self.edges).size // 4} edges"


@dataclass(frozen=True)
class Geometry:
    """Atoms in space: a molecule, a protein, or the complex of a ligand with a protein.

    Args:
        numbers: uint8 [n], atomic numbers.
        positions: float32 [n, 3], angstrom.
        forces: float32 [n, 3], in the unit of the energy over angstrom, or None.
        residue: uint8 [n], of a protein or a complex: the place of each atom's amino acid in
            ``molgraph.chem.complexes.AMINO_ACIDS`` from 1, 21 for another residue, 0 for an atom of the ligand.
        residue_index: int32 [n], beside ``residue``: the number of each atom's residue; -1 for the ligand's.
        charge: float32 [n], beside ``residue``: partial charges in elementary charges.
    """

    numbers: np.ndarray
    positions: np.ndarray
    forces: np.ndarray | None = None
    residue: np.ndarray | None = None
    residue_index: np.ndarray | None = None
    charge: np.ndarray | None = None

    def part(self, protein: bool) -> Geometry | None:
        """The protein of a complex alone, or its ligand; None where it has no such atoms."""
        residue = np.zeros(len(self.numbers), np.uint8) if self.residue is None else self.residue
        rows = np.flatnonzero((residue > 0) == protein)
        held = (self.forces, self.residue, self.residue_index, self.charge)
        more = (None if array is None else array[rows] for array in held)
        return Geometry(self.numbers[rows], self.positions[rows], *more) if len(rows) else None

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name; what it lacks left out."""
        return _arrays(self)

    def to_bytes(self) -> bytes:
        """The arrays as bytes, which ``from_bytes`` reads; a number beyond 65,535 or below 0 becomes 65,535."""
        numbers = np.asarray(self.numbers)
        numbers = np.where((numbers < 0) | (numbers > _NO_ELEMENT), _NO_ELEMENT, numbers).astype("<u2")
        rows = [self.positions] if self.forces is None else [self.positions, self.forces]
        head = _MAGIC + np.array([len(numbers), len(rows)], "<u4").tobytes()
        return b"".join([head, numbers.tobytes(), *(np.asarray(array, "<f4").tobytes() for array in rows)])

    @classmethod
    def from_bytes(cls, data: bytes) -> Geometry:
        """The geometry that ``to_bytes`` wrote; raises ``ValueError`` for other bytes, elements or infinite numbers.

        Example:
            >>> print(Geometry.from_bytes(Geometry(np.array([8]), np.zeros((1, 3))).to_bytes()))
            geometry of 1 atoms
        """
        if not data.startswith(_MAGIC):
            raise ValueError("bytes that are no geometry")
        n, n_rows = (int(value) for value in np.frombuffer(data, "<u4", 2, len(_MAGIC)))
        numbers = np.frombuffer(data, "<u2", n, len(_MAGIC) + 8)
        rows = np.frombuffer(data, "<f4", offset=len(_MAGIC) + 8 + 2 * n).reshape(n_rows, n, 3)
        if n and numbers.max() > np.iinfo(np.uint8).max:
            raise ValueError("an atomic number that is none")
        for name, value in zip(("position", "force"), rows, strict=False):
            if not np.isfinite(value).all():
                raise ValueError(f"a {name} that is no finite number")
        return cls(numbers.astype(np.uint8), rows[0], rows[1] if n_rows > 1 else None)

    def __str__(self) -> str:
        ligand = np.zeros(0, bool) if self.residue is None else as_array(self.residue) == 0
        kind = "ligand" if ligand.all() else "complex" if ligand.any() else "protein"
        return f"{'geometry' if self.residue is None else kind} of {as_array(self.numbers).size} atoms"


def value_of(kind: str, arrays: Mapping[str, np.ndarray]) -> Graph | Geometry | None:
    """The graph or geometry whose ``arrays()`` these are; None where there are none.

    Example:
        >>> print(value_of("graph", Graph(3, np.array([[0, 1], [1, 0]])).arrays()))
        graph of 3 nodes, 1 edges
    """
    if not arrays or kind == "geometry":
        return Geometry(**arrays) if arrays else None
    fields: dict[str, Any] = {**arrays, "n_nodes": arrays["n_nodes"].ravel()[0].item()}
    return Graph(**fields)


def as_array(value: Any) -> np.ndarray:
    """A value as an array; one that is none (rows of several lengths, an object) as its text."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):
        array = np.empty(0, dtype=object)
    return np.array(repr(value)) if array.dtype.kind not in "biufU" else array


def numbers_of(value: Any, name: str, shape: tuple[int | str, ...], kind: type[np.int64 | np.float32]) -> np.ndarray:
    """An array of whole or of finite numbers.

    Args:
        value: what somebody gave as the array.
        name: what it is called in messages.
        shape: its expected shape; a text stands for a length that may be any.
        kind: ``np.int64`` or ``np.float32``.

    Raises:
        ValueError: another shape, values that are no numbers, or that the type cannot hold.

    Example:
        >>> numbers_of([[0, 1], [1.0, 0]], "edges", ("e", 2), np.int64).tolist()
        [[0, 1], [1, 0]]
    """
    array, whole = as_array(value), kind is np.int64
    kind_of_number = "whole" if whole else "finite"
    words = f"{kind_of_number} numbers" if shape else f"a {kind_of_number} number"
    if array.dtype.kind == "U":
        raise ValueError(f"{name} must be {words}, not {str(array.ravel()[:1].tolist())[1:-1][:60]}")
    asked = tuple(m if isinstance(n, str) else n for n, m in zip(shape, array.shape, strict=False))
    if array.ndim != len(shape) or array.shape != asked:
        raise ValueError(f"{name} must be of the shape [{', '.join(map(str, shape))}], not {list(array.shape)}")
    if np.can_cast(array.dtype, kind):
        numbers = array.astype(kind, copy=False)
        sound = whole or np.isfinite(numbers).all()
    else:
        with np.errstate(all="ignore"):
            numbers = array.astype(kind)
        sound = (numbers == array if whole else np.isfinite(numbers)).all()
    if not sound:
        raise ValueError(f"{name} must be {words}")
    return numbers


def _arrays(value: Graph | Geometry, *but: str) -> dict[str, np.ndarray]:
    named = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in but}
    return {name: as_array(array) for name, array in named.items() if array is not None}
