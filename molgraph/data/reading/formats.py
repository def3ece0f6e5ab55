"""Choose the file format reader by the first bytes of a file, or by its suffix where these do not decide."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from molgraph.base.errors import EmptyError, FormatError, StorageError
from molgraph.base.workbook import is_workbook
from molgraph.chem.smiles import parse_smiles
from molgraph.data.reading.chunk import Reader
from molgraph.data.reading.delimited import DelimitedReader
from molgraph.data.reading.frame import FrameReader
from molgraph.data.reading.names import is_smiles_name
from molgraph.data.reading.npz import NpzReader
from molgraph.data.reading.parquet import ParquetReader
from molgraph.data.reading.smi_sdf import SDReader, SmilesReader
from molgraph.data.reading.source import SourceFile
from molgraph.data.reading.xlsx import WorkbookReader
from molgraph.data.reading.xyz import XyzReader

RECORDS = (".sdf", ".sd", ".mol")
LINES = (".smi", ".smiles", ".ism", ".cxsmiles")
FRAMES = (".xyz", ".extxyz")
_ATOM = re.compile(r"\s*([A-Z][a-z]?|\d+)(\s+-?\d+(\.\d*)?([eE][+-]?\d+)?){3}")
ARRAYS = ".npz"
ENDINGS = (*RECORDS, *LINES, *FRAMES, ARRAYS, ".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".gz")
_NEEDS = {
    RECORDS: "it needs a record for each molecule, closed by $$$$",
    LINES: "it needs a line for each molecule: a SMILES, and maybe a name",
    FRAMES: "it needs a frame for each molecule: the number of atoms, a comment, and a line for each atom",
}


def names_file(text: str) -> bool:
    """Whether a text means a file, standard input or a named table rather than a molecule.

    Example:
        >>> [names_file(text) for text in ("new.csv", "-", "builtin:lipo", "CCO", "[Na+].[Cl-]")]
        [True, True, True, False, False]
    """
    if text == "-" or text.startswith(("builtin:", "dataset:")):
        return True
    try:
        return Path(text).exists() or is_workbook(text) or Path(text).suffix.lower() in ENDINGS
    except (OSError, ValueError):
        return False


def reader_for(source: Any) -> Reader:
    """The reader of a path, of ``-``, or of columns in memory."""
    if not isinstance(source, str | Path):
        return FrameReader(source)
    if is_workbook(source):
        return WorkbookReader(source)
    if Path(source).suffix.lower() == ARRAYS and os.path.isfile(source):
        return NpzReader(source)
    try:
        file = SourceFile(source)
    except StorageError as error:
        if isinstance(source, str) and error.message.startswith("there is no file") and parse_smiles(source).mol:
            raise FormatError(error.message, hint=f"to read one molecule give a list: [{source!r}]") from None
        raise
    head, suffix = file.sample, file.suffix
    if not head.strip():
        needs = (text for endings, text in _NEEDS.items() if suffix in endings)
        raise EmptyError(f"{file.name} is empty", hint=next(needs, "it needs a header line with a column of SMILES"))
    if head.startswith(b"PAR1"):
        return ParquetReader(file)
    records = re.search(rb"^(M  END|\$\$\$\$)\s*$", head, re.MULTILINE)  # a quoted cell of a csv may hold these too
    if suffix in RECORDS or (records and suffix not in (".csv", ".tsv")):
        return SDReader(file)
    if suffix == ".parquet":
        raise FormatError(f"{file.name} is not a parquet file", hint="it may be cut short, or of another format")
    unnamed = suffix in ("", ".txt")
    if suffix in FRAMES or (unnamed and _begins_with_a_frame(file.text)):
        return XyzReader(file)
    return SmilesReader(file) if suffix in LINES or (unnamed and _lines_of_smiles(file.text)) else DelimitedReader(file)


def _lines_of_smiles(text: str) -> bool:
    """Whether a text starts with a SMILES instead of a header."""
    first = (text.lstrip().splitlines() or [""])[0]
    word = re.split(r"[\s,;]", first)[0]
    return not is_smiles_name(word) and not re.search(r"[,;]", first) and parse_smiles(word).mol is not None


def _begins_with_a_frame(text: str) -> bool:
    """Whether a text starts with a number of atoms, a comment and an atom in space."""
    lines = text.splitlines()[:3]
    return len(lines) == 3 and lines[0].strip().isdigit() and bool(_ATOM.match(lines[2]))
