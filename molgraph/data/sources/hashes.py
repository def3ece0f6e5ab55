"""Hash a file with sha256."""

from __future__ import annotations

import hashlib
from pathlib import Path

from molgraph.base.paths import storage_error


def sha256_of(path: Path) -> str:
    """sha256 of a file's bytes, in hexadecimal digits.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise storage_error(f"cannot read {path}", error) from error
