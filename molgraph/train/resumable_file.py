"""Write a file piece by piece, so that a run that was killed goes on where it stopped."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from molgraph.base.errors import StorageError
from molgraph.base.paths import atomic_write, check_names_file, storage_error, sweep_temporaries, temporary_beside

_VERSION = 2
_STATE = ("rows", "bytes", "crc", "state")
_MOST_JOURNAL = 1 << 24
_PIECE = 1 << 20


class PartFile:
    """``OUT.part``, appended to piece by piece; renamed to ``OUT`` when it is finished.

    A piece counts once the journal names it, and the journal is written after the piece is on the disk. So
    whatever kills the process, the next run cuts off what the journal does not name and goes on from there.
    A file of either name that molgraph did not write, or a link, is refused and left as it is.

    Args:
        path: the file to make in the end.
        identity: plain JSON values that say what the content depends on (model, input, options). A part left by
            a run of another identity is started again. None: nothing can be resumed (standard input).

    Raises:
        StorageError: another process writes this file now, a file that is not molgraph's bears the part's or the
            journal's name, the disk is full, or it cannot be written there.

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
        check_names_file(path)
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
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if self.path.is_symlink():  # one that leads nowhere, or it would have been followed
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            self._read_journal()  # before a part is made beside a journal that is not ours
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
        noted = self._noted(rows, self._bytes + len(data), zlib.crc32(data, self._crc), dict(state or {}))
        try:
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._write_journal(noted)
        except (OSError, StorageError) as error:
            failure = error if isinstance(error, StorageError) else storage_error(f"cannot write {self.part}", error)
            kept = f"{self.rows:,} rows are kept in {self.part.name}; the same command goes on from there"
            hints = [failure.hint, kept] if self.rows and self.identity else [failure.hint]
            raise StorageError(failure.message, hint="\n  ".join(filter(None, hints))) from error
        self._take(noted)

    def restart(self, why: str) -> None:
        """Throw away what an earlier run did, which turned out to be of no use."""
        assert self._file is not None
        try:
            self._file.seek(0)
            self._file.truncate(0)
            self._take(self._noted(0, 0, 0, {}))
            self._write_journal(self._noted(0, 0, 0, {}))
        except OSError as error:
            raise storage_error(f"cannot write {self.part}", error) from error
        self.restarted = why

    def finish(self, convert: Callable[[Path, IO[bytes]], None] | None = None) -> None:
        """Rename the part to its final name and remove the journal.

        Args:
            convert: writes the final content (second) from the part (first), where they differ.
        """
        assert self._file is not None
        made = self.part if convert is None else temporary_beside(self.part)
        try:
            if convert is not None:
                with open(made, "xb") as file:
                    convert(self.part, file)
                    file.flush()
                    os.fsync(file.fileno())
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
            raise storage_error(f"cannot write {self.path}", error) from error
        finally:
            if made != self.part:
                with suppress(OSError):
                    made.unlink(missing_ok=True)
        self._close()

    def discard(self) -> None:
        """Remove the part and its journal."""
        if sys.platform == "win32":
            self._close()  # an open file cannot be removed there; elsewhere the lock is held until all is done
        self.part.unlink(missing_ok=True)
        self.journal.unlink(missing_ok=True)
        self._close()

    def _open_locked(self) -> IO[bytes]:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        while True:
            if self.part.is_symlink():
                raise StorageError(
                    f"{self.part} is a symbolic link, which is not followed", hint="remove it, or write elsewhere"
                )
            try:
                descriptor = os.open(self.part, flags, 0o666)
            except OSError as error:
                raise storage_error(f"cannot write {self.part}", error) from error
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise self._foreign(self.part)
            file = os.fdopen(descriptor, "r+b")
            if not _lock(file):
                file.close()
                raise StorageError(
                    f"another run is writing {self.path.name} now", hint="wait for it, or choose another output file"
                )
            # between opening and locking, the other run may have finished: then this is its finished file
            if self.part.exists() and os.path.samestat(os.fstat(file.fileno()), os.lstat(self.part)):
                return file
            file.close()

    def _resume(self) -> None:
        assert self._file is not None
        noted, n_bytes = self._read_journal(), os.fstat(self._file.fileno()).st_size
        if noted is None and n_bytes:
            raise self._foreign(self.part)
        if noted and self._crc_of(noted["bytes"]) == noted["crc"]:
            self._take(noted)
        elif noted:
            self.restarted = f"{self.part.name} is not what its journal says: started again"
        elif noted is not None:
            self.restarted = f"{self.part.name} was left by a run of another model, input or option: started again"
        for path in (self.part, self.journal):
            sweep_temporaries(path)
        self._file.truncate(self._bytes)
        self._file.seek(self._bytes)
        if not self._bytes:
            self._write_journal(self._noted(0, 0, 0, {}))

    def _read_journal(self) -> dict[str, Any] | None:
        """The journal's content; empty where it is damaged or of another run, None where there is none.

        Raises:
            StorageError: the file is no journal of molgraph's.
        """
        try:
            about = os.lstat(self.journal)
            if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_JOURNAL:
                raise ValueError("no journal")
            noted = json.loads(self.journal.read_text(encoding="utf-8"))
            if not isinstance(noted, dict) or not {*_STATE, "version", "identity"} <= noted.keys():
                raise ValueError("no journal")
            same = self.identity is not None and noted == self._noted(*(noted[key] for key in _STATE))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            raise self._foreign(self.journal) from None
        return noted if same else {}

    def _foreign(self, path: Path) -> StorageError:
        kept = "" if path == self.part else f", and {self.part.name} with it if that is molgraph's"
        return StorageError(
            f"{path} is there already and was not left by molgraph", hint=f"move or remove it{kept}, or write elsewhere"
        )

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

    def _noted(self, rows: int, n_bytes: int, crc: int, state: dict[str, Any]) -> dict[str, Any]:
        """A journal's content; its own checksum says whether all of it is as it was written."""
        noted = {"version": _VERSION, "identity": self.identity}
        noted |= dict(zip(_STATE, (rows, n_bytes, crc, state), strict=True))
        return noted | {"check": zlib.crc32(json.dumps(noted, sort_keys=True).encode())}

    def _take(self, noted: Mapping[str, Any]) -> None:
        self.rows, self._bytes, self._crc, self.state = (noted[key] for key in _STATE)

    def _write_journal(self, noted: Mapping[str, Any]) -> None:
        with atomic_write(self.journal, "w") as file:
            json.dump(noted, file)

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
