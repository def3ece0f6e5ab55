"""Save a graph store as a folder of memory-mapped arrays with checksums, and load it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.errors import CannotReadError, FileKeptError, StorageError
from molgraph.base.paths import atomic_write, storage_error, sweep_old_temporaries, temporary_beside
from molgraph.data.graph_store import BOND_INDEX, GraphStore, Level
from molgraph.data.table import OK

FORMAT = 1
MANIFEST = "store.json"
_REBUILD = "delete the folder; it is made again from the molecules"


def save_store(store: GraphStore, folder: str | os.PathLike[str]) -> None:
    """Write a store as a folder of plain ``.npy`` files; it appears under its name complete or not at all.

    Args:
        store: what to keep.
        folder: the folder to make; a store that stands there already is replaced.

    Raises:
        StorageError: no space, no permission, or something that is no store, or more than one, stands there.
    """
    folder = Path(folder)
    check_place(folder)
    temporary = temporary_beside(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        sweep_old_temporaries(folder.parent)
        temporary.mkdir()
        _write(store, temporary)
        shutil.rmtree(folder, ignore_errors=True)  # a folder can't be renamed onto another
        try:
            os.rename(temporary, folder)
        except OSError:
            if not (folder / MANIFEST).is_file():  # else another process was sooner by a moment
                raise
    except OSError as error:
        raise storage_error(f"cannot write {folder}", error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_place(folder: Path) -> None:
    """Raise ``FileKeptError`` where a folder that is to hold a store holds anything else, which would be lost."""
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise FileKeptError(f"{folder} exists and is not a graph store", hint="name a folder that does not exist yet")
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name != MANIFEST and not re.fullmatch(r"\d{3,}\.npy", path.name):
            raise FileKeptError(f"{path} is no file of the graph store", hint="name another folder, or move it first")


def load_store(folder: str | os.PathLike[str], *, verify: bool = True) -> GraphStore:
    """Open a store that ``save_store`` wrote; the long arrays stay on disk, memory-mapped.

    Args:
        folder: the store's folder.
        verify: whether to read every file once and compare its checksum; sizes and shapes are always compared.

    Raises:
        StorageError: not there, not whole, changed, or from a newer molgraph.
    """
    folder = Path(folder)
    manifest = _manifest(folder)
    groups: dict[str, dict[Any, np.ndarray]] = {"offsets": {}, "level": {}, "table": {}, "extra": {}}
    try:
        for i, facts in enumerate(manifest["files"]):
            kind, *names = facts["role"]
            groups[kind][tuple(names) if kind == "level" else names[0]] = _read(folder / f"{i:03}.npy", facts, verify)
    except OSError as error:
        raise storage_error(f"cannot read {folder}", error) from error
    levels, index = {}, manifest.get("index", {"bond": BOND_INDEX})  # older stores hold molecules and no such key
    for name, offsets in groups["offsets"].items():
        arrays = {array: values for (level, array), values in groups["level"].items() if level == name}
        if len(offsets) != manifest["n_graphs"] + 1 or any(len(a) != offsets[-1] for a in arrays.values()):
            raise CannotReadError(f"{folder}: the arrays of {name!r} don't fit together", hint=_REBUILD)
        levels[name] = Level(np.array(offsets), arrays, index.get(name, {}))
    status, reason = np.full(manifest["n_graphs"], OK, object), np.full(manifest["n_graphs"], "", object)
    for i, word, message in manifest["not_ok"]:
        status[i], reason[i] = word, message
    # tables are small and become tensors, which must be writable: they are read into memory
    tables = {name: np.array(table) for name, table in groups["table"].items()}
    settings = manifest.get("settings", {})
    return GraphStore(levels, tables, status, reason, manifest["featuriser"], groups["extra"], settings)


def _roles(store: GraphStore) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """Every array with what it is."""
    for name, level in store.levels.items():
        yield ("offsets", name), level.offsets
        for field, array in level.arrays.items():
            yield ("level", name, field), array
    for name, table in store.tables.items():
        yield ("table", name), table
    for name, array in store.extra.items():
        yield ("extra", name), array


def _write(store: GraphStore, folder: Path) -> None:
    files = []
    for i, (role, array) in enumerate(_roles(store)):
        path, array = folder / f"{i:03}.npy", np.ascontiguousarray(array)
        with atomic_write(path) as file:
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
            file.write(array.reshape(-1).view(np.uint8).data)  # numpy's own writer would lose the error's number
        files.append({"role": role, "bytes": path.stat().st_size, "blake2b": _checksum(path)})
    body = {
        "format": FORMAT, "featuriser": store.featuriser, "n_graphs": len(store), "files": files,
        "not_ok": [[int(i), store.status[i], store.reason[i]] for i in np.flatnonzero(store.status != OK)],
        "settings": dict(store.settings),
        "index": {name: dict(level.index) for name, level in store.levels.items() if level.index},
    }  # fmt: skip
    with atomic_write(folder / MANIFEST, "w") as file:
        json.dump({"checksum": _body_checksum(body), "body": body}, file)


def _read(path: Path, facts: dict[str, Any], verify: bool) -> np.ndarray:
    if path.stat().st_size != facts["bytes"]:
        raise CannotReadError(f"{path} has {path.stat().st_size} bytes, expected {facts['bytes']}", hint=_REBUILD)
    if verify and _checksum(path) != facts["blake2b"]:
        raise CannotReadError(f"{path} fails its checksum", hint=_REBUILD)
    try:
        # a plain array over the map: indexing a np.memmap costs several times as much
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError as error:
        raise CannotReadError(f"{path} is not an array: {error}", hint=_REBUILD) from error


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        body = whole["body"]
        if body["format"] > FORMAT:
            raise StorageError(f"{folder} was written by a newer molgraph", hint="update molgraph, or delete it")
        if whole["checksum"] != _body_checksum(body):
            raise CannotReadError(f"{path} fails its checksum", hint=_REBUILD)
    except OSError as error:
        raise storage_error(f"cannot read {path}", error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise CannotReadError(f"{path} is not the list of a graph store", hint=_REBUILD) from error
    return body


def _body_checksum(body: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
