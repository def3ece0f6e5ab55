"""Read NumPy's npz files of atoms in space: molecules packed one after another, or the frames of one molecule."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from molgraph.base.errors import FormatError, MissingColumnError, ShapeError, TooLargeError, UnsupportedError
from molgraph.data.graph_values import Geometry
from molgraph.data.reading.chunk import GEOMETRY, MemoryReader, free_name

NUMBERS = ("z", "nuclear_charges", "numbers", "atomic_numbers", "charges", "species")
POSITIONS = ("r", "coords", "coordinates", "positions", "pos")
FORCES = ("f", "forces", "force")
COUNTS = ("n", "n_atoms", "num_atoms")
UNIT = "r_unit"  # a text beside the arrays, as sGDML writes it
ANGSTROM = {"ang": 1.0, "angstrom": 1.0, "a": 1.0, "bohr": 0.529177210903, "au": 0.529177210903, "nm": 10.0}
MAX_BYTES = 1 << 35  # of all arrays, unpacked
DAMAGED = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile)


class NpzReader(MemoryReader):
    """An npz file: atomic numbers (``Z``), positions (``R``, angstrom or as ``r_unit`` says), maybe forces (``F``).

    Molecules of several sizes stand one after another, ``N`` atoms of each (as QM7 and QM9 are packed); or ``R`` is
    [frames, n, 3], with ``Z`` [n] of all frames (as MD17), or ``Z`` [frames, n] with zeros behind the last atom. Other
    arrays with a value for each of them are columns: numbers or texts. The geometries are the column ``geometry``.

    Args:
        path: the file.
    """

    geometry = GEOMETRY

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        arrays = load_arrays(path)
        keys = {key.lower(): key for key in arrays}
        names = (NUMBERS, POSITIONS, FORCES, COUNTS)
        z, r, f, n = (next((keys[word] for word in words if word in keys), None) for words in names)
        if z is None or r is None:
            words = f"{self.name} holds no {'atomic numbers (Z)' if z is None else 'positions (R)'}"
            raise MissingColumnError(words, hint=f"it has: {', '.join(arrays)}"[:500])
        positions, forces = arrays[r], None if f is None or arrays[f].shape != arrays[r].shape else arrays[f]
        counts = None if n is None or arrays[n].ndim != 1 else arrays[n]
        scale = _scale(arrays.get(keys.get(UNIT, "")), self.name)
        self.n_rows, self._geometry = _geometries(arrays[z], positions, forces, counts, scale, self.name)
        used = {z, r, n if counts is not None else None, f if forces is not None else None}
        columns = {key: array for key, array in arrays.items() if key not in used and array.size == self.n_rows > 0}
        self._columns = {k: _column(array.ravel()) for k, array in columns.items() if max(array.shape) == self.n_rows}
        if GEOMETRY in self._columns:
            self._columns[free_name(GEOMETRY, self._columns)] = self._columns.pop(GEOMETRY)
        self.names = [*self._columns]

    def table(self, names: list[str], rows: slice) -> pa.Table:
        columns: dict[str, Any] = {name: self._columns[name][rows] for name in names if name != GEOMETRY}
        if GEOMETRY in names:
            columns[GEOMETRY] = [self._geometry(i).to_bytes() for i in range(rows.start, rows.stop)]
        kinds = {GEOMETRY: pa.binary()}
        return pa.table({name: pa.array(columns[name], kinds.get(name)) for name in names})


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name, without those of Python objects, which only a pickle could hold.

    Raises:
        FormatError: the file cannot be read.
        TooLargeError: its arrays are larger than any memory.
    """
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(part.file_size for part in packed.infolist()) > MAX_BYTES:
                raise TooLargeError(f"{path} holds more than {MAX_BYTES:,} bytes", hint="cut it into several files")
        with np.load(path, allow_pickle=False) as stored:
            for key in stored.files:
                try:
                    arrays[key] = stored[key]
                except ValueError as error:
                    if "pickle" not in str(error):
                        raise
    except DAMAGED as error:
        raise FormatError(f"{path} cannot be read: {error}", hint="copy or download it again") from None
    return arrays


def _geometries(
    z: np.ndarray, r: np.ndarray, f: np.ndarray | None, counts: np.ndarray | None, scale: float, name: str
) -> tuple[int, Callable[[int], Geometry]]:
    """How many geometries there are, and what gives the i-th."""
    if z.dtype.kind not in "iuf" or r.dtype.kind not in "iuf" or not r.ndim or r.shape[-1] != 3:
        raise ShapeError(f"{name}: Z is {z.dtype} {list(z.shape)} and R is {r.dtype} {list(r.shape)}", hint=_SHAPES)

    def geometry(atoms: np.ndarray, positions: np.ndarray, force: np.ndarray | None) -> Geometry:
        atoms = atoms.astype(np.int64)
        n = len(np.trim_zeros(atoms, "b"))  # zeros behind the last atom fill the array
        return Geometry(atoms[:n], positions[:n] * scale, None if force is None else force[:n] / scale)

    if r.ndim == 2 and counts is None and z.shape == r.shape[:1]:
        counts = np.array([len(z)])  # one molecule
    if r.ndim == 2 and counts is not None:
        ends = np.cumsum(counts.astype(np.int64))
        if not len(ends) or not ends[-1] == len(z) == len(r) or (counts < 0).any():
            raise ShapeError(f"{name}: atoms of Z and R are not as many as N says", hint=_SHAPES)
        starts = ends - counts.astype(np.int64)
        return len(ends), lambda i: geometry(
            z[starts[i] : ends[i]], r[starts[i] : ends[i]], None if f is None else f[starts[i] : ends[i]]
        )
    if r.ndim == 3 and z.shape in (r.shape[1:2], r.shape[:2]):
        return len(r), lambda i: geometry(z if z.ndim == 1 else z[i], r[i], None if f is None else f[i])
    raise ShapeError(f"{name}: Z {list(z.shape)} and R {list(r.shape)} do not fit together", hint=_SHAPES)


_SHAPES = "Z [atoms], R [atoms, 3] and N [molecules]; or R [frames, n, 3] with Z [n] or [frames, n]"


def _scale(unit: np.ndarray | None, name: str) -> float:
    """Angstrom in the file's unit of length; 1 where it names none."""
    word = "" if unit is None or unit.ndim else str(unit.item().decode() if unit.dtype.kind == "S" else unit.item())
    if word and word.lower() not in ANGSTROM:
        raise UnsupportedError(f"{name}: positions are in {word!r}", hint=f"known units: {', '.join(ANGSTROM)}")
    return ANGSTROM[word.lower()] if word else 1.0


def _column(values: np.ndarray) -> np.ndarray | list[str]:
    """Numbers or texts as Arrow takes them."""
    if values.dtype.kind == "S":
        return [text.decode("utf-8", "replace") for text in values.tolist()]
    if values.dtype.kind == "U":
        return [str(text) for text in values]
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
