"""Cache conformers on disk by SMILES and settings, in one SQLite file shared by processes."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np

from molgraph.base.errors import MissingFileError
from molgraph.base.paths import cache_dir

VERSION = "conformers.1"  # of what makes them, beside RDKit's
BUSY = 30.0  # seconds to wait for another process that writes
AT_ONCE = 500  # keys of one question
Entry: TypeAlias = tuple[np.ndarray, np.ndarray, str, str]  # numbers, positions, the force field, the reason
_TABLE = "CREATE TABLE IF NOT EXISTS conformers (key BLOB PRIMARY KEY, z BLOB, xyz BLOB, relaxed TEXT, reason TEXT)"


def conformer_file() -> Path | None:
    """Where conformers are kept, in the cache folder; None where no home folder is known."""
    try:
        return cache_dir() / "conformers.sqlite"
    except MissingFileError:
        return None


def cache_keys(smiles: Sequence[str], *how: str) -> list[bytes]:
    """A hash of each SMILES and of all that its conformers depend on.

    Example:
        >>> a, b = cache_keys(["C", "CC"], "2026.03.5", "1")
        >>> len(a), a == b, a == cache_keys(["C"], "2026.03.5", "2")[0]
        (16, False, False)
    """
    base = hashlib.blake2b("\0".join((VERSION, *how)).encode() + b"\0", digest_size=16)
    keys = []
    for text in smiles:
        one = base.copy()
        one.update(text.encode("utf-8", "surrogatepass"))
        keys.append(one.digest())
    return keys


class ConformerCache:
    """Conformers by key. A file that is damaged, full or locked keeps nothing: all of it can be made again.

    Args:
        path: the file; it and its folder are made at the first writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """The entries of those keys that are known."""
        entries: dict[bytes, Entry] = {}
        if not self.path.is_file():
            return entries
        try:
            with self._open() as base:
                for first in range(0, len(keys), AT_ONCE):
                    some = keys[first : first + AT_ONCE]
                    marks = ",".join("?" * len(some))
                    for key, z, xyz, relaxed, reason in base.execute(
                        f"SELECT key, z, xyz, relaxed, reason FROM conformers WHERE key IN ({marks})", some
                    ):
                        numbers = np.frombuffer(z, np.uint8)
                        at = np.frombuffer(xyz, np.float32).reshape(-1, len(numbers), 3) if z else np.zeros((0, 0, 3))
                        entries[key] = numbers, at.astype(np.float32), str(relaxed), str(reason)
        except (sqlite3.Error, ValueError, TypeError, OSError):
            return {}
        return entries

    def write(self, entries: Mapping[bytes, Entry]) -> None:
        """Add entries; one that another process wrote meanwhile stays."""
        if not entries:
            return
        rows = [
            (k, z.astype(np.uint8).tobytes(), at.astype("<f4").tobytes(), *more)
            for k, (z, at, *more) in entries.items()
        ]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as base:
                base.execute(_TABLE)
                base.executemany("INSERT OR IGNORE INTO conformers VALUES (?, ?, ?, ?, ?)", rows)
        except (sqlite3.Error, OSError):
            return

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are kept together at the end."""
        with closing(sqlite3.connect(self.path, timeout=BUSY)) as base, base:
            yield base
