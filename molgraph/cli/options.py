"""Words of the command line in; the values that they mean, or a sentence that says how to write them, out."""

from __future__ import annotations

import os
from pathlib import Path

from molgraph.base.errors import StorageError, UsageError


def numbers(option: str, text: str) -> tuple[float, float, float]:
    """Three numbers with commas between them.

    Example:
        >>> numbers("--fractions", "0.8,0.1,0.1")
        (0.8, 0.1, 0.1)
    """
    try:
        first, second, third = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} {text!r} is not three numbers", hint=f"as in {option} 0.8,0.1,0.1") from None
    return first, second, third


def check_writable(*paths: Path | None) -> None:
    """Refuse before an hour of work what could not be written after it."""
    for path in paths:
        if path is None:
            continue
        folder = path.resolve().parent
        if not folder.is_dir():
            raise StorageError(f"cannot write {path}: the folder {folder} does not exist", hint="make it first")
        if path.is_dir():
            raise StorageError(f"cannot write {path}: it is a folder", hint="name a file in it")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise StorageError(f"cannot write {path}: you may not write there", hint="choose another folder")
