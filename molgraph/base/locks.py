"""Claim pieces of work by lock files, so that several processes that share a folder share the work."""

from __future__ import annotations

import errno
from pathlib import Path

from filelock import FileLock, Timeout

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)  # of file systems where nobody can be told of a claim


class Claims:
    """Locks, one file each; the system lets go of them when the process that holds them ends, however it does.

    Args:
        folder: where the files stand.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> mine, yours = Claims(folder), Claims(folder)
        >>> mine.take("a"), yours.take("a"), mine.release("a"), yours.take("a")
        (True, False, None, True)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: dict[str, FileLock] = {}

    def take(self, key: str, *, wait: bool = False) -> bool:
        """Claim a cell; False where another run works on it, or else ``wait`` until it has given it up."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / key, timeout=-1 if wait else 0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            return False
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        self.held[key] = lock
        return True

    def release(self, key: str) -> None:
        """Give a cell up."""
        (self.folder / key).unlink(missing_ok=True)  # who locks the file from now on sees that it is gone
        self.held.pop(key).release()

    def close(self) -> None:
        """Give all cells up."""
        for key in list(self.held):
            self.release(key)
