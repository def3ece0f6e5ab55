"""Parse the values of command-line options."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from molgraph.base.errors import (
    BadValueError,
    CannotWriteError,
    ConflictError,
    MissingFileError,
    UnknownNameError,
    nearest,
)
from molgraph.base.paths import check_names_file
from molgraph.base.workbook import split_sheet

Named: TypeAlias = str | Path | None


def argument(help: str) -> Any:
    """A word behind the verb."""
    return typer.Argument(help=help)


def option(metavar: str, help: str, *names: str) -> Any:
    """An option with a value; named after its parameter where no names are given."""
    return typer.Option(*names, metavar=metavar, help=help)


def labels(help: str) -> Any:
    """The columns of targets."""
    return option("COLUMN", help, "--target", "-t")


def out_option(help: str, metavar: str = "FILE") -> Any:
    """Where the result is written."""
    return option(metavar, help, "--out", "-o")


Decimal: TypeAlias = Annotated[str | None, option("SIGN", "A comma where values have decimal commas.", "--decimal")]
Unit: TypeAlias = Annotated[
    str | None, option("UNIT", "Bring values (251 nM, or a column units) to this unit.", "--unit")
]
Qualifiers: TypeAlias = Annotated[
    str | None,
    option(
        "refuse|drop|strip|learn", "Labels such as >8.0: left out, read as 8.0, or judged as limits.", "--qualifiers"
    ),
]
Device: TypeAlias = Annotated[str | None, option("NAME", "cpu, cuda or auto; cpu if not given.")]
Threads: TypeAlias = Annotated[int | None, option("N", "CPU threads; all if not given.")]
Ids: TypeAlias = Annotated[str | None, option("COLUMN", "Ids, written as they are.", "--id")]
Smiles: TypeAlias = Annotated[
    list[str] | None, option("COLUMN", "SMILES; found if not given; again for several a row.")
]
Sequence: TypeAlias = Annotated[list[str] | None, option("COLUMN", "A protein sequence, for tables of pairs.")]
Geometry: TypeAlias = Annotated[list[str] | None, option("COLUMN", "Atoms in space, as mol, XYZ or PDB texts.")]
Reaction: TypeAlias = Annotated[list[str] | None, option("COLUMN", "Mapped reaction SMILES, or REACTANTS>>PRODUCT.")]
Preset: TypeAlias = Annotated[str, option("PRESET", "none, desalt, standard or canonical.")]
Fractions: TypeAlias = Annotated[str, option("A,B,C", "Shares of train, valid, test.")]
ModelFile: TypeAlias = Annotated[str, argument("A model file (.mgm).")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the same as JSON.")]


def numbers(option: str, text: str) -> tuple[float, float, float]:
    """Three numbers with commas between them.

    Example:
        >>> numbers("--fractions", "0.8,0.1,0.1")
        (0.8, 0.1, 0.1)
    """
    try:
        first, second, third = (float(part) for part in text.split(","))
    except ValueError:
        raise BadValueError(f"{option} {text!r} is not three numbers", hint=f"as in {option} 0.8,0.1,0.1") from None
    return first, second, third


def check_word(option: str, word: str, known: Iterable[str]) -> None:
    """Refuse a word that is none of those that an option takes; the nearest are named."""
    if word not in (known := tuple(known)):
        raise UnknownNameError(f"{option} is {word!r}, expected one of {', '.join(known)}", hint=nearest(word, known))


def check_whole(option: str, n: int | None) -> None:
    """Refuse a number of something that is below 1; None is for who did not say."""
    if n is not None and n < 1:
        raise BadValueError(f"{option} is {n}, expected 1 or more", hint=f"as in {option} 2")


def check_writable(*outputs: Named, inputs: Iterable[Named] = ()) -> None:
    """Refuse before an hour of work what could not be written after it, and what would be written over.

    Args:
        outputs: files that a verb will write; None and ``-`` are none.
        inputs: files that it reads, and words that are no file, such as ``-`` or ``builtin:NAME``.

    Raises:
        CannotWriteError: one cannot be written there.
        ConflictError: one is an input, or another output; a verb never writes over what it was given.
    """
    written = [Path(path) for path in outputs if path is not None and str(path) != "-"]
    read = [Path(split_sheet(str(path))[0]) for path in inputs if path is not None]
    for path in written:
        check_names_file(path)
    if not all(path.is_absolute() for path in written):
        try:
            os.getcwd()
        except OSError as error:
            words = "the folder that you work in was deleted"
            raise MissingFileError(words, hint="change to another one: cd") from error
    for i, path in enumerate(written):
        for other in read:
            if _same(path, other):
                raise ConflictError(f"{other} is read, and would be written over", hint="name another file to write")
        if any(_same(path, other) for other in written[:i]):
            raise ConflictError(f"{path} would be written twice", hint="name a file for each thing to write")
        _check_place(path)


def _check_place(path: Path) -> None:
    final = Path(os.path.realpath(path))
    if any(part.is_symlink() for part in (final, *final.parents)):  # what realpath could not follow to its end
        raise CannotWriteError(f"cannot write {path}: its symbolic links lead in a circle", hint="name another file")
    folder = final.parent
    if not folder.is_dir():
        raise CannotWriteError(f"cannot write {path}: the folder {folder} does not exist", hint="make it first")
    if path.is_dir():
        raise CannotWriteError(f"cannot write {path}: it is a folder", hint="name a file in it")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise CannotWriteError(f"cannot write {path}: you may not write there", hint="choose another folder")


def _same(path: Path, other: Path) -> bool:
    """Whether two names mean one file, links followed; a terminal or a pipe may be read and written."""
    try:
        if path.exists() and other.exists():
            return path.is_file() and path.samefile(other)
        return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))
    except (OSError, ValueError):
        return False  # what is wrong with that name is said where it is opened
