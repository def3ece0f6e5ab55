"""Every error that molgraph raises on purpose: what went wrong in one sentence, then what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MolgraphError(Exception):
    """A failure that a user can act on.

    Args:
        message: what went wrong, with the input, its index or its shape.
        hint: what to do next; shown on its own line.

    Example:
        >>> str(MolgraphError("no column 'smile'", hint="did you mean 'smiles'?"))
        "no column 'smile'\\n  did you mean 'smiles'?"
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}\n  {hint}" if hint else message)
        self.message, self.hint = message, hint


class UsageError(MolgraphError):
    """An option, recipe key or name that molgraph does not know (exit code 2)."""

    exit_code = 2


class DataError(MolgraphError):
    """A table, column or target that cannot be used as asked (exit code 3)."""

    exit_code = 3


class ModelFileError(MolgraphError):
    """A model file that is corrupt, foreign or from a newer version (exit code 4)."""

    exit_code = 4


class StorageError(MolgraphError):
    """A file that is missing or may not be read or written, a full disk, a damaged store (exit code 5)."""

    exit_code = 5


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known names are nearest to an unknown one.

    Example:
        >>> nearest("dmpn", ["dmpnn", "mpnn", "random_forest"])
        "did you mean 'dmpnn' or 'mpnn'?"
        >>> nearest("zzz", ["dmpnn", "mpnn"])
        'known: dmpnn, mpnn'
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "known: " + ", ".join(known)
