"""Every error that molgraph raises on purpose: what went wrong in one sentence, then what to do next."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from molgraph.base.printable import printable

SHOWN = 20  # names in a list of known ones
FLOOR = 0.65  # likeness of two names, from 0 to 1, under which one is no slip of the other
NEAR = 0.15  # names less like the one asked for than the nearest is, by more than this, are left out


class MolgraphError(Exception):
    """A failure that a user can act on.

    Args:
        message: what went wrong, with the input, its index or its shape.
        hint: what to do next; shown on its own line.

    Attributes:
        code: the kind of failure, for programs and tests; the class's name in lower case.
        exit_code: of the shell's command.

    Example:
        >>> error = MissingColumnError("no column 'smile'", hint="did you mean 'smiles'?")
        >>> str(error), error.code, error.exit_code
        ("no column 'smile'\\n  did you mean 'smiles'?", 'missing-column', 3)
    """

    code = "molgraph"
    exit_code = 1

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, message: str, *, hint: str = "") -> None:
        message, hint = printable(message), printable(hint)
        super().__init__(f"{message}\n  {hint}" if hint else message)
        self.message, self.hint = message, hint

    @property
    def in_one_line(self) -> str:
        """What is wrong and what to do.

        Example:
            >>> MolgraphError("no column 'smile'", hint="did you mean 'smiles'?").in_one_line
            "no column 'smile'; did you mean 'smiles'?"
        """
        return "; ".join(filter(None, (self.message, *map(str.strip, self.hint.splitlines()))))


class UsageError(MolgraphError):
    """An option, recipe key or name that molgraph does not know (exit code 2)."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name, option or key that is not among the known ones."""


class BadValueError(UsageError):
    """A value of the wrong type or out of its range."""


class UnusedSettingError(UsageError):
    """A setting that nothing reads beside the others."""


class ConflictError(UsageError):
    """Settings that exclude each other."""


class MissingOptionError(UsageError):
    """An option, setting or name that is needed here."""


class UnsupportedError(UsageError):
    """A model, method or file that cannot do this."""


class NotFittedError(UsageError):
    """A model that has to be trained first."""


class NotInstalledError(UsageError):
    """A package that has to be installed first."""


class DataError(MolgraphError):
    """A table, column or target that cannot be used as asked (exit code 3)."""

    exit_code = 3


class MissingColumnError(DataError):
    """A column that the table does not have."""


class AmbiguousColumnError(DataError):
    """Several columns, or none, could be the one that is asked for; or one column is named for two things."""


class FormatError(DataError):
    """A file or value that is not of the format it should have."""


class CellError(DataError):
    """A cell, molecule, graph or row that cannot be read or used."""


class EmptyError(DataError):
    """No row, molecule or part of a split remains."""


class LabelError(DataError):
    """Targets that cannot be learned or scored: missing, constant, or of the wrong kind."""


class ShapeError(DataError):
    """Lengths or shapes that do not fit together."""


class RowIdError(DataError):
    """Ids of rows that are unknown, repeated or missing."""


class MismatchError(DataError):
    """Data that differ from those of the model, run or file to which they belong."""


class TooLargeError(DataError):
    """More rows, atoms or characters than can be handled."""


class ModelFileError(MolgraphError):
    """A model file that is corrupt, foreign or from a newer version (exit code 4)."""

    exit_code = 4


class DamagedModelError(ModelFileError):
    """A model file with missing or changed bytes."""


class ForeignModelError(ModelFileError):
    """A file that is not a model of molgraph, or not one of the kind that is needed."""


class NewerVersionError(ModelFileError):
    """A file of a newer version of molgraph."""


class StorageError(MolgraphError):
    """A file that is missing or may not be read or written, a full disk, a damaged store (exit code 5)."""

    exit_code = 5


class MissingFileError(StorageError):
    """A file or folder that is not there."""


class CannotReadError(StorageError):
    """A file that may not be read, or is damaged."""


class CannotWriteError(StorageError):
    """A file that cannot be written: permissions, a full disk."""


class FileKeptError(StorageError):
    """A file or folder that exists and is not overwritten."""


class BusyError(StorageError):
    """A file or folder that another process is using."""


class DownloadError(StorageError):
    """A file that cannot be downloaded."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known names are nearest to an unknown one; a part of ``scaffold/balanced`` counts too.

    Example:
        >>> nearest("dmpn", ["dmpnn", "mpnn", "random_forest"])
        "did you mean 'dmpnn' or 'mpnn'?"
        >>> nearest("scafold", ["random", "scaffold/balanced"])
        "did you mean 'scaffold/balanced'?"
        >>> nearest("zzz", ["dmpnn", "mpnn"])
        'known: dmpnn, mpnn'
    """
    known = list(known)
    close = close_names(name, known)
    if close:
        return did_you_mean(close)
    more = f" and {len(known) - SHOWN:,} more" if len(known) > SHOWN else ""
    return "known: " + ", ".join(known[:SHOWN]) + more if known else "there is none to choose"


def did_you_mean(names: Iterable[str]) -> str:
    """The question itself."""
    return "did you mean " + " or ".join(map(repr, names)) + "?"


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of the known names that look like ``name``, the nearest first, equally near ones in their order.

    Example:
        >>> close_names("forset", ["rmse", "sort", "random_forest"])
        ['random_forest']
    """
    whole = {each: _likeness(name, each) for each in known}
    best = {each: max(_likeness(name, part) for part in (each, *re.split("[/_]", each))) for each in whole}
    floor = max(FLOOR, max(best.values(), default=0.0) - NEAR)
    return sorted((each for each in best if best[each] >= floor), key=lambda each: (-best[each], -whole[each]))[:3]


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, other.lower(), one.lower()).ratio()
