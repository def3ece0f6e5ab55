"""Open a file or standard input: its plain bytes (gzip is unpacked), its first bytes, and its lines of text."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from molgraph.base.errors import CannotReadError, FormatError, MissingFileError, did_you_mean
from molgraph.base.paths import missing_file

SAMPLE_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
#: what reading a stream raises where it ends early, fails its checksum or cannot be unpacked
DAMAGED = (EOFError, OSError, zlib.error)
# The first bytes of a text whose first character is a mark (byte order) or ASCII.
_FIRST_BYTES = (
    (rb"\xff\xfe|\xfe\xff", "utf-16"),
    (rb"[^\0]\0[^\0]\0", "utf-16-le"),
    (rb"\0[^\0]\0[^\0]", "utf-16-be"),
)
_UNPACK, _SAVE = "unpack it (or save a workbook as csv)", "save it as csv or parquet"
_REFUSED = (
    (rb"BZh", "is packed with bzip2", _UNPACK),
    (rb"\xfd7zXZ", "is packed with xz", _UNPACK),
    (rb"\x28\xb5\x2f\xfd", "is packed with zstandard", _UNPACK),
    (rb"PK\x03\x04", "is packed with zip", _UNPACK),
    (rb"(?s).{257}ustar", "is a tar archive", "unpack it and give one of the files in it"),
    (rb"\x80[\x02-\x05]", "is a pickle, which can run any code when read", _SAVE),
    (rb'\s*[{\[]["{\n]', "is JSON", _SAVE),
)
_MARK = "\U0010ffff"  # no character of any text: stands for bytes that are none until their row is known
_MARKED = "molgraph.marked"  # how ``bytes.decode`` and open files are asked to mark what is not text
codecs.register_error(_MARKED, lambda error: (_MARK, error.end))  # type: ignore[attr-defined]


def is_torn(text: str) -> bool:
    """Whether bytes that are no text were marked in it."""
    return _MARK in text


def shown(text: str) -> str:
    """Marked text as it may be printed."""
    return text.replace(_MARK, "\N{REPLACEMENT CHARACTER}")


class SourceFile:
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
        self.path, self.name = source, "standard input" if stdin else str(source)
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
        for first_bytes, words, hint in _REFUSED:
            if re.match(first_bytes, self.sample):
                raise FormatError(f"{self.name} {words}", hint=hint)

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
        """UTF-16 where the first bytes show it, else UTF-8, with or without its mark."""
        return next((name for first, name in _FIRST_BYTES if re.match(first, self.sample)), "utf-8-sig")

    @property
    def suffix(self) -> str:
        """The last suffix in lower case, that of the packing taken off; empty for standard input."""
        path = Path("" if str(self.path) == "-" else self.path)
        return (path.with_suffix("") if path.suffix.lower() in (".gz", ".gzip") else path).suffix.lower()

    @property
    def text(self) -> str:
        """The sample as text, marked (``is_torn``) where it is none."""
        return self.sample.decode(self.encoding, errors=_MARKED).removeprefix("\ufeff")

    def stream(self) -> BinaryIO:
        """All plain bytes from the start, not seekable in general; once alone where it is not ``rereadable``."""
        if self._rest is not None:
            return _buffered(self.sample, self._rest)
        raw = _open_path(Path(self.path))
        if raw.read(len(_GZIP)) == _GZIP:
            raw.close()  # a GzipFile closes what it opened itself
            return cast(BinaryIO, io.BufferedReader(gzip.GzipFile(self.path), 1 << 20))
        raw.seek(0)
        return raw

    def lines(self, most: int, newline: str | None = None) -> Iterator[str]:
        """All lines as marked text; of a longer one the first ``most`` characters; ``newline`` as of ``open``."""
        with io.TextIOWrapper(self.stream(), self.encoding, errors=_MARKED, newline=newline) as text:
            try:
                while line := text.readline(most):
                    yield line
                    while len(line) == most and line[-1] != "\n":
                        line = text.readline(most)
            except DAMAGED as error:
                raise broken(self.name, error) from None


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
    """Up to n bytes of a buffered stream, fewer only at its end."""
    try:
        return stream.read(n)
    except DAMAGED as error:
        raise broken(name, error) from None


def broken(name: str, error: Exception) -> FormatError:
    """The error for a stream that ends early or fails its checksum."""
    return FormatError(f"{name} cannot be read to its end: {error}", hint="copy or download it again")
