"""Write files whole or not at all, explain failures of the file system, and find molgraph's folders."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any

from molgraph.base.errors import (
    BadValueError,
    CannotReadError,
    CannotWriteError,
    MissingFileError,
    StorageError,
    UnknownNameError,
    close_names,
    did_you_mean,
)

_HINTS = {
    errno.ENOSPC: "the disk is full: free some space or write elsewhere; nothing was replaced",
    errno.EDQUOT: "your quota is used up: free some space or write elsewhere; nothing was replaced",
    errno.EFBIG: "the file system or a limit allows no file this large; nothing was replaced",
    errno.EACCES: "you may not write there: choose another folder or change its permissions",
    errno.EPERM: "you may not write there: choose another folder or change its permissions",
    errno.EMFILE: "this process has as many files open as it may: close some, or raise the limit (ulimit -n)",
    errno.ENFILE: "this machine has as many files open as it can: close some programs",
    errno.EROFS: "that file system is read-only: choose another folder",
    errno.ENOENT: "the folder does not exist: make it first",
    errno.ENOTDIR: "a part of that path is a file, not a folder",
    errno.EISDIR: "that is a folder: name a file in it",
    errno.ELOOP: "its symbolic links lead in a circle: choose another name",
}
_KINDS = {"cannot read": CannotReadError, "cannot write": CannotWriteError}


def check_names_file(path: str | os.PathLike[str]) -> None:
    """Refuse a path such as ``.`` or the empty one, which names no file.

    Raises:
        BadValueError: the path has no last part.
    """
    if not Path(path).name:
        raise BadValueError(f"{os.fspath(path)!r} names no file to write", hint="name one, such as out.csv")


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Write a file under a temporary name beside ``path`` and rename it at the end.

    A crash, Ctrl-C or full disk leaves the old file as it was. Devices and pipes are written directly.

    Args:
        path: the file to make or replace.
        mode: ``wb`` or ``w``.
        options: handed to ``open``; text is UTF-8 with plain newlines unless said otherwise.

    Raises:
        CannotWriteError: the file cannot be written there; the hint says why.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with atomic_write(folder / "a.txt", "w") as file:
        ...     _ = file.write("whole")
        >>> (folder / "a.txt").read_text(), len(list(folder.iterdir()))
        ('whole', 1)
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode is {mode!r}, expected 'w' or 'wb'")
    check_names_file(path)
    if mode == "w":
        options = {"encoding": "utf-8", "newline": ""} | options
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    final = Path(path) if special else Path(os.path.realpath(path))  # a link stays: what it points to is replaced
    temporary = final if special else temporary_beside(final)
    try:
        if final.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with open(temporary, mode if special else mode.replace("w", "x"), **options) as file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            if final.exists():
                shutil.copymode(final, temporary)
            os.replace(temporary, final)
    except OSError as error:
        if error.filename is not None and os.fspath(error.filename) not in (str(final), str(temporary)):
            raise  # somebody else's file, opened inside the block
        raise storage_error(f"cannot write {os.fspath(path)}", error) from error
    finally:
        if not special:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file by ``atomic_write``; its path is returned."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


def check_ending(path: str | os.PathLike[str] | None, *known: str) -> None:
    """Raise ``UnknownNameError`` for a file to write, where there is one, whose name has none of the known endings."""
    name = "" if path is None else Path(path).name
    if path is not None and (not name.endswith(known) or name in known):
        raise UnknownNameError(f"cannot write {name!r}: unknown ending", hint=f"known: {', '.join(known)}")


def temporary_beside(path: Path) -> Path:
    """A fresh hidden name in the folder of ``path``, to be renamed to it once it is whole."""
    return path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")


def sweep_temporaries(path: Path) -> None:
    """Remove the temporaries of ``path`` that killed runs left; only for the one process that may write it now."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{8}\.tmp")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for name in [entry.name for entry in entries if pattern.fullmatch(entry.name)]:
            path.with_name(name).unlink(missing_ok=True)


