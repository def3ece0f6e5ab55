"""Molecules and a function of them in; their features out, computed once and kept in a folder for whoever asks next."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from molgraph.base.errors import StorageError
from molgraph.base.paths import atomic_write, storage_error

FORMAT = 1
KEPT_FROM = 16  # molecules; so few are computed again sooner than a file is opened
_STALE_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Rows:
    """Features of a list of SMILES.

    Args:
        x: [n, width]; rows that could not be read hold nothing of use.
        ok: bool [n].
        reasons: object array [n]: one line where a row could not be read, else empty.
    """

    x: np.ndarray
    ok: np.ndarray
    reasons: np.ndarray


def kept(
    name: str, smiles: Sequence[str], compute: Callable[[list[str]], Rows], width: int, folder: Path | None
) -> Rows:
    """What ``compute`` gives, with molecules that the folder knows read from there.

    A file holds molecules that were computed together: their keys (128-bit digests of the SMILES text) and rows. It is
    written under a temporary name and renamed, is never changed, and carries a checksum for each array (the archive's
    CRC-32), so any number of processes may use one folder; at worst two compute the same rows. A file that fails its
    checksum is deleted, and its molecules are computed again.

    Args:
        name: what is computed, with all settings that it depends on; names the sub-folder, as rdkit's version does.
        smiles: n molecules.
        compute: ``texts -> Rows``, each row by its own text alone.
        width: columns.
        folder: where to keep them, or None.
    """
    if folder is None or not len(smiles):
        return compute(list(smiles))
    place = folder / "features" / f"{name}-f{FORMAT}-rdkit{version('rdkit')}"
    keys = np.array(
        [hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest() for text in smiles], "V16"
    )
    distinct, first, back = np.unique(keys, return_index=True, return_inverse=True)
    found = np.zeros(len(distinct), dtype=bool)
    x: np.ndarray | None = None
    for path in sorted(place.glob("*.npz")) if place.is_dir() else ():
        x = _read(path, distinct, found, x, width)
    left = np.flatnonzero(~found)
    ok, reasons = found.copy(), np.full(len(distinct), "", dtype=object)
    if len(left):
        texts = [smiles[i] for i in first[left]]
        made = compute(texts)
        x = np.zeros((len(distinct), width), made.x.dtype) if x is None else x
        x[left], ok[left], reasons[left] = made.x, made.ok, made.reasons
        good = left[made.ok]
        if len(good) >= KEPT_FROM:
            _write(place, distinct[good], x[good])
    assert x is not None
    return Rows(x[back], ok[back], reasons[back])


def _read(path: Path, wanted: np.ndarray, found: np.ndarray, x: np.ndarray | None, width: int) -> np.ndarray | None:
    """Fill in the rows of a file that are wanted and not found yet."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            keys = file["keys"]
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            new = (keys[at] == wanted) & ~found
            if not new.any():
                return x
            rows = file["x"]
        if rows.shape != (len(keys), width) or keys.dtype != wanted.dtype:
            raise ValueError("of another shape")
    except (ValueError, KeyError, EOFError, IndexError, zipfile.BadZipFile, zipfile.error):
        with suppress(OSError):
            path.unlink()
        return x
    except OSError as error:
        if not path.exists():  # another process found it damaged
            return x
        raise storage_error(f"cannot read {path}", error) from error
    x = np.zeros((len(wanted), width), rows.dtype) if x is None else x
    x[new] = rows[at[new]]
    found |= new
    return x


def _write(place: Path, keys: np.ndarray, x: np.ndarray) -> None:
    """Add a file; the same molecules give the same name, so that two processes write one."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(f"cannot make the folder {place}", error) from error
    _sweep(place)
    name = hashlib.blake2b(keys.tobytes(), digest_size=12).hexdigest()
    try:
        with atomic_write(place / f"{name}.npz") as file:
            np.savez_compressed(file, keys=keys, x=x)
    except StorageError:
        if not (place / f"{name}.npz").is_file():
            raise


def _sweep(place: Path) -> None:
    """Remove temporary files that a killed run left a day ago."""
    for path in place.glob(".*.tmp"):
        with suppress(OSError):
            if time.time() - os.stat(path).st_mtime > _STALE_SECONDS:
                path.unlink()
