"""Save a graph store as a folder of memory-mapped arrays with checksums, and load it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from molgraph.base.errors import StorageError
from molgraph.base.paths import storage_error
from molgraph.data.graph_store import BOND_INDEX, GraphStore, Level
from molgraph.data.table import OK

FORMAT = 1
_MANIFEST = "store.json"
_STALE_SECONDS = 24 * 3600
_TEMPORARY = re.compile(r"^\..+\.(?P<host>[^.]*)\.(?P<pid>\d+)\.[0-9a-f]{8}\.part$")
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
    temporary = _write(store, folder)
    try:
        _replace(temporary, folder)
    except OSError as error:
        raise storage_error(f"cannot write {folder}", error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_place(folder: Path) -> None:
    """Raise ``StorageError`` where a folder that is to hold a store holds anything else, which would be lost."""
    if folder.exists() and not (folder / _MANIFEST).is_file():
        raise StorageError(f"{folder} exists and is not a graph store", hint="name a folder that does not exist yet")
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name != _MANIFEST and not re.fullmatch(r"\d{3,}\.npy", path.name):
            raise StorageError(f"{path} is no file of the graph store", hint="name another folder, or move it first")


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
    try:
        read = [_array(folder / f"{i:03}.npy", facts, verify) for i, facts in enumerate(manifest["files"])]
    except OSError as error:
        raise storage_error(f"cannot read {folder}", error) from error
    roles = {tuple(facts["role"]): array for facts, array in zip(manifest["files"], read, strict=True)}

    def group(kind: str) -> dict[str, np.ndarray]:
        return {role[1]: array for role, array in roles.items() if role[0] == kind and len(role) == 2}

    levels, index = {}, manifest.get("index", {"bond": BOND_INDEX})  # older stores hold molecules and no such key
    for name, offsets in group("offsets").items():
        arrays = {role[2]: array for role, array in roles.items() if role[:2] == ("level", name)}
        offsets = np.array(offsets)
        if len(offsets) != manifest["n_graphs"] + 1 or any(len(a) != offsets[-1] for a in arrays.values()):
            raise StorageError(f"{folder}: the arrays of {name!r} don't fit together", hint=_REBUILD)
        levels[name] = Level(offsets, arrays, index.get(name, {}))
    status, reason = np.full(manifest["n_graphs"], OK, object), np.full(manifest["n_graphs"], "", object)
    for i, word, why in manifest["not_ok"]:
        status[i], reason[i] = word, why
    # tables are small and become tensors, which must be writable: they are read into memory
    tables = {name: np.array(table) for name, table in group("table").items()}
    return GraphStore(
        levels, tables, status, reason, manifest["featuriser"], group("extra"), manifest.get("settings", {})
    )


def cached(folder: Path, key: str, build: Any) -> GraphStore:
    """The store kept in ``folder`` under ``key``, built first where there is none.

    Two processes may do this at once: the first to finish is kept, the other one's is thrown away.
    A store that fails its checksum is built again.
    """
    place = folder / key
    if (place / _MANIFEST).is_file():
        with suppress(StorageError):
            return load_store(place)
        shutil.rmtree(place, ignore_errors=True)
    store = build()
    temporary = _write(store, place)
    try:
        os.rename(temporary, place)
    except OSError as error:
        if not (place / _MANIFEST).is_file():
            raise storage_error(f"cannot write {place}", error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return load_store(place, verify=False)


def content_key(texts: list[str], *versions: str) -> str:
    """32 hexadecimal digits that stand for the texts in their order and for what reads them."""
    words = json.dumps([FORMAT, versions, texts], ensure_ascii=True).encode()
    return hashlib.blake2b(words, digest_size=16).hexdigest()


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


def _write(store: GraphStore, final: Path) -> Path:
    """Write everything into a new temporary folder beside ``final``; its path."""
    temporary = final.parent / f".{final.name}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}.part"
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final.parent)
        temporary.mkdir()
        files = []
        for i, (role, array) in enumerate(_roles(store)):
            files.append({"role": role} | _write_array(temporary / f"{i:03}.npy", array))
        bad = np.flatnonzero(store.status != OK)
        body = {
            "format": FORMAT, "featuriser": store.featuriser, "n_graphs": len(store), "files": files,
            "not_ok": [[int(i), store.status[i], store.reason[i]] for i in bad],
            "settings": dict(store.settings),
            "index": {name: dict(level.index) for name, level in store.levels.items() if level.index},
        }  # fmt: skip
        with open(temporary / _MANIFEST, "w", encoding="utf-8") as file:
            json.dump({"checksum": _body_checksum(body), "body": body}, file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise storage_error(f"cannot write {final}", error) from error
        raise
    return temporary


class _Hashed:
    """A file that is hashed as it is written; numpy, not seeing a plain file, leaves errors their number."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.blake2b(digest_size=16)

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self.file.write(data)


def _write_array(path: Path, array: np.ndarray) -> dict[str, Any]:
    with open(path, "wb") as file:
        hashed = _Hashed(file)
        np.lib.format.write_array(hashed, np.ascontiguousarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": path.stat().st_size, "blake2b": hashed.digest.hexdigest()}


def _array(path: Path, facts: dict[str, Any], verify: bool) -> np.ndarray:
    if path.stat().st_size != facts["bytes"]:
        raise StorageError(f"{path} has {path.stat().st_size} bytes, expected {facts['bytes']}", hint=_REBUILD)
    if verify and _checksum(path) != facts["blake2b"]:
        raise StorageError(f"{path} fails its checksum", hint=_REBUILD)
    try:
        # a plain array over the map: indexing a np.memmap costs several times as much
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError as error:
        raise StorageError(f"{path} is not an array: {error}", hint=_REBUILD) from error


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / _MANIFEST
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        body = whole["body"]
        if body["format"] > FORMAT:
            raise StorageError(f"{folder} was written by a newer molgraph", hint="update molgraph, or delete it")
        if whole["checksum"] != _body_checksum(body):
            raise StorageError(f"{path} fails its checksum", hint=_REBUILD)
    except OSError as error:
        raise storage_error(f"cannot read {path}", error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} is not the list of a graph store", hint=_REBUILD) from error
    return body


def _body_checksum(body: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _replace(temporary: Path, final: Path) -> None:
    """Rename; an older store of that name is moved aside first, since a folder can't be renamed onto another."""
    if not final.exists():
        os.rename(temporary, final)
        return
    aside = final.parent / f".{final.name}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}.part"
    os.rename(final, aside)
    os.rename(temporary, final)
    shutil.rmtree(aside, ignore_errors=True)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]


def _sweep(parent: Path) -> None:
    """Remove temporary folders that killed runs left behind: their process is gone, or they are a day old."""
    for path in parent.glob(".*.part"):
        found = _TEMPORARY.match(path.name)
        if not found:
            continue
        with suppress(OSError):
            dead = os.name == "posix" and found["host"] == _host() and not Path(f"/proc/{found['pid']}").exists()
            dead = dead and Path("/proc/self").exists()
            if dead or time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
