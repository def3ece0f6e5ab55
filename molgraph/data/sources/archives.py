"""Read a member of a zip file, bounded in size, without unpacking to disk."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from molgraph.base.errors import DataError

MAX_MEMBER_BYTES = 4 * 10**9


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """A zip file to read members of.

    Raises:
        DataError: it is none, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise DataError(f"{path} cannot be read as a zip file: {error}", hint="download it again") from None


def member(archive: zipfile.ZipFile, name: str, *, optional: bool = False) -> bytes | None:
    """The bytes of the one member whose last name is ``name``, in whatever folder it stands.

    Args:
        archive: an open zip file.
        name: such as ``MUTAG_A.txt``.
        optional: whether it may be missing: then the answer is None.

    Raises:
        DataError: it is missing, stands there twice, or is larger than it may be.
    """
    found = [one for one in archive.infolist() if PurePosixPath(one.filename).name == name and not _hidden(one)]
    if not found and optional:
        return None
    if len(found) != 1:
        raise DataError(f"{archive.filename} has {len(found)} members named {name}, expected one")
    with archive.open(found[0]) as stream:
        data = stream.read(MAX_MEMBER_BYTES + 1)
    if len(data) > MAX_MEMBER_BYTES:  # whatever size the archive states
        raise DataError(f"{name} in {archive.filename} is larger than {MAX_MEMBER_BYTES:,} bytes")
    return data


def _hidden(info: zipfile.ZipInfo) -> bool:
    return info.is_dir() or "__MACOSX" in info.filename
