"""Write rows as an Excel workbook (.xlsx) of one sheet, take a sheet's name off a workbook's, and count its rows."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from molgraph.base.errors import TooLargeError

ENDING, SHEET = ".xlsx", "::"
MOST_ROWS, MOST_COLUMNS, MOST_SIGNS = 1_048_576, 16_384, 32_767  # of a sheet, and of a cell
INSTEAD = "write .csv or .parquet"
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_LAST_ROW = re.compile(rb'<dimension ref="[A-Z]+\d+:[A-Z]+(\d{1,9})"')
_DATE = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")


def split_sheet(text: str) -> tuple[str, str | None]:
    """The path of a workbook and the sheet that is named behind ``::``; None for the first.

    Example:
        >>> split_sheet("assay.xlsx::Plate 2"), split_sheet("assay.csv")
        (('assay.xlsx', 'Plate 2'), ('assay.csv', None))
    """
    path, mark, sheet = text.partition(f"{ENDING}{SHEET}")
    return (path + ENDING, sheet) if mark else (text, None)


def longest_sheet(path: Path) -> int:
    """Rows of the longest sheet as the file states its size; 0 where it states none, or is no workbook."""
    rows = [0]
    with suppress(OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError), zipfile.ZipFile(path) as packed:
        for name in packed.namelist():
            if name.startswith("xl/worksheets/"):
                with packed.open(name) as sheet:
                    rows += map(int, _LAST_ROW.findall(sheet.read(2_000)))
    return min(max(rows), MOST_ROWS)


def workbook_bytes(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A workbook of one sheet with a header line; the same rows give the same bytes.

    Texts stay texts, also those that begin with ``=``; a number that is not finite is an empty cell.

    Raises:
        TooLargeError: more rows, columns or signs in a cell than a sheet can hold.
    """
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    if len(names) > MOST_COLUMNS:
        raise TooLargeError(f"{len(names):,} columns, and a sheet holds {MOST_COLUMNS:,}", hint=INSTEAD)

    cells: list[list[Any]] = []  # all is checked before a sheet is begun, whose temporary file would stay
    for row in [names, *rows]:
        if len(cells) >= MOST_ROWS:
            raise TooLargeError(f"more than {MOST_ROWS - 1:,} rows, which no sheet holds", hint=INSTEAD)
        cells.append([_plain(value) for value in row])
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")
    for line in cells:
        sheet.append([_as_text(WriteOnlyCell(sheet, v)) if isinstance(v, str) else v for v in line])
    written, fixed = BytesIO(), BytesIO()
    book.save(written)
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(fixed, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            info = zipfile.ZipInfo(member.filename)  # of 1980
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, _DATE.sub(rb"\g<1>1980-01-01T00:00:00Z", old.read(member)))
    return fixed.getvalue()


def _as_text(cell: Any) -> Any:
    """The cell as a text: no formula and no error, whatever it begins with."""
    cell.data_type = "s"
    return cell


def _plain(value: Any) -> Any:
    """A value that a cell can hold; None for a number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        if len(value) > MOST_SIGNS:
            words = f"a text of {len(value):,} signs, and a cell holds {MOST_SIGNS:,}"
            raise TooLargeError(words, hint=INSTEAD)
        return _ILLEGAL.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
    return value


def write_workbook(file: IO[bytes], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a workbook of one sheet to an open file."""
    file.write(workbook_bytes(names, rows))


def frame_bytes(frame: Any) -> bytes:
    """A pandas frame as a workbook, without its index."""
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return workbook_bytes([str(name) for name in frame.columns], rows)


def is_workbook(source: Any) -> bool:
    """Whether a path names a workbook, with a sheet or without.

    Example:
        >>> is_workbook("a.xlsx::Sheet2"), is_workbook("a.csv")
        (True, False)
    """
    return isinstance(source, str | Path) and Path(split_sheet(str(source))[0]).suffix.lower() == ENDING
