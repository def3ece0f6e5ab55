"""Read delimited text (csv, tsv, semicolons, bars) in chunks of text columns, in constant memory."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.csv as pacsv

from molgraph.base.errors import AmbiguousColumnError, DataError, EmptyError, FormatError, TooLargeError
from molgraph.data.reading.chunk import SAMPLE_ROWS, Chunk, recut
from molgraph.data.reading.columns import is_smiles_name
from molgraph.data.reading.csv_repair import MalformedRows, Utf8Sanitiser, decode, is_torn, ragged, shown
from molgraph.data.reading.source import DAMAGED, Opened, broken

BLOCK_BYTES = 1 << 22  # also the longest row that is read
_LEAST = 3  # lines of the sample: the header, a row, and one that may be cut
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
#: Blank lines, and the line with which Excel is told the delimiter.
_BEFORE_HEADER = re.compile(r"(?:[ \t]*(?:\r\n|\n|\r))*(?:sep=([,;\t|])(?:\r\n|\n|\r))?")


class DelimitedReader:
    """A file of delimited text with a header line."""

    smiles: str | None = None
    id: str | None = None
    geometry: str | None = None

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self.name, self.rereadable = opened.name, opened.rereadable
        self._encoding = opened.encoding
        self.delimiter, lines = self._look()
        while len(lines) < _LEAST and not opened.whole and len(opened.sample) < BLOCK_BYTES:
            opened.look_further(min(8 * len(opened.sample), BLOCK_BYTES))
            self.delimiter, lines = self._look()
        if len(lines) == 1 and not opened.whole:
            raise TooLargeError(
                f"{self.name} has a header of more than {BLOCK_BYTES:,} bytes", hint="save it as parquet, or transposed"
            )
        if not opened.whole and len(lines) <= SAMPLE_ROWS:
            lines = lines[:-1] or lines  # the sample stops within its last row
        self._header = lines[0] if lines else []
        if any(map(is_torn, self._header)):
            raise self._not_utf8(f": its header reads {shown(self.delimiter.join(self._header))[:200]!r}")
        self._first = lines[1:]
        self._check_comment()
        if not any(map(str.strip, self._header)):
            raise EmptyError(f"{self.name} is empty", hint="it needs a header line with a column of SMILES")
        self.names = [cell.strip() or f"column {j + 1}" for j, cell in enumerate(self._header)]
        check_unique(self.names, self.name)
        self._check_first()

    def _look(self) -> tuple[str, list[list[str]]]:
        """The delimiter and the first rows of the sample, whose last may be cut."""
        sample, utf8 = self._opened.sample, self._encoding == "utf-8"
        text = (decode(sample) if utf8 else sample.decode(self._encoding, errors="replace")).removeprefix("\ufeff")
        before = _BEFORE_HEADER.match(text)
        assert before is not None
        self._skip, text = len(before[0].splitlines()), text[before.end() :]
        delimiter = before[1] or find_delimiter(text, self._opened.suffix)
        return delimiter, _rows(text, delimiter)

    def _check_comment(self) -> None:
        """Refuse a first line that is a remark: one with a # before a line of column names, or before wider rows."""
        head = self._header
        if not head or not head[0].lstrip().startswith("#") or any(map(is_smiles_name, head)):
            return
        named = any(is_smiles_name(cell) for row in self._first[:20] for cell in row)
        wider = 2 * sum(len(row) > len(head) for row in self._first) > len(self._first)
        split = len(head) == 1 and any(mark in cell for row in self._first[:1] for cell in row for mark in DELIMITERS)
        if named or wider or split:
            raise FormatError(
                f"{self.name}: the first line is a comment ({head[0].strip()[:60]}), not a header",
                hint="delete the lines before the line of column names, for example: grep -v '^#' IN > OUT",
            )

    def _check_first(self) -> None:
        """Refuse a file most of whose first rows are not sound: then it is not the rows that are wrong."""
        width = len(self.names)
        odd = [len(row) != width for row in self._first]
        torn = [any(map(is_torn, row)) for row in self._first]
        if 2 * sum(odd) > len(odd):
            n = odd.index(True)
            words = ragged(len(self._first[n]), width, f"row {n + 1}")
            raise FormatError(
                f"{self.name}: {words}; most of the first rows are like that",
                hint=f"the delimiter was taken to be a {DELIMITERS[self.delimiter]}; quote cells that hold one",
            )
        if 2 * sum(torn) > len(torn):
            raise self._not_utf8(f" in row {torn.index(True) + 1} and others")

    def sample(self) -> pa.Table:
        width = len(self.names)
        rows = [row for row in self._first if len(row) == width and not any(map(is_torn, row))]
        return pa.table({name: pa.array([row[j] for row in rows], pa.string()) for j, name in enumerate(self.names)})

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        return recut(self._pieces(columns), rows)

    def _pieces(self, columns: list[str]) -> Iterator[pa.Table]:
        """Blocks of rows, with a column of reasons as the last."""
        stream = self._opened.stream()
        last = self.names[-1]  # an unclosed quote shows in the last column
        wanted = list(dict.fromkeys([*columns, last]))
        sound = Utf8Sanitiser(stream, self._encoding == "utf-8")
        torn = MalformedRows(self.names, self.delimiter, self._skip)
        none, end = pa.table({name: pa.array([], pa.string()) for name in columns}), ""
        try:
            for batch in self._batches(sound, wanted, torn):
                if batch.num_rows:
                    end = batch.column(wanted.index(last))[-1].as_py()
                yield torn.merge(pa.Table.from_batches([batch]).select(columns), sound.torn)
            if sound.endless:
                raise self._too_long()
            sound.wait()
            yield torn.merge(none, sound.torn)  # odd rows at the end
        except pa.ArrowInvalid as error:
            if not self._opened.whole or self._first:
                raise self._explain(str(error), torn) from None
            yield torn.merge(none, sound.torn)  # a header alone, without an end of line
            return
        except UnicodeError:
            raise FormatError(f"{self.name} is not {self._encoding} text", hint="save it as UTF-8") from None
        except DAMAGED as error:
            raise broken(self.name, error) from None
        finally:
            stream.close()
        if re.search(r"[\r\n]", end) and not torn.last_is_torn and not sound.end.rstrip(b"\r\n").endswith(b'"'):
            raise FormatError(
                f"{self.name}: row {torn.rows} opens a quote that is never closed", hint='close it, or write " as ""'
            )

    def _batches(self, source: Utf8Sanitiser, wanted: list[str], torn: MalformedRows) -> Iterable[pa.RecordBatch]:
        read = pacsv.ReadOptions(
            use_threads=False,
            block_size=BLOCK_BYTES,
            encoding=self._encoding,
            skip_rows=self._skip,
            column_names=self.names,
            skip_rows_after_names=1,  # the header, whose unnamed columns have no name
        )
        parse = pacsv.ParseOptions(
            delimiter=self.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=len(self.names) > 1,  # in a file of one column an empty line is a row
            invalid_row_handler=torn,
        )
        types = dict.fromkeys(wanted, pa.string())
        convert = pacsv.ConvertOptions(include_columns=wanted, column_types=types, strings_can_be_null=False)
        return pacsv.open_csv(source, read_options=read, parse_options=parse, convert_options=convert)

    def _not_utf8(self, where: str) -> FormatError:
        return FormatError(
            f"{self.name} is not UTF-8 text{where}",
            hint="convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 IN > OUT; Excel saves it as CSV UTF-8",
        )

    def _too_long(self) -> TooLargeError:
        return TooLargeError(
            f"{self.name} has a row of more than {BLOCK_BYTES} bytes", hint="look for a quote that is never closed"
        )

    def _explain(self, text: str, torn: MalformedRows) -> DataError:
        """Arrow's message in our words."""
        if torn.over_lines is not None:
            return FormatError(
                f"{self.name}: row {torn.over_lines + 1} goes over several lines and has not the header's "
                f"{len(self.names)} cells",
                hint='look for a quote that is never closed; write " as "" within a quoted cell',
            )
        if "straddling" in text:
            return self._too_long()
        return FormatError(f"{self.name} cannot be read: {' '.join(text.split())[:300]}")


