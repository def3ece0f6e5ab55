"""Keep computed features in a folder, so that each entity is computed once for all tables and methods."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import numpy as np

from molgraph.auxiliary.tabular.table_featuriser import FeatureRows, TableFeaturiser
from molgraph.base.errors import StorageError
from molgraph.base.paths import atomic_write, storage_error

FORMAT = 1
WRITTEN_FROM = 16  # entities; fewer are computed again sooner than a file is opened
_STALE_SECONDS = 24 * 3600


def cached_features(
    featuriser: TableFeaturiser, texts: Sequence[str], threads: int, folder: Path | None
) -> FeatureRows:
    """Compute features, reading those of entities that the folder already holds.

    A file holds entities that were computed together: their keys (128-bit digests of the text) and their features. It
    is written under a temporary name and renamed, is never changed, and carries a checksum for each array (the
    archive's CRC-32), so any number of processes may use one folder; at worst two compute the same rows. A file that
    fails its checksum is deleted, and its entities are computed again.

    Args:
        featuriser: what computes them; its name and the version of rdkit name the sub-folder.
        texts: n texts.
        threads: threads and processes.
        folder: where files are, or None.
    """
    if folder is None or not len(texts):
        return featuriser.compute(list(texts), threads)
    width = featuriser.width
    place = folder / "features" / f"{featuriser.name}-f{FORMAT}-rdkit{version('rdkit')}"
    keys = np.array(
        [hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest() for text in texts], "V16"
    )
    distinct, first, back = np.unique(keys, return_index=True, return_inverse=True)
    found = np.zeros(len(distinct), dtype=bool)
    x: np.ndarray | None = None
    for path in sorted(place.glob("*.npz")) if place.is_dir() else ():
        x = _read(path, distinct, found, x, width)
    left = np.flatnonzero(~found)
    ok, reasons = found.copy(), np.full(len(distinct), "", dtype=object)
    if len(left):
        made = featuriser.compute([texts[i] for i in first[left]], threads)
        x = np.zeros((len(distinct), width), made.x.dtype) if x is None else x
        x[left], ok[left], reasons[left] = made.x, made.ok, made.reasons
        good = left[made.ok]
        if len(good) >= WRITTEN_FROM:
            _write(place, distinct[good], x[good])
    assert x is not None
    return FeatureRows(x[back], ok[back], reasons[back])


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