def sweep_old_temporaries(folder: Path) -> None:
    """Remove temporary files and folders that killed runs left more than a day ago."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > 24 * 3600:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def storage_error(what: str, error: OSError) -> StorageError:
    """Turn an ``OSError`` into a ``StorageError`` that says what to do next.

    Example:
        >>> print(storage_error("cannot write out.csv", OSError(errno.ENOSPC, "No space left on device")))
        cannot write out.csv: no space left on device
          the disk is full: free some space or write elsewhere; nothing was replaced
    """
    words = error.strerror or str(error)
    kind = _KINDS.get(" ".join(what.split()[:2]), StorageError)
    return kind(f"{what}: {words[:1].lower() + words[1:]}", hint=_HINTS.get(error.errno or 0, ""))


def temporary_error(error: Exception) -> CannotWriteError:
    """The error for a temporary file that cannot be made or written."""
    words = getattr(error, "strerror", None) or error
    return CannotWriteError(
        f"cannot write a temporary file: {words}", hint="make room for it, or let TMPDIR name another folder"
    )


def missing_file(path: str | os.PathLike[str], what: str = "file") -> MissingFileError:
    """The error for a file to read that is not there, with the nearest names beside it.

    Example:
        >>> print(missing_file("no/where.csv"))
        there is no file 'no/where.csv'
          there is no folder 'no' either
    """
    path = Path(path)
    words = f"there is no {what} {str(path)!r}"
    if not path.parent.is_dir():
        return MissingFileError(words, hint=f"there is no folder {str(path.parent)!r} either")
    beside = [p.name for p in islice(path.parent.iterdir(), 1000) if p.is_file() and not p.name.startswith(".")]
    here = sorted(beside, key=lambda name: (Path(name).suffix != path.suffix, name))
    stems = {Path(name).stem: name for name in reversed(here)}  # an ending in common makes no two names close_names
    close = [stems[stem] for stem in close_names(path.stem, dict.fromkeys(Path(name).stem for name in here))]
    more = f" and {len(here) - 5:,} more" if len(here) > 5 else ""
    holds = f"holds {', '.join(here[:5])}{more}" if here else "is empty"
    hint = did_you_mean(close) if close else f"the folder {str(path.parent)!r} {holds}"
    return MissingFileError(words, hint=hint)


def expanded(name: str) -> Path:
    """The path of a folder that a user named, where ``~`` is the home folder.

    Raises:
        MissingFileError: no such home folder is known.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        hint = "write the path in full; MOLGRAPH_CACHE names another folder for molgraph's cache"
        raise MissingFileError(f"no home folder is known for {name!r}", hint=hint) from error


def cache_dir() -> Path:
    """The folder for what can be made again: ``MOLGRAPH_CACHE``, else the platform's cache; may not exist yet."""
    named = os.environ.get("MOLGRAPH_CACHE")
    if named:
        return expanded(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or expanded("~/AppData/Local")) / "molgraph" / "Cache"
    if sys.platform == "darwin":
        return expanded("~/Library/Caches/molgraph")
    return Path(os.environ.get("XDG_CACHE_HOME") or expanded("~/.cache")) / "molgraph"


def store_folder(name: str) -> Path:
    """The folder of graph stores that a recipe names; ``auto`` is one in the cache.

    Example:
        >>> store_folder("auto") == cache_dir() / "stores", store_folder("here").name
        (True, 'here')
    """
    return cache_dir() / "stores" if name == "auto" else expanded(name)


def data_dir() -> Path | None:
    """The folder of datasets that ``MOLGRAPH_DATA`` names, or None where it names none that exists."""
    named = os.environ.get("MOLGRAPH_DATA")
    folder = expanded(named) if named else None
    return folder if folder is not None and folder.is_dir() else None


def disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, tells that a disk or quota is used up; libraries do so in their words.

    Example:
        >>> disk_full(OSError(errno.ENOSPC, "")), disk_full(RuntimeError("write: No space left on device"))
        (True, True)
        >>> disk_full(OSError(errno.EACCES, "permission denied"))
        False
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "no space left on device" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False
