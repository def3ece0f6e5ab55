"""Hash the content of a table, whatever file, column order or packing it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from molgraph.base.table import Entities, Table

FORMAT = b"molgraph-content-1"
DERIVED = ("charge",)  # arrays that RDKit computes from the others, whose last digits its versions may write otherwise


def content_hash(table: Table) -> str:
    """sha256 of a table's ids, structures, targets (name, kind, classes) and values.

    Names of entity columns, weights, status, further descriptors and partial charges of atoms don't count: they differ
    between the layouts of one dataset.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> from molgraph.data.table import make_table
        >>> content_hash(make_table(["CCO"])) == content_hash(make_table(("CCO",)))
        True
        >>> content_hash(make_table(["CCO"])) == content_hash(make_table(["OCC"]))
        False
    """
    digest = hashlib.sha256(FORMAT)
    _texts(digest, table.ids)
    for entity in table.entities:
        digest.update(entity.kind.encode())
        if entity.kind in ("molecule", "sequence", "reaction"):
            _texts(digest, entity.values)
        else:
            for value in entity.values:
                _graph(digest, value, DERIVED)
    for j, target in enumerate(table.row_targets):
        _texts(digest, [target.name, target.kind, *target.classes])
        if table.y is not None:
            _numbers(digest, table.y[:, j])
    for target in table.targets:
        if target.level != "row":
            _texts(digest, [target.name, target.kind, target.level, *target.classes])
            packed = table.packed[target.name]
            _texts(digest, packed.sizes)
            _numbers(digest, packed.values)
    return digest.hexdigest()


def entity_texts(column: Entities) -> np.ndarray:
    """Texts of an entity column as they stand; digests of graphs and geometries."""
    return np.array([v if isinstance(v, str) else value_digest(v) for v in column.values], dtype=object)


def value_digest(value: Any) -> str:
    """sha256 of one graph or geometry, or of a text; anything else has one too."""
    digest = hashlib.sha256(FORMAT)
    if isinstance(value, str):
        _texts(digest, [value])
    else:
        _graph(digest, value)
    return digest.hexdigest()


def text_digests(texts: Iterable[str], *versions: str) -> np.ndarray:
    """128 bits for each text and for what reads it, uint64 [n, 2].

    Example:
        >>> text_digests(["CCO", "C"]).shape
        (2, 2)
    """
    base = hashlib.blake2b("".join(f"{version} " for version in versions).encode(), digest_size=16)
    out = bytearray()
    for text in texts:
        one = base.copy()
        one.update(text.encode("utf-8", "surrogatepass"))
        out += one.digest()
    return np.frombuffer(bytes(out), dtype=np.uint64).reshape(-1, 2)


def _texts(digest: Any, texts: Any) -> None:
    """Length and bytes of each text, so that no two lists run together alike."""
    pieces = [str(text).encode("utf-8", "surrogatepass") for text in texts]
    digest.update(np.array([len(pieces), *map(len, pieces)], dtype="<i8").tobytes())
    digest.update(b"".join(pieces))


def _numbers(digest: Any, values: np.ndarray) -> None:
    """Floats of 64 bits, every NaN and every zero alike."""
    values = np.asarray(values, dtype="<f8") + 0.0
    digest.update(np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes())


def _graph(digest: Any, value: Any, but: tuple[str, ...] = ()) -> None:
    """The named arrays of a graph or geometry, those that hold no numbers as texts; of anything else its text."""
    if not hasattr(value, "arrays"):
        _texts(digest, [type(value).__name__, value])
        return
    for name, array in value.arrays().items():
        if name in but:
            continue
        _texts(digest, [name, *map(str, array.shape)])
        (_texts if array.dtype.kind == "U" else _numbers)(digest, array.ravel())
