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

from molgraph.base.errors import (
    CannotReadError,
    DamagedModelError,
    ForeignModelError,
    ModelFileError,
    MolgraphError,
    NewerVersionError,
    StorageError,
)
from molgraph.base.paths import atomic_write, missing_file, storage_error

FORMAT, FORMAT_VERSION = "molgraph model", 1
MANIFEST, WEIGHTS = "manifest.json", "weights.safetensors"
PARTS = ("method.json", "standardiser.json", "targets.json", "card.json", "vectors.json")
FORMER = "calibration.json"  # files of before had it, always empty
LARGEST_FILE, LARGEST_JSON = 4 << 30, 16 << 20  # of JSON, all parts together
LARGEST_DIRECTORY, LARGEST_HEADER = 16 << 10, 8 << 20
END = struct.Struct("<4s4H2LH")  # the zip's last record: signature, disks, entries, directory size and place
FAULTS: tuple[type[Exception], ...] = (  # what damaged or hostile contents make libraries raise
    zipfile.BadZipFile, zlib.error, struct.error, SafetensorError, OSError, EOFError, ValueError, TypeError,
    LookupError, ArithmeticError, AttributeError, AssertionError, RuntimeError, MolgraphError,
)  # fmt: skip
MACHINE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE)  # no fault of the file


