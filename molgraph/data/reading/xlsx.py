"""Read a sheet of an Excel workbook (.xlsx) as columns of text: the values that are stored, formulas never run."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from molgraph.base.errors import DataError, EmptyError, FormatError, MissingColumnError, nearest
from molgraph.base.printable import encodable
from molgraph.base.workbook import MOST_ROWS, SHEET, split_sheet
from molgraph.data.reading.chunk import MemoryReader, check_size, check_unique
from molgraph.data.reading.names import is_smiles_name, plain
from molgraph.data.reading.source import SourceFile

TOP = 20  # rows in which a header is looked for

#: what openpyxl raises for files that are damaged or none of its own
BROKEN = (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError, AttributeError, TypeError, SyntaxError)


class WorkbookReader(MemoryReader):
    """One sheet of a workbook; where none is named behind ``::``, the first with a column that is named like SMILES.

    The header is the first of the top rows with such a name, what stands above it being a title; else the first row
    that is not empty. Each row below it is a row, empty ones between others too; empty
    ones at the end are none. A number is written as Python writes it, a date as ISO 8601 has it, TRUE and FALSE in
    words. A formula is the value that was stored with it.

    Args:
        source: ``book.xlsx`` or ``book.xlsx::Sheet``.

    Raises:
        DataError: no workbook, no such sheet, an empty one, or formulas that were never computed.
    """

    def __init__(self, source: str | Path) -> None:
        path, sheet = split_sheet(str(source))
        self.name = str(source)
        rows = self._read(path, sheet)
        while rows and not any(rows[-1]):
            rows.pop()
        first = _header(rows)
        first = next((i for i, row in enumerate(rows) if any(row)), None) if first is None else first
        if first is None:
            raise EmptyError(f"{self.name} is empty", hint="it needs a header line with a column of SMILES")
        width = max(max((j + 1 for j, cell in enumerate(row) if cell), default=0) for row in rows)
        wide = [[*row[:width], *[""] * (width - len(row))] for row in rows[first:]]
        self.names = [cell.strip() or f"column {j + 1}" for j, cell in enumerate(wide[0])]
        check_unique(self.names, self.name)
        columns = zip(*wide[1:], strict=True) if len(wide) > 1 else [()] * width
        self._table = pa.table([pa.array(map(encodable, cells), pa.string()) for cells in columns], names=self.names)
        self.n_rows = len(self._table)

    def table(self, names: list[str], rows: slice) -> pa.Table:
        return self._table.select(names)[rows]

    def _read(self, path: str, sheet: str | None) -> list[list[str]]:
        """The cells of the sheet as text, row by row."""
        if not Path(path).is_file():
            SourceFile(path)  # says what is wrong
        try:
            with zipfile.ZipFile(path) as packed:
                check_size(sum(part.file_size for part in packed.infolist()), 0, MOST_ROWS)
                parts = [name for name in packed.namelist() if name.startswith("xl/worksheets/")]
                formulas = any(b"<f" in packed.read(name) for name in parts)
            rows = [[_text(cell.value) for cell in row] for row in self._cells(path, sheet, data_only=True)]
            # some programs store no values of formulas: their cells would be empty
            for row, texts in zip(self._cells(path, sheet) if formulas else (), rows, strict=False):
                for cell, text in zip(row, texts, strict=False):
                    if cell.data_type == "f" and not text:
                        words = f"{self.name}: the formula in cell {cell.coordinate} has no stored value"
                        raise FormatError(words, hint="open it in a spreadsheet and save it, or save it as csv")
        except DataError:
            raise
        except BROKEN as error:
            words = f"{path} is no whole workbook (.xlsx): {error}"
            raise FormatError(words, hint="save it again, or as csv") from None
        return rows

    def _cells(self, path: str, sheet: str | None, data_only: bool = False) -> Iterator[Any]:
        """The rows of the sheet; ``data_only``: with the values that are stored, not with the formulas."""
        import openpyxl

        with closing(openpyxl.load_workbook(path, read_only=True, data_only=data_only)) as book:
            titles = [page.title for page in book.worksheets]
            title = next(iter(titles), None) if sheet is None else sheet
            if title not in titles:
                raise MissingColumnError(f"{self.name}: there is no sheet {title!r}", hint=nearest(title or "", titles))
            if sheet is None and len(titles) > 1:
                tops = {
                    one: [[_text(c.value) for c in row] for row in book[one].iter_rows(max_row=TOP)] for one in titles
                }
                title = next((one for one, rows in tops.items() if _header(rows) is not None), title)
                self.name = f"{path}{SHEET}{title}"
            yield from book[title].iter_rows()


def _header(rows: list[list[str]]) -> int | None:
    """The first top row with a column named like SMILES, where those above it have one cell each, as titles do."""
    for i, row in enumerate(rows[:TOP]):
        cells = [cell for cell in row if cell]
        if any(is_smiles_name(cell) and (len(cells) > 1 or "smi" in plain(cell)) for cell in cells):
            return i
        if len(cells) > 1:
            return None
    return None


def _text(value: Any) -> str:
    """A cell as text.

    Example:
        >>> [_text(v) for v in (None, 5, 0.1, True, datetime.datetime(2024, 3, 1), " x")]
        ['', '5', '0.1', 'TRUE', '2024-03-01', ' x']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(sep=" ")
    return str(value)
