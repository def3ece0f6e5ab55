"""Lock cells, so that several runs into one folder share the work."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import IO

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # of file systems where nobody can be told of a claim


class Claims:
    """Locks of cells, one file each; the system lets go of them when the process that holds them ends, however it does.

    Args:
        folder: where the files stand; on a file system that knows locks.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> mine, yours = Claims(folder), Claims(folder)
        >>> mine.take("a"), yours.take("a"), mine.release("a"), yours.take("a")
        (True, False, None, True)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: dict[str, IO[bytes]] = {}

    def take(self, key: str) -> bool:
        """Claim a cell; False where another run works on it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        while True:
            file = (self.folder / key).open("ab")
            try:
                _lock(file)
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    file.close()
                    return False
            if _stands(file, self.folder / key):
                self.held[key] = file
                return True
            file.close()  # who held it gave it up, and deleted it, between opening and locking: its lock binds nobody

    def release(self, key: str) -> None:
        """Give a cell up."""
        file = self.held.pop(key)
        with contextlib.suppress(OSError):  # another run may have it open, where that forbids to delete it
            os.unlink(self.folder / key)
        file.close()

    def close(self) -> None:
        """Give all cells up."""
        for key in list(self.held):
            self.release(key)


def _stands(file: IO[bytes], path: Path) -> bool:
    """Whether a file that was opened is still the one of that name, which others would open."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(file: IO[bytes]) -> None:
    """Lock a file or raise ``OSError`` at once."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
