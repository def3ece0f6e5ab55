"""Keep finished chunks of an output in a folder beside it, so that a killed run goes on where it stopped."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from filelock import FileLock, Timeout

from molgraph.base.errors import BusyError, FileKeptError, StorageError
from molgraph.base.paths import atomic_write, check_names_file, storage_error, sweep_temporaries

_OURS = re.compile(r"lock|\d{6,}\.chunk|\.\d{6,}\.chunk\.[0-9a-f]{8}\.tmp")


class ChunkFolder:
    """``OUT.parts``: a file for each finished chunk of ``OUT``, until all of them are joined.

    A chunk's file appears whole or not at all. It begins with a hash of its content and of everything that the content
    was made from, so a later run takes it over exactly where it would make the same. A folder with anything in it that
    molgraph did not write, or a link of that name, is refused and left as it is.

    Raises:
        StorageError: another process writes this file now, the folder is not molgraph's, the disk is full, or it
            cannot be written there.
    """

    def __init__(self, path: str | os.PathLike[str], resumable: bool = True) -> None:
        """Keep the path of the file to make, and whether a later run can know that it would make the same chunks."""
        check_names_file(path)
        self.path = Path(os.path.realpath(path))
        self.folder = self.path.with_name(self.path.name + ".parts")
        self.resumable, self.rows, self.odd, self._n = resumable, 0, False, 0
        self._lock = FileLock(self.folder / "lock", timeout=0)

    def __enter__(self) -> Self:
        try:
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if self.path.is_symlink():  # one that leads nowhere, or it would have been followed
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            with suppress(FileExistsError):
                self.folder.mkdir()
            if self.folder.is_symlink() or not self.folder.is_dir() or not all(map(_is_ours, self.folder.iterdir())):
                hint = "move or remove it, or write elsewhere"
                raise FileKeptError(f"{self.folder} is there already and was not left by molgraph", hint=hint)
            self._lock.acquire()
        except Timeout as error:
            words = f"another run is writing {self.path.name} now"
            raise BusyError(words, hint="wait for it, or choose another output file") from error
        except OSError as error:
            raise storage_error(f"cannot write {self.path}", error) from error
        sweep_temporaries(self.path)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not self.rows:  # nothing was written: nothing is left behind
            self._remove()
        self._lock.release()
        again = "; the same command goes on from there" if self.resumable else ""
        kept = f"{self.rows:,} rows are kept in {self.folder.name}{again}"
        if isinstance(error, KeyboardInterrupt) and self.rows:
            error.add_note(kept)
        if isinstance(error, StorageError) and self.rows and self.resumable:
            raise type(error)(error.message, hint="\n  ".join(filter(None, (error.hint, kept)))) from error

    def find(self, number: int, key: str) -> dict[str, Any] | None:
        """The counts of a chunk that an earlier run made from what has this hash; None where there is none."""
        self._n = number + 1
        try:
            mark, _, rest = self._file(number).read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if not self.resumable or mark != _mark(key, rest):
            self.odd = True
            return None
        counts: dict[str, Any] = json.loads(rest.partition(b"\n")[0])
        self.rows += counts["rows"]
        return counts

    def add(self, number: int, key: str, data: bytes, counts: dict[str, Any]) -> None:
        """Write a chunk's bytes beside its counts, of which ``rows`` is the number of input rows."""
        rest = json.dumps(counts).encode() + b"\n" + data
        with atomic_write(self._file(number)) as file:
            file.write(_mark(key, rest) + b"\n" + rest)
        self.rows, self._n = self.rows + counts["rows"], max(self._n, number + 1)

    def join(self, write: Callable[[Iterator[IO[bytes]], IO[bytes]], object]) -> None:
        """Let ``write`` make the file (second) of the open chunks that were found or added; remove the folder."""
        with atomic_write(self.path) as file:
            write((piece for i in range(self._n) for piece in self._opened(i)), file)
        self._remove()
        self.rows = 0

    def _opened(self, number: int) -> Iterator[IO[bytes]]:
        with open(self._file(number), "rb") as file:
            file.readline()
            file.readline()
            yield file

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:06d}.chunk"

    def _remove(self) -> None:
        if sys.platform == "win32":
            self._lock.release()  # an open file cannot be removed there; elsewhere the lock is held until all is done
        with suppress(OSError):
            for name in filter(_OURS.fullmatch, os.listdir(self.folder)):
                (self.folder / name).unlink()
            self.folder.rmdir()


def _is_ours(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and _OURS.fullmatch(path.name) is not None


def _mark(key: str, rest: bytes) -> bytes:
    return blake2b(key.encode() + rest, digest_size=16).hexdigest().encode()