def write_archive(path: Path, parts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write JSON parts and arrays as one file, complete or not at all; the same content gives the same bytes."""
    members = {name: dump_json(parts[name]) for name in PARTS}
    members[WEIGHTS] = save_tensors({name: np.asarray(value, order="C") for name, value in sorted(arrays.items())})
    if (size := json_size(parts)) > LARGEST_JSON:
        words = f"the model's description has {size:,} bytes, at most {LARGEST_JSON:,} may be"
        raise ModelFileError(words, hint="train fewer members or targets at once")
    digests = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in members.items()}
    manifest = {"format": FORMAT, "version": FORMAT_VERSION, "members": digests}
    manifest["molgraph"] = parts["card.json"]["versions"].get("molgraph", "")
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
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a pipe would wait for its writer
            words = f"cannot read the model file {path}: it is a pipe or device"
            raise CannotReadError(words, hint="copy it to a file first")
        file = open(path, "rb")  # noqa: SIM115 - opened apart from reading: other errors, other words
    except FileNotFoundError:
        raise missing_file(path, "model file") from None
    except OSError as error:
        raise storage_error(f"cannot read the model file {path}", error) from error
    with file, refused("the model file is damaged", path):
        return _read(file, os.fstat(file.fileno()).st_size)


@contextmanager
def refused(words: str, path: Path | None = None) -> Iterator[None]:
    """Turn whatever a file's contents make go wrong into a ``ModelFileError``.

    Args:
        words: what is wrong, where the error itself does not say it.
        path: the file that the message names.
    """
    place = "" if path is None else f"{path}: "
    try:
        yield
    except StorageError:
        raise
    except ModelFileError as error:
        raise type(error)(f"{place}{error.message}", hint=error.hint) from error.__cause__
    except FAULTS as error:
        if isinstance(error, OSError) and error.errno in MACHINE:
            raise storage_error(f"cannot read the model file {path}", error) from error
        hint = error.hint if isinstance(error, MolgraphError) else "copy or download it again, or use another copy"
        raise DamagedModelError(f"{place}{words} ({first_line(error)})", hint=hint) from error


def dump_json(value: Any) -> bytes:
    """Strict JSON: sorted keys, no NaN."""
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False, indent=1).encode()


def _read(file: Any, size: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    _check_frame(file, size)
    with zipfile.ZipFile(file) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        if MANIFEST not in infos:
            raise ForeignModelError("this zip is no molgraph model file", hint="model files end in .mgm")
        manifest = load_json(_member(archive, infos[MANIFEST], size), MANIFEST)
        digests = _check_manifest(manifest, archive.namelist())
        claimed = sum(infos[name].file_size for name in digests if name != WEIGHTS)
        if claimed > LARGEST_JSON:
            raise DamagedModelError(f"the model file claims {claimed:,} bytes of JSON, which no model needs")
        parts, arrays = {}, {}
        for name, digest in digests.items():
            data = _member(archive, infos[name], size)
            if digest != {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}:
                raise DamagedModelError(f"the model file is damaged: {name} does not match its checksum")
            if name == WEIGHTS:
                arrays = tensors_of(data)
            else:
                parts[name] = load_json(data, name)
    return parts, arrays


def _check_frame(file: Any, size: int) -> None:
    """The zip's last record, before a library walks through a directory of any size."""
    if size > LARGEST_FILE:
        raise ForeignModelError(f"the file has {size:,} bytes, more than any model file")
    if file.read(4) != b"PK\x03\x04":
        raise ForeignModelError("this is no molgraph model file", hint="model files end in .mgm; is this one a table?")
    file.seek(max(size - END.size, 0))
    signature, *_, entries, directory, _place, comment = END.unpack(file.read(END.size))
    if signature != b"PK\x05\x06" or comment:
        raise DamagedModelError("the model file is cut short, or something was added to it")
    if entries > len(PARTS) + 3 or directory > LARGEST_DIRECTORY:
        raise ForeignModelError("this zip has more parts than a molgraph model file")


def _check_manifest(manifest: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ForeignModelError("this zip is no molgraph model file", hint="model files end in .mgm")
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise DamagedModelError("the model file does not say its format's version")
    if version > FORMAT_VERSION:
        writer = str(manifest.get("molgraph", ""))[:40]
        raise NewerVersionError(
            f"the model file has format {version}, this molgraph reads formats up to {FORMAT_VERSION}",
            hint=f"it was written by molgraph {writer}: install that version or a newer one",
        )
    digests: Any = manifest.get("members")
    whole = isinstance(digests, dict) and {*digests} - {FORMER} == {*PARTS, WEIGHTS}
    if not whole or sorted(names) != sorted((MANIFEST, *digests)):
        raise DamagedModelError("the model file lacks a part, or holds one too many")
    return digests


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> bytes:
    """One member, once its size is a possible one: arrays are not packed, so they are shorter than the file."""
    known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if not known or info.file_size > (size if info.filename == WEIGHTS else LARGEST_JSON):
        words = f"claims {info.file_size:,} bytes, which no model needs, or is packed as none is"
        raise DamagedModelError(f"the model file's {info.filename} {words}")
    with archive.open(info) as member:
        return member.read(info.file_size + 1)


def load_json(data: bytes, name: str) -> Any:
    """Strict JSON: no NaN, no number that becomes infinite, no half of a character."""

    def refuse(word: str) -> NoReturn:
        raise DamagedModelError(f"the model file's {name} holds {word[:40]}, which is no JSON")

    def finite(word: str) -> float:
        return value if math.isfinite(value := float(word)) else refuse(word)

    try:
        value = json.loads(data.decode("utf-8"), parse_constant=refuse, parse_float=finite)
        if b"\\ud" in data or b"\\uD" in data:  # half a pair could not be printed or written anywhere
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        raise DamagedModelError(f"the model file's {name} is no JSON ({first_line(error)})") from error


def tensors_of(data: bytes) -> dict[str, np.ndarray]:
    """Arrays of a safetensors block; the library checks that its shapes fit its bytes."""
    if int.from_bytes(data[:8], "little") > LARGEST_HEADER:
        raise DamagedModelError("the model file's weights have an impossible header")
    with refused("the model file's weights have types, shapes or places unlike their bytes"):
        arrays = load_tensors(data)
    if any(max(array.shape, default=0) > len(data) for array in arrays.values()):
        raise DamagedModelError("the model file's weights have an array that is longer than its bytes")
    return arrays


def first_line(error: BaseException) -> str:
    """The first line of an error's words, or its class."""
    words = str(error).strip()
    return words.splitlines()[0][:120] if words else type(error).__name__
