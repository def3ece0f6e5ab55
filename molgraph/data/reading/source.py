"""Open a file or standard input as plain bytes, unpacked where they are gzip, with a look at their start."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from molgraph.base.errors import CannotReadError, FormatError, MissingFileError, did_you_mean
from molgraph.base.paths import missing_file

SAMPLE_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstandard", b"PK\x03\x04": "zip"}
#: what reading a stream raises where it ends early, fails its checksum or cannot be unpacked
DAMAGED = (EOFError, OSError, zlib.error)
# The first bytes of a text whose first character is a mark (byte order) or ASCII.
_FIRST_BYTES = (
    (rb"\xff\xfe|\xfe\xff", "utf-16"),
    (rb"[^\0]\0[^\0]\0", "utf-16-le"),
    (rb"\0[^\0]\0[^\0]", "utf-16-be"),
)


class Opened:
    """A source that was looked at: its first bytes, and all of it for whoever asks.

    A file is closed after the look and opened again for each reading, so that nothing stays open when a column or
    target is refused; what cannot be read twice (standard input, a pipe) stays open.

    Args:
        source: a path, or ``-``.

    Raises:
        DataError: a folder, a packing that is not read, or a pickle.
        StorageError: no such file, or no permission to read it.
    """

    def __init__(self, source: str | Path) -> None:
        stdin = str(source) == "-"
        self._source, self.name = source, "standard input" if stdin else str(source)
        self._rest: BinaryIO | None = None  # the stream that goes on after the sample, of what cannot be read twice
        self.sample = b""
        self.rereadable = not stdin and os.path.isfile(source)  # false of a name that is too long, too
        if not self.rereadable:
            raw = sys.stdin.buffer if stdin else _open_path(Path(source))
            head = _read(raw, 1 << 12, self.name)
            self._rest = _buffered(head, raw)
            if head.startswith(_GZIP):
                self._rest = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=self._rest)), 1 << 20)
        self.look_further(SAMPLE_BYTES)
        _refuse(self.sample, self.name)

    def look_further(self, n: int) -> None:
        """Make the sample up to ``n`` bytes long."""
        if self._rest is None:
            with self.stream() as stream:
                self.sample = _read(stream, n, self.name)
        else:
            self.sample += _read(self._rest, n - len(self.sample), self.name)
        self.whole = len(self.sample) < n  # whether the sample is all there is

    @property
    def encoding(self) -> str:
        """UTF-16 where the first bytes show it, else UTF-8."""
        return next((name for first, name in _FIRST_BYTES if re.match(first, self.sample)), "utf-8")

    @property
    def suffix(self) -> str:
        """The last suffix in lower case, that of the packing taken off; empty for standard input."""
        path = Path("" if str(self._source) == "-" else self._source)
        return (path.with_suffix("") if path.suffix.lower() in (".gz", ".gzip") else path).suffix.lower()

    def stream(self) -> BinaryIO:
        """All plain bytes from the start, not seekable in general; once alone where it is not ``rereadable``."""
        if self._rest is not None:
            return _buffered(self.sample, self._rest)
        raw = _open_path(Path(self._source))
        if raw.read(len(_GZIP)) == _GZIP:
            raw.close()  # a GzipFile closes what it opened itself
            return cast(BinaryIO, io.BufferedReader(gzip.GzipFile(self._source), 1 << 20))
        raw.seek(0)
        return raw


class _Chained(io.RawIOBase):
    """The bytes already taken for the sample, then the rest of the stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        piece = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed and self._rest is not sys.stdin.buffer:
            self._rest.close()
        super().close()


def _buffered(head: bytes, rest: BinaryIO) -> BinaryIO:
    return io.BufferedReader(cast(io.RawIOBase, _Chained(head, rest)), 1 << 20)


def _refuse(sample: bytes, name: str) -> None:
    """Raise ``DataError`` for contents that are never read."""
    for magic, packing in _PACKED.items():
        if sample.startswith(magic):
            raise FormatError(f"{name} is packed with {packing}", hint="unpack it (or save a workbook as csv)")
    if sample[257:262] == b"ustar":
        raise FormatError(f"{name} is a tar archive", hint="unpack it and give one of the files in it")
    if re.match(rb"\x80[\x02-\x05]", sample):
        raise FormatError(f"{name} is a pickle, which can run any code when read", hint="save it as csv or parquet")
    if re.match(rb'\s*[{\[]["{\n]', sample):
        raise FormatError(f"{name} is JSON", hint="save it as csv or parquet")


def _open_path(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        from molgraph.data.cards import card_names  # with pydantic, which a file that is there does not need

        error, name = missing_file(path), str(path)
        if name.partition("@")[0].lower().replace("-", "_") in card_names():
            error = MissingFileError(error.message, hint=did_you_mean([f"dataset:{name}"]))
        raise error from None
    except IsADirectoryError:
        raise FormatError(f"{str(path)!r} is a folder, not a file", hint="name one of the files in it") from None
    except PermissionError:
        raise CannotReadError(f"no permission to read {str(path)!r}", hint=f"try: chmod u+r {path}") from None
    except OSError as error:
        raise CannotReadError(f"cannot open {str(path)!r}: {error.strerror}", hint="check the path") from None
    except ValueError:
        raise FormatError(f"{str(path)!r} is no file name: it holds a NUL byte") from None


def _read(stream: BinaryIO, n: int, name: str) -> bytes:
    """Up to n bytes, fewer only at the end of the stream."""
    pieces: list[bytes] = []
    try:
        while n > 0 and (piece := stream.read(n)):
            pieces.append(piece)
            n -= len(piece)
    except DAMAGED as error:
        raise broken(name, error) from None
    return b"".join(pieces)


def broken(name: str, error: Exception) -> FormatError:
    """The error for a stream that ends early or fails its checksum."""
    return FormatError(f"{name} cannot be read to its end: {error}", hint="copy or download it again")
