"""Keep computed features in a folder, so that each entity is computed once for all tables and methods."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import numpy as np

from molgraph.auxiliary.tabular.table_featuriser import FeatureRows, TableFeaturiser
from molgraph.base.errors import StorageError
from molgraph.base.paths import atomic_write, storage_error, sweep_old_temporaries
from molgraph.chem.fingerprints import Fingerprints
from molgraph.data.content import text_digests

FORMAT = 1
WRITTEN_FROM = 16  # entities; fewer are computed again sooner than a file is opened


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
    place = folder / "features" / f"{featuriser.name}-f{FORMAT}-rdkit{version('rdkit')}"
    keys, first, back = np.unique(text_digests(texts).view("V16").ravel(), return_index=True, return_inverse=True)
    ok, reasons = np.zeros(len(keys), dtype=bool), np.full(len(keys), "", dtype=object)
    x = np.zeros((len(keys), featuriser.width), np.uint8 if featuriser.counts else np.float32)
    for path in sorted(place.glob("*.npz")):
        _read(path, keys, ok, x)
    left = np.flatnonzero(~ok)
    if len(left):
        result = featuriser.compute([texts[i] for i in first[left]], threads)
        x[left], ok[left], reasons[left] = result.x, result.ok, result.reasons
        good = left[result.ok]
        if len(good) >= WRITTEN_FROM:
            _write(place, keys[good], x[good])
    return Fingerprints(x[back], ok[back], reasons[back])


def _read(path: Path, wanted: np.ndarray, found: np.ndarray, x: np.ndarray) -> None:
    """Fill in the rows of a file that are wanted and not found yet."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            keys = file["keys"]
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            new = (keys[at] == wanted) & ~found
            if new.any():
                x[new] = file["x"][at[new]]
                found |= new
    except (ValueError, TypeError, KeyError, EOFError, IndexError, zipfile.BadZipFile):
        with suppress(OSError):
            path.unlink()
    except OSError as error:
        if path.exists():  # else another process found it damaged
            raise storage_error(f"cannot read {path}", error) from error


def _write(place: Path, keys: np.ndarray, x: np.ndarray) -> None:
    """Add a file; the same molecules give the same name, so that two processes write one."""
    path = place / f"{hashlib.blake2b(keys.tobytes(), digest_size=12).hexdigest()}.npz"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(f"cannot make the folder {place}", error) from error
    sweep_old_temporaries(place)
    try:
        with atomic_write(path) as file:
            np.savez_compressed(file, keys=keys, x=x)
    except StorageError:
        if not path.is_file():
            raise
