"""Write a model's parts as one zip file, and read them back without trusting it."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from molgraph.base.errors import ModelFileError, MolgraphError, StorageError
from molgraph.base.paths import atomic_write, missing_file, storage_error

FORMAT, FORMAT_VERSION = "molgraph model", 1
MANIFEST, WEIGHTS = "manifest.json", "weights.safetensors"
PARTS = ("method.json", "standardiser.json", "targets.json", "calibration.json", "card.json", "vectors.json")
LARGEST_FILE = 4 << 30
LARGEST_JSON = 16 << 20  # of all parts together
LARGEST_MANIFEST = 64 << 10
LARGEST_DIRECTORY = 16 << 10
LARGEST_HEADER = 8 << 20
MOST_ARRAYS, MOST_DIMENSIONS = 100_000, 8
END = struct.Struct("<4s4H2LH")  # the zip's last record: signature, disks, entries, directory size and place
DTYPES = {"F64": 8, "F32": 4, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}
FAULTS: tuple[type[Exception], ...] = (  # what damaged or hostile contents make libraries raise
    zipfile.BadZipFile, zlib.error, struct.error, SafetensorError, OSError, EOFError, ValueError, TypeError,
    LookupError, ArithmeticError, AttributeError, AssertionError, RuntimeError, MolgraphError,
)  # fmt: skip
MACHINE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE)  # no fault of the file


def write_archive(path: Path, parts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write JSON parts and arrays as one file, complete or not at all; the same content gives the same bytes."""
    members = {name: dump_json(parts[name]) for name in PARTS}
    members[WEIGHTS] = save_tensors({name: np.asarray(value, order="C") for name, value in sorted(arrays.items())})
    size = json_size(parts)
    if size > LARGEST_JSON:
        raise ModelFileError(
            f"the model's description has {size:,} bytes, at most {LARGEST_JSON:,} may be",
            hint="train fewer members or targets at once",
        )
    digests = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in members.items()}
    written_by = {key: parts["card.json"]["versions"].get(key, "") for key in ("molgraph",)}
    manifest = {"format": FORMAT, "version": FORMAT_VERSION, "members": digests} | written_by
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", allowZip64=False) as archive:
        for name, data in {MANIFEST: dump_json(manifest), **members}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_STORED if name == WEIGHTS else zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def json_size(parts: Mapping[str, Any]) -> int:
    """Bytes of the JSON parts in a file."""
    return sum(len(dump_json(part)) for part in parts.values())


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """JSON parts and arrays of a model file that somebody else may have made.

    Raises:
        ModelFileError: corrupt, truncated, foreign, newer or absurd; one sentence says which.
        StorageError: there is no such file, or it may not be read.
    """
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(
            about.st_mode
        ):  # opening a pipe would wait for its writer
            raise StorageError(
                f"cannot read the model file {path}: it is a pipe or device", hint="copy it to a file first"
            )
        file = open(path, "rb")  # noqa: SIM115 - opened apart from reading: other errors, other words
    except FileNotFoundError:
        raise missing_file(path, "model file") from None
    except OSError as error:
        raise storage_error(f"cannot read the model file {path}", error) from error
    with file, refused(path, "the model file is damaged"):
        return _read(file, about.st_size)


@contextmanager
def refused(path: Path, words: str) -> Iterator[None]:
    """Turn whatever a file's contents make go wrong into a ``ModelFileError`` that names the file.

    Args:
        path: the file.
        words: what is wrong, where the error itself does not say it.
    """
    try:
        yield
    except StorageError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error.message}", hint=error.hint) from error.__cause__
    except MolgraphError as error:
        raise ModelFileError(f"{path}: {words} ({error.message})", hint=error.hint) from error
    except FAULTS as error:
        if isinstance(error, OSError) and error.errno in MACHINE:
            raise storage_error(f"cannot read the model file {path}", error) from error
        hint = "copy or download it again, or use another copy"
        raise ModelFileError(f"{path}: {words} ({_line(error)})", hint=hint) from error


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
        claimed = sum(infos[name].file_size for name in PARTS)
        if claimed > LARGEST_JSON:
            raise ModelFileError(f"the model file claims {claimed:,} bytes of JSON, which no model needs")
        parts, arrays = {}, {}
        for name, digest in digests.items():
            limit = LARGEST_FILE if name == WEIGHTS else LARGEST_JSON
            data = _member(archive, infos[name], limit, size)
            found = (len(data), hashlib.sha256(data).hexdigest())
            if not isinstance(digest, dict) or found != (digest.get("size"), digest.get("sha256")):
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
    """Strict JSON: no NaN, no number that becomes infinite, no half of a character."""

    def refuse(word: str) -> NoReturn:
        raise ModelFileError(f"the model file's {name} holds {word[:40]}, which is no JSON")

    def finite(word: str) -> float:
        return value if math.isfinite(value := float(word)) else refuse(word)

    try:
        value = json.loads(data.decode("utf-8"), parse_constant=refuse, parse_float=finite)
        if b"\\ud" in data or b"\\uD" in data:  # half a pair could not be printed or written anywhere
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the model file's {name} is no JSON ({_line(error)})") from error


def _tensors(data: bytes) -> dict[str, np.ndarray]:
    """Arrays of a safetensors block, once its header is sound: known types, shapes that fit their bytes."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(LARGEST_HEADER, len(data) - 8):
        raise ModelFileError("the model file's weights have an impossible header")
    header = load_json(data[8 : 8 + length], WEIGHTS)
    if not isinstance(header, dict) or len(header) > MOST_ARRAYS:
        raise ModelFileError("the model file's weights have an impossible header")
    about = header.pop("__metadata__", {})
    if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
        raise ModelFileError("the model file's weights have metadata that is no text")
    spans = sorted(_span(name, entry) for name, entry in header.items())
    edges = [0] + [end for _, end in spans]
    if [begin for begin, _ in spans] != edges[:-1] or edges[-1] != len(data) - 8 - length:
        raise ModelFileError("the model file's arrays overlap or leave gaps")
    return load_tensors(data)


def _span(name: str, entry: Any) -> tuple[int, int]:
    """Where an array begins and ends, once its type and shape fit its bytes."""
    words = f"the model file's array {name[:80]!r} has a type or shape unlike its bytes"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(words)
    shape, offsets, width = entry["shape"], entry["data_offsets"], DTYPES.get(str(entry["dtype"]))
    whole = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2
    if width is None or not whole or len(shape) > MOST_DIMENSIONS:
        raise ModelFileError(words)
    if not all(type(value) is int and 0 <= value <= LARGEST_FILE for value in (*shape, *offsets)):
        raise ModelFileError(words)
    if math.prod(shape) * width != offsets[1] - offsets[0]:
        raise ModelFileError(words)
    return offsets[0], offsets[1]


def _line(error: BaseException) -> str:
    words = str(error).strip()
    return words.splitlines()[0][:120] if words else type(error).__name__
