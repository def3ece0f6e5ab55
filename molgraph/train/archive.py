"""The zip of a model file: members in, a whole file out; and back, nothing read before its size is known."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from molgraph.base.errors import ModelFileError
from molgraph.base.paths import atomic_write, missing_file, storage_error

FORMAT, FORMAT_VERSION = "molgraph model", 1
MANIFEST, WEIGHTS = "manifest.json", "weights.safetensors"
PARTS = ("method.json", "standardiser.json", "targets.json", "calibration.json", "card.json", "vectors.json")
LARGEST_FILE = 4 << 30
LARGEST_JSON = 64 << 20
LARGEST_MANIFEST = 64 << 10
LARGEST_DIRECTORY = 16 << 10
LARGEST_HEADER = 8 << 20
END = struct.Struct("<4s4H2LH")  # the zip's last record: signature, disks, entries, directory size and place
DTYPES = {"F64": 8, "F32": 4, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}
_FAULTS: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    KeyError,
    IndexError,
)
_FAULTS += (struct.error, NotImplementedError, TypeError, OverflowError, RecursionError, MemoryError)


def write_archive(path: Path, parts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write JSON parts and arrays as one file, complete or not at all; the same content gives the same bytes."""
    members = {name: dump_json(parts[name]) for name in PARTS}
    members[WEIGHTS] = save_tensors({name: np.ascontiguousarray(value) for name, value in sorted(arrays.items())})
    digests = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in members.items()}
    written_by = {key: parts["card.json"]["versions"].get(key, "") for key in ("molgraph",)}
    manifest = {"format": FORMAT, "version": FORMAT_VERSION, "members": digests} | written_by
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", allowZip64=False) as archive:
        for name, data in {MANIFEST: dump_json(manifest), **members}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_STORED if name == WEIGHTS else zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """JSON parts and arrays of a model file that somebody else may have made.

    Raises:
        ModelFileError: corrupt, truncated, foreign, newer or absurd; one sentence says which.
        StorageError: there is no such file, or it may not be read.
    """
    try:
        size = os.path.getsize(path)
        file = open(path, "rb")  # noqa: SIM115 - opened apart from reading: other errors, other words
    except FileNotFoundError:
        raise missing_file(path, "model file") from None
    except OSError as error:
        raise storage_error(f"cannot read the model file {path}", error) from error
    with file:
        try:
            return _read(file, size)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error.message}", hint=error.hint) from error.__cause__
        except _FAULTS as error:
            hint = "copy or download it again, or use another copy"
            raise ModelFileError(f"{path}: the model file is damaged ({_line(error)})", hint=hint) from error


def dump_json(value: Any) -> bytes:
    """Strict JSON: sorted keys, no NaN."""
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False, indent=1).encode()


def _read(file: Any, size: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    _check_frame(file, size)
    with zipfile.ZipFile(file) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        if len(infos) != len(archive.infolist()):
            raise ModelFileError("the model file names a part twice")
        if MANIFEST not in infos:
            raise ModelFileError("this zip is no molgraph model file", hint="model files end in .mgm")
        manifest = load_json(_member(archive, infos[MANIFEST], LARGEST_MANIFEST, size), MANIFEST)
        digests = _check_manifest(manifest, set(infos))
        parts, arrays = {}, {}
        for name, digest in digests.items():
            limit = LARGEST_FILE if name == WEIGHTS else LARGEST_JSON
            data = _member(archive, infos[name], limit, size)
            if len(data) != digest["size"] or hashlib.sha256(data).hexdigest() != digest["sha256"]:
                raise ModelFileError(f"the model file is damaged: {name} does not match its checksum")
            if name == WEIGHTS:
                arrays = _tensors(data)
            else:
                parts[name] = load_json(data, name)
    return parts, arrays


def _check_frame(file: Any, size: int) -> None:
    """The zip's last record, before a library walks through a directory of any size."""
    if size > LARGEST_FILE:
        raise ModelFileError(f"the file has {size:,} bytes, more than any model file")
    start = file.read(4)
    if start != b"PK\x03\x04":
        raise ModelFileError("this is no molgraph model file", hint="model files end in .mgm; is this one a table?")
    if size < END.size:
        raise ModelFileError("the model file is cut short")
    file.seek(size - END.size)
    signature, *_, entries, directory, _place, comment = END.unpack(file.read(END.size))
    if signature != b"PK\x05\x06" or comment:
        raise ModelFileError("the model file is cut short, or something was added to it")
    if entries > len(PARTS) + 2 or directory > LARGEST_DIRECTORY:
        raise ModelFileError("this zip has more parts than a molgraph model file")


def _check_manifest(manifest: Any, names: set[str]) -> dict[str, Any]:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError("this zip is no molgraph model file", hint="model files end in .mgm")
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError("the model file does not say its format's version")
    if version > FORMAT_VERSION:
        writer = str(manifest.get("molgraph", ""))[:40]
        raise ModelFileError(
            f"the model file has format {version}, this molgraph reads formats up to {FORMAT_VERSION}",
            hint=f"it was written by molgraph {writer}: install that version or a newer one",
        )
    digests = manifest.get("members")
    expected = {*PARTS, WEIGHTS}
    if not isinstance(digests, dict) or set(digests) != expected or names != expected | {MANIFEST}:
        raise ModelFileError("the model file lacks a part, or holds one too many")
    return digests


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, size: int) -> bytes:
    """One member, once its sizes are possible ones."""
    if info.file_size > limit or info.compress_size > size or info.flag_bits & 1:
        raise ModelFileError(f"the model file's {info.filename} claims {info.file_size:,} bytes, which no model needs")
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        raise ModelFileError(f"the model file is damaged: two sizes for {info.filename}")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ModelFileError(f"the model file's {info.filename} is packed in a way that model files are not")
    if info.filename == WEIGHTS and info.compress_type != zipfile.ZIP_STORED:
        raise ModelFileError("the model file's weights are packed, which those of a model file never are")
    with archive.open(info) as member:
        return member.read(info.file_size + 1)


def load_json(data: bytes, name: str) -> Any:
    """Strict JSON."""

    def refuse(word: str) -> None:
        raise ModelFileError(f"the model file's {name} holds {word}, which is no JSON")

    try:
        return json.loads(data.decode("utf-8"), parse_constant=refuse)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelFileError(f"the model file's {name} is no JSON ({_line(error)})") from error


def _tensors(data: bytes) -> dict[str, np.ndarray]:
    """Arrays of a safetensors block, once its header is sound: known types, shapes that fit their bytes."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(LARGEST_HEADER, len(data) - 8):
        raise ModelFileError("the model file's weights have an impossible header")
    header = load_json(data[8 : 8 + length], WEIGHTS)
    spans = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (int(v) for v in entry["data_offsets"])
        shape = [int(v) for v in entry["shape"]]
        width = DTYPES.get(entry["dtype"])
        if width is None or min(shape, default=0) < 0 or math.prod(shape) * width != end - begin:
            raise ModelFileError(f"the model file's array {name[:80]!r} has a type or shape unlike its bytes")
        spans.append((begin, end))
    spans.sort()
    edges = [0] + [end for _, end in spans]
    if [begin for begin, _ in spans] != edges[:-1] or edges[-1] != len(data) - 8 - length:
        raise ModelFileError("the model file's arrays overlap or leave gaps")
    return load_tensors(data)


def _line(error: BaseException) -> str:
    words = str(error).strip()
    return words.splitlines()[0][:120] if words else type(error).__name__