def _rows(text: str, delimiter: str, limit: int = SAMPLE_ROWS + 1) -> list[list[str]]:
    """The first complete rows, blank lines left out."""
    csv.field_size_limit(1 << 24)
    out: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                out.append(row)
            if len(out) >= limit:
                break
    except csv.Error:
        pass  # the sample may stop within a row; Arrow reads the file itself
    return out


def find_delimiter(text: str, suffix: str = "") -> str:
    """The delimiter whose cells a row are most alike over the first rows; a comma where there is one column.

    Example:
        >>> find_delimiter("smiles;y\\nCCO;5,48\\nCCN;6,01\\n")
        ';'
    """
    usual = {".tsv": "\t", ".tab": "\t"}.get(suffix, ",")
    best, best_score = usual, (0.0, 0.0, False)
    for delimiter in DELIMITERS:
        rows = _rows(text, delimiter, 50)
        if not rows or len(rows[0]) < 2:
            continue
        width = len(rows[0])
        body = rows[1:-1] or rows[1:] or rows  # the sample may stop within its last row
        alike = sum(len(row) == width for row in body) / len(body)
        score = (round(alike, 1), width + 0.5 * (delimiter == usual), delimiter == usual)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def check_unique(names: list[str], source: str) -> None:
    """Raise ``AmbiguousColumnError`` where two columns have one name."""
    double = sorted(name for name, n in Counter(names).items() if n > 1)
    if double:
        raise AmbiguousColumnError(
            f"{source} has two columns named {', '.join(map(repr, double))}", hint="rename or delete one of them"
        )
