"""Read XYZ files of one or many frames in chunks: a frame is a row, the keys of its comment line are columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from molgraph.base.errors import TooLargeError
from molgraph.chem.molfile import MAX_RECORD
from molgraph.chem.xyz import LATTICE, PERIODIC, PROPERTIES, read_comment
from molgraph.data.reading.chunk import GEOMETRY, REASON, SAMPLE_ROWS, Chunk, check_size
from molgraph.data.reading.csv_repair import shown, tell_marked
from molgraph.data.reading.source import Opened
from molgraph.data.reading.text_lines import LineReader

COMMENT = "comment"  # the column of comments that are no pairs of key and value
MAX_KEYS = 10_000
MOST_LINES = 1_000_000  # of a frame
_SHAPE = (PROPERTIES, LATTICE, PERIODIC)  # keys that tell how the frame is written


class FrameText(NamedTuple):
    """The text of one frame, the values of its comment, and why it is no whole frame."""

    text: str
    values: dict[str, str]
    reason: str = ""


def split_frames(lines: Iterator[str]) -> Iterator[FrameText]:
    r"""The frames of an XYZ file, one after another; blank lines between them are passed over.

    A frame of fewer atoms than its first line says, and lines that begin no frame, are frames with a reason; reading
    goes on at the next line that is a whole number alone.

    Example:
        >>> text = "1\nE=2\nH 0 0 0\n\n2\n\nH 0 0 0\n1\n\nHe 0 0 0\n"
        >>> [(frame.values, frame.reason) for frame in split_frames(iter(text.splitlines()))]
        [({'E': '2'}, ''), ({}, 'a frame of 1 atoms, of which its first line says 2'), ({}, '')]
    """
    ahead = next((line for line in lines if line.strip()), None)
    while ahead is not None:
        if (size := _count(ahead)) is None:
            first, ahead = ahead, next((line for line in lines if _count(line) is not None), None)
            yield FrameText(first, {}, f"no frame begins here: {first.strip()[:60]!r}")
            continue
        held, n, characters, following = [ahead, next(lines, "")], 0, 0, None
        for line in islice(lines, size):
            if _count(line) is not None:  # the next frame has begun
                following = line
                break
            n, characters = n + 1, characters + len(line)
            held += [line] * (characters < MAX_RECORD)
        reason = "" if n == size else f"a frame of {n} atoms, of which its first line says {size:,}"
        if characters >= MAX_RECORD:
            reason = f"a frame of more than {MAX_RECORD:,} characters"
        values = read_comment(held[1]) or ({COMMENT: held[1].strip()} if held[1].strip() else {})
        yield FrameText("\n".join(line.rstrip("\r\n") for line in held), values, reason)
        ahead = following or next((line for line in lines if line.strip()), None)


def _count(line: str) -> int | None:
    """The number of atoms that a line says; None where it is anything else."""
    word = line.strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) < len(str(MOST_LINES)) else None


class XyzReader(LineReader):
    """An XYZ file, plain or extended; its columns are the keys of the comment lines, and what else stands there.

    A key may first occur in any frame, so a file that can be read twice is looked through for them; of standard input
    the first frames alone are known. The frames themselves are the column ``geometry``.
    """

    smiles: str | None = None
    id: str | None = None
    geometry: str | None = GEOMETRY

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        known = list(split_frames(iter(self._head_lines())))
        self._frames = known if opened.whole else known[:-1]  # the last one may be cut
        whole = self._frames if opened.whole or not opened.rereadable else split_frames(self._lines())
        keys = dict[str, None]()
        for frame in whole:
            keys |= dict.fromkeys(key for key in frame.values if key.lower() not in _SHAPE)
            if len(keys) > MAX_KEYS:
                raise TooLargeError(f"{self.name} has more than {MAX_KEYS:,} keys", hint="is it an XYZ file?")
        self._keys = {shown(key): key for key in keys if key != GEOMETRY}
        if GEOMETRY in keys:  # the name of the frames themselves
            self._keys[next(n for k in count(2) if (n := f"{GEOMETRY}_{k}") not in keys)] = GEOMETRY
        self.names = [*self._keys]

    def sample(self) -> pa.Table:
        return self._table(self._frames[:SAMPLE_ROWS], self.names)

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        held, start, size = list[FrameText](), 0, 0
        for frame in split_frames(self._lines()):
            held.append(frame)
            size += len(frame.text)
            if rows is not None:
                check_size(size, start, len(held))
            if len(held) == rows:
                yield self._chunk(held, columns, start)
                start, held, size = start + len(held), [], 0
        if held or start == 0:
            yield self._chunk(held, columns, start)

    def _chunk(self, frames: list[FrameText], columns: list[str], start: int) -> Chunk:
        told = tell_marked(
            self._table(frames, columns).append_column(REASON, pa.nulls(len(frames), pa.string())), columns
        )
        torn = told[REASON].is_valid().to_numpy()
        reasons = np.array([frame.reason for frame in frames], dtype=object)
        reasons[torn] = told[REASON].to_numpy(zero_copy_only=False)[torn]
        return Chunk(told.drop_columns([REASON]), start, reasons, torn if torn.any() else None)

    def _table(self, frames: list[FrameText], columns: list[str]) -> pa.Table:
        texts = {
            name: [f.text if name == GEOMETRY else f.values.get(self._keys.get(name, name)) for f in frames]
            for name in columns
        }
        return pa.table({name: pa.array(values, pa.string()) for name, values in texts.items()})
