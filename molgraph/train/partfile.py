"""A file that grows and survives a kill: pieces of bytes in, ``OUT.part`` and a journal, then ``OUT`` whole."""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from molgraph.base.errors import StorageError
from molgraph.base.paths import atomic_write, storage_error

_VERSION = 1
_PIECE = 1 << 20


class PartFile:
    """``OUT.part``, appended to piece by piece; renamed to ``OUT`` when it is finished.

    A piece counts once the journal names it, and the journal is written after the piece is on the disk. So
    whatever kills the process, the next run cuts off what the journal does not name and goes on from there.

    Args:
        path: the file to make in the end.
        identity: plain JSON values that say what the content depends on (model, input, options). A part left by
            a run of another identity is started again. None: nothing can be resumed (standard input).

    Raises:
        StorageError: another process writes this file now, the disk is full, or it cannot be written there.

    Example:
        >>> import tempfile
        >>> out = Path(tempfile.mkdtemp()) / "out.csv"
        >>> with PartFile(out, {"model": "m1"}) as part:  # killed after the first piece
        ...     part.append(b"a\\n", rows=1)
        >>> with PartFile(out, {"model": "m1"}) as part:
        ...     done = part.rows
        ...     part.append(b"b\\n", rows=2)
        ...     part.finish()
        >>> done, out.read_bytes(), [p.name for p in out.parent.iterdir()]
        (1, b'a\\nb\\n', ['out.csv'])
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any] | None) -> None:
        self.path = Path(os.path.realpath(path))
        self.part = self.path.with_name(self.path.name + ".part")
        self.journal = self.path.with_name(self.path.name + ".part.journal")
        self.identity = None if identity is None else json.loads(json.dumps(identity))
        self.rows = 0
        self.state: dict[str, Any] = {}
        self.restarted = ""
        self._bytes = self._crc = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            if self.path.is_dir():
                raise IsADirectoryError(21, os.strerror(21))
            self._file = self._open_locked()
            self._resume()
        except OSError as error:
            self._close()
            raise storage_error(f"cannot write {self.path}", error) from error
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if not self._bytes and self._file is not None and not self._file.closed:
            self.discard()  # nothing was written: nothing is left behind
        self._close()

    def append(self, data: bytes, *, rows: int, state: Mapping[str, Any] | None = None) -> None:
        """Put ``data`` behind what is there; ``rows`` input rows are done with it, ``state`` is kept beside."""
        assert self._file is not None
        try:
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            kept = f"{self.rows:,} rows are kept in {self.part.name}; the same command goes on from there"
            failure = storage_error(f"cannot write {self.part}", error)
            raise StorageError(failure.message, hint=f"{failure.hint}\n  {kept}".strip()) from error
        self._bytes, self._crc = self._bytes + len(data), zlib.crc32(data, self._crc)
        self.rows, self.state = rows, dict(state or {})
        self._note()

    def finish(self, convert: Callable[[Path, Path], None] | None = None) -> None:
        """Rename the part to its final name and remove the journal.

        Args:
            convert: makes the final content (second path) of the part's (first path), where they differ.
        """
        assert self._file is not None
        made = self.part
        try:
            if convert is not None:
                made = self.part.with_name(self.part.name + ".whole")
                convert(self.part, made)
            if self.path.exists():
                with suppress(OSError):
                    os.chmod(made, self.path.stat().st_mode)
            if sys.platform == "win32":
                self._close()  # an open file cannot be renamed there; elsewhere the lock is held until all is done
            os.replace(made, self.path)
            if convert is not None:
                self.part.unlink(missing_ok=True)
            self.journal.unlink(missing_ok=True)
        except OSError as error:
            if convert is not None:
                with suppress(OSError):
                    made.unlink(missing_ok=True)
            raise storage_error(f"cannot write {self.path}", error) from error
        self._close()

    def discard(self) -> None:
        """Remove the part and its journal."""
        if sys.platform == "win32":
            self._close()  # an open file cannot be removed there; elsewhere the lock is held until all is done
        self.part.unlink(missing_ok=True)
        self.journal.unlink(missing_ok=True)
        self._close()

    def _open_locked(self) -> IO[bytes]:
        while True:
            descriptor = os.open(self.part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            file = os.fdopen(descriptor, "r+b")
            if not _lock(file):
                file.close()
                raise StorageError(
                    f"another run is writing {self.path.name} now", hint="wait for it, or choose another output file"
                )
            # between opening and locking, the other run may have finished: then this is its finished file
            if self.part.exists() and os.path.samestat(os.fstat(file.fileno()), os.stat(self.part)):
                return file
            file.close()

    def _resume(self) -> None:
        assert self._file is not None
        noted = self._read_journal()
        if noted is not None and self._crc_of(noted["bytes"]) == noted["crc"]:
            self.rows, self._bytes, self._crc = noted["rows"], noted["bytes"], noted["crc"]
            self.state = noted["state"]
        elif noted is not None:
            self.restarted = f"{self.part.name} is not what its journal says: started again"
        self._file.truncate(self._bytes)
        self._file.seek(self._bytes)
        if not self._bytes:
            self._note()

    def _read_journal(self) -> dict[str, Any] | None:
        """What the journal notes, where it is of this identity."""
        try:
            noted = json.loads(self.journal.read_text(encoding="utf-8"))
            whole = {"version", "identity", "rows", "bytes", "crc", "state"} <= noted.keys()
        except FileNotFoundError:
            return None
        except (ValueError, AttributeError):
            whole = False
        if not whole or self.identity is None or noted["version"] != _VERSION or noted["identity"] != self.identity:
            self.restarted = f"{self.part.name} was left by a run of another model, input or option: started again"
            return None
        return noted

    def _crc_of(self, n_bytes: int) -> int | None:
        """CRC-32 of the part's first bytes, or None where it is shorter."""
        assert self._file is not None
        self._file.seek(0)
        crc, left = 0, n_bytes
        while left:
            piece = self._file.read(min(left, _PIECE))
            if not piece:
                return None
            crc, left = zlib.crc32(piece, crc), left - len(piece)
        return crc

    def _note(self) -> None:
        noted = {"version": _VERSION, "identity": self.identity, "rows": self.rows, "bytes": self._bytes}
        with atomic_write(self.journal, "w") as file:
            json.dump(noted | {"crc": self._crc, "state": self.state}, file)

    def _close(self) -> None:
        if self._file is not None and not self._file.closed:
            with suppress(OSError):  # a full disk refuses the last flush; the journal does not count those bytes
                self._file.close()


def _lock(file: IO[bytes]) -> bool:
    """Take the file for this process until it is closed or the process ends; False where another has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
