"""Hash the molecules that a model learnt from, so that they are known again where it is evaluated."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from molgraph.base.errors import DamagedModelError
from molgraph.data.splits.structures import entity_keys
from molgraph.data.table import Table

ARRAY = "trained_on"  # its name in a model file


def molecule_hashes(table: Table) -> np.ndarray:
    """uint64 [n]: the first 64 bits of sha256 of each row's stereo-free parent, equal for salts and stereoisomers.

    Of pairs all entities count, of geometries what is bonded. It is 0 where an entity cannot be read, and for graphs. A
    hash does not tell the molecule, but whoever has a molecule can find out whether it is among the hashes.

    Example:
        >>> from molgraph.data.table import make_table
        >>> a, b, c, bad = molecule_hashes(make_table(["CCO", "OCC.Cl", "CCN", "C("])).tolist()
        >>> a == b, a == c, bad
        (True, False, 0)
    """
    hashes = np.zeros(len(table), dtype=np.uint64)
    rows = np.flatnonzero(table.ok)
    digests = [hashlib.sha256(key.encode()).digest()[:8] if key else bytes(8) for key in entity_keys(table, rows)]
    hashes[rows] = np.frombuffer(b"".join(digests), dtype="<u8")
    return hashes


def distinct(hashes: np.ndarray) -> np.ndarray | None:
    """The hashes as a model keeps them: sorted, each once, none of unreadable rows; None where none is left."""
    kept = np.unique(hashes)
    kept = kept[kept != 0]
    return kept if len(kept) else None


def checked(array: Any) -> np.ndarray | None:
    """The array of a model file, which nobody trusts; None where the file is older and has none."""
    if array is not None and (array.dtype != np.uint64 or array.ndim != 1 or (array[1:] <= array[:-1]).any()):
        raise DamagedModelError(f"the model file's array {ARRAY!r} is no sorted list of hashes")
    return array
