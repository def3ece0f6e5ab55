"""Read SMILES (.smi) and SD (.sdf) files in chunks of text columns, in constant memory."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from molgraph.base.errors import FormatError
from molgraph.chem.molfile import FIELD, MAX_LINE, SDRecord, read_records
from molgraph.data.reading.chunk import (
    GEOMETRY,
    MOLBLOCK,
    SAMPLE_ROWS,
    Chunk,
    Reader,
    check_size,
    chunk_of,
    free_name,
    table_of,
)
from molgraph.data.reading.names import is_smiles_name
from molgraph.data.reading.source import SourceFile, is_torn, shown

_SHOWN = 1_000  # characters of a line that is too long


class RecordReader(Reader):
    """The base class of readers of records.

    Args:
        source: the file.
    """

    _first: Sequence[Any]  # the records of the sample

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self.name, self.rereadable = source.name, source.rereadable
        lines = StringIO(source.text, newline=None).readlines()
        self._head = lines if source.whole else lines[:-1]  # whole lines of the sample

    @abstractmethod
    def records(self, columns: Sequence[str]) -> Iterator[tuple[Any, int, str]]:
        """Each record with what some columns need, its characters, and why it has no molecule (empty for one)."""

    @abstractmethod
    def cells(self, records: Sequence[Any], name: str) -> list[str | None]:
        """The cells of a column."""

    def lines(self) -> Iterator[str]:
        """The lines of the file."""
        return self._source.lines(MAX_LINE)

    def sample(self) -> pa.Table:
        return self._table(self._first[:SAMPLE_ROWS], self.names).select(self.names)

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        batch, reasons, start, size = list[Any](), list[str](), 0, 0
        for record, n_characters, reason in self.records(columns):
            batch.append(record)
            reasons.append(reason)
            size += n_characters
            if rows is not None:
                check_size(size, start, len(batch))
            if len(batch) == rows:
                yield self._chunk(batch, reasons, columns, start)
                start, batch, reasons, size = start + len(batch), [], [], 0
        if batch or start == 0:
            yield self._chunk(batch, reasons, columns, start)

    def _chunk(self, records: list[Any], reasons: list[str], columns: list[str], start: int) -> Chunk:
        chunk, faults = chunk_of(self._table(records, columns), start), np.array(reasons, dtype=object)
        if chunk.reasons is not None:
            faults = np.where(chunk.reasons != "", chunk.reasons, faults)
        return replace(chunk, reasons=faults)

    def _table(self, records: Sequence[Any], columns: Sequence[str]) -> pa.Table:
        """Records as a table with a column of reasons of those that are no text."""
        return table_of({name: self.cells(records, name) for name in columns}, [None] * len(records))


def split_line(line: str) -> tuple[str, str]:
    r"""SMILES and name of a line of a .smi file.

    With a tab, all before the first tab is the SMILES; else the first word, with its CXSMILES extension.

    Example:
        >>> split_line("CCO ethanol, dry"), split_line("OCC ; x\tname"), split_line("*C |$R1;$| methyl")
        (('CCO', 'ethanol, dry'), ('OCC ; x', 'name'), ('*C |$R1;$|', 'methyl'))
    """
    line = line.rstrip("\r\n")
    if "\t" in line:
        text, _, name = line.partition("\t")
        return text, name
    words = line.split(None, 1)
    if len(words) < 2:
        return line, ""
    text, rest = words
    if rest[0] == "|" and (end := rest.find("|", 1)) > 0:
        return f"{text} {rest[: end + 1]}", rest[end + 1 :].strip()
    return text, rest


class SmilesReader(RecordReader):
    """Lines of a SMILES and a name, with or without a header line."""

    smiles = "smiles"

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self.names = ["smiles", "name"]
        self._skip = int(bool(self._head) and is_smiles_name(re.split(r"[\s,;]", self._head[0].strip())[0]))
        self._first = [*map(split_line, self._head[self._skip :])]
        self.id = "name" if any(name for _, name in self._first) else None

    def records(self, columns: Sequence[str]) -> Iterator[tuple[tuple[str, str], int, str]]:
        reason = f"a line of more than {MAX_LINE:,} characters; the first {_SHOWN:,} are shown"
        for line in islice(self.lines(), self._skip, None):
            if len(line) < MAX_LINE:
                yield split_line(line), len(line), ""
            else:
                yield (line[:_SHOWN], ""), len(line), reason

    def cells(self, records: Sequence[tuple[str, str]], name: str) -> list[str | None]:
        place = self.names.index(name)
        return [pair[place] for pair in records]


class SDReader(RecordReader):
    """An SD file; its columns are its fields and the title line. A field named ``smiles`` is the column ``smiles_2``.

    A field may first occur in any record, so a file that can be read twice is looked through for their names; of
    standard input the first records alone are known.
    """

    smiles = "smiles"
    geometry = GEOMETRY
    TITLE = "title"

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._first = list(read_records(self._head, molecules=False))
        fields = dict.fromkeys(name for record in self._first for name in record.fields)
        if source.rereadable and not source.whole:
            for line in self.lines():
                if line[0] == ">" and (match := FIELD.match(line)):
                    fields[match[1]] = None
        self._fields = {shown(name): name for name in fields if name not in ("smiles", self.TITLE)}
        for name in sorted(set(fields) & {"smiles", self.TITLE}):  # the names of the structure and of the title line
            self._fields[free_name(name, self._fields)] = name
        self.names = ["smiles", self.TITLE, *self._fields]
        self.id = self.TITLE if any(record.title for record in self._first) else None
        self._attributes = {"smiles": "smiles", self.TITLE: "title", MOLBLOCK: "block"}
        if GEOMETRY not in self._fields:
            self._attributes[GEOMETRY] = "block"

    def records(self, columns: Sequence[str]) -> Iterator[tuple[SDRecord, int, str]]:
        if torn := [name for name in columns if is_torn(self._fields.get(name, ""))]:
            hint = "convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 IN > OUT"
            raise FormatError(f"{self.name} is not UTF-8 text: it has the field {torn[0]!r}", hint=hint)
        for record in read_records(self.lines(), blocks=bool({MOLBLOCK, GEOMETRY} & {*columns})):
            yield record, len(record.block) + sum(map(len, record.fields.values())), record.reason

    def cells(self, records: Sequence[SDRecord], name: str) -> list[str | None]:
        if attribute := self._attributes.get(name):
            return [getattr(record, attribute) for record in records]
        return [record.fields.get(self._fields.get(name, name), "") for record in records]
