"""Read files of one record after another (.smi, .sdf) in chunks of text columns, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, islice

import numpy as np
import pyarrow as pa

from molgraph.base.errors import FormatError, TooLargeError
from molgraph.chem.molfile import FIELD, MAX_LINE, SDRecord, read_records
from molgraph.data.reading.chunk import GEOMETRY, MOLBLOCK, REASON, SAMPLE_ROWS, Chunk, check_size, recut
from molgraph.data.reading.columns import is_smiles_name
from molgraph.data.reading.csv_repair import is_torn, shown, tell_marked
from molgraph.data.reading.source import Opened
from molgraph.data.reading.text_lines import LineReader

PIECE_ROWS = 1_000
MAX_FIELDS = 10_000
_SHOWN = 1_000  # characters of a line that is too long


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


class SmilesReader(LineReader):
    """Lines of a SMILES and a name, with or without a header line."""

    smiles: str | None = "smiles"
    geometry: str | None = None

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self.names = ["smiles", "name"]
        lines = self._head_lines()
        self._skip = int(bool(lines) and is_smiles_name(re.split(r"[\s,;]", lines[0].strip())[0]))
        self.id = "name" if any(split_line(line)[1] for line in lines[self._skip :]) else None

    def _table(self, lines: list[str]) -> pa.Table:
        pairs = [split_line(line) if len(line) < MAX_LINE else (line[:_SHOWN], "") for line in lines]
        reason = f"a line of more than {MAX_LINE:,} characters; the first {_SHOWN:,} are shown"
        columns: dict[str, list[str | None]] = {"smiles": [p[0] for p in pairs], "name": [p[1] for p in pairs]}
        columns[REASON] = [reason if len(line) >= MAX_LINE else None for line in lines]
        table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
        return tell_marked(table, self.names)

    def sample(self) -> pa.Table:
        return self._table(self._head_lines()[self._skip : self._skip + SAMPLE_ROWS]).select(self.names)

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        return recut((t.select([*columns, REASON]) for t in self._pieces()), rows)

    def _pieces(self) -> Iterator[pa.Table]:
        lines = islice(self._lines(), self._skip, None)
        while held := list(islice(lines, PIECE_ROWS)):
            yield self._table(held)
        yield self._table([])


class RecordReader(LineReader):
    """An SD file; its columns are its fields and the title line. A field named ``smiles`` is the column ``smiles_2``.

    A field may first occur in any record, so a file that can be read twice is looked through for their names; of
    standard input the first records alone are known.
    """

    smiles: str | None = "smiles"
    geometry: str | None = GEOMETRY
    TITLE = "title"

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._records = list(read_records(self._head_lines(), molecules=False))
        fields = dict.fromkeys(name for record in self._records for name in record.fields)
        if opened.rereadable and not opened.whole:
            for line in self._lines():
                if line[0] == ">" and (match := FIELD.match(line)) and len(fields) <= MAX_FIELDS:
                    fields[match[1]] = None
        if len(fields) > MAX_FIELDS:
            raise TooLargeError(f"{self.name} has more than {MAX_FIELDS:,} fields", hint="is it an SD file?")
        self._fields = {shown(name): name for name in fields if name not in ("smiles", self.TITLE)}
        for name in sorted(set(fields) & {"smiles", self.TITLE}):  # the names of the structure and of the title line
            self._fields[next(n for k in count(2) if (n := f"{name}_{k}") not in self._fields)] = name
        self.names = ["smiles", self.TITLE, *self._fields]
        self.id = self.TITLE if any(record.title for record in self._records) else None

    def _table(self, records: list[SDRecord], columns: list[str]) -> pa.Table:
        own = {"smiles": [r.smiles for r in records], self.TITLE: [r.title for r in records]}
        own[MOLBLOCK] = [r.block for r in records]
        if GEOMETRY not in self._fields:
            own[GEOMETRY] = own[MOLBLOCK]
        fields = self._fields
        out = {n: own[n] if n in own else [r.fields.get(fields.get(n, n), "") for r in records] for n in columns}
        return pa.table({name: pa.array(values, pa.string()) for name, values in out.items()})

    def sample(self) -> pa.Table:
        return self._table(self._records[:SAMPLE_ROWS], self.names)

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        if bad := [name for name in columns if is_torn(self._fields.get(name, ""))]:
            raise FormatError(
                f"{self.name} is not UTF-8 text: it has the field {bad[0]!r}",
                hint="convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 IN > OUT",
            )
        held: list[SDRecord] = []
        start = size = 0
        for record in read_records(self._lines(), blocks=bool({MOLBLOCK, GEOMETRY} & {*columns})):
            held.append(record)
            size += len(record.block) + sum(map(len, record.fields.values()))
            if rows is not None:
                check_size(size, start, len(held))
            if rows is not None and len(held) == rows:
                yield self._chunk(held, columns, start)
                start, held, size = start + len(held), [], 0
        if held or start == 0:
            yield self._chunk(held, columns, start)

    def _chunk(self, records: list[SDRecord], columns: list[str], start: int) -> Chunk:
        reasons = np.array([r.reason for r in records], dtype=object)
        told = tell_marked(
            self._table(records, columns).append_column(REASON, pa.nulls(len(records), pa.string())), columns
        )
        marked = told[REASON].is_valid().to_numpy()
        reasons[marked] = told[REASON].to_numpy(zero_copy_only=False)[marked]
        return Chunk(told.drop_columns([REASON]), start, reasons, marked if marked.any() else None)
