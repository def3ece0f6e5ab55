"""Read XYZ files of one or many frames in chunks: a frame is a row, the keys of its comment line are columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from molgraph.chem.molfile import MAX_RECORD
from molgraph.chem.xyz import LATTICE, PERIODIC, PROPERTIES, read_comment
from molgraph.data.reading.chunk import GEOMETRY, free_name
from molgraph.data.reading.smi_sdf import RecordReader
from molgraph.data.reading.source import SourceFile, shown

COMMENT = "comment"  # the column of comments that are no pairs of key and value
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
        texts, n, characters, following = [ahead, next(lines, "")], 0, 0, None
        for line in islice(lines, size):
            if _count(line) is not None:  # the next frame has begun
                following = line
                break
            n, characters = n + 1, characters + len(line)
            if characters < MAX_RECORD:
                texts.append(line)
        reason = "" if n == size else f"a frame of {n} atoms, of which its first line says {size:,}"
        if characters >= MAX_RECORD:
            reason = f"a frame of more than {MAX_RECORD:,} characters"
        values = read_comment(texts[1]) or ({COMMENT: texts[1].strip()} if texts[1].strip() else {})
        yield FrameText("\n".join(line.rstrip("\r\n") for line in texts), values, reason)
        ahead = following or next((line for line in lines if line.strip()), None)


def _count(line: str) -> int | None:
    """The number of atoms that a line says; None where it is anything else."""
    word = line.strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) < len(str(MOST_LINES)) else None


class XyzReader(RecordReader):
    """An XYZ file, plain or extended; its columns are the keys of the comment lines, and what else stands there.

    A key may first occur in any frame, so a file that can be read twice is looked through for them; of standard input
    the first frames alone are known. The frames themselves are the column ``geometry``.
    """

    geometry = GEOMETRY

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        frames = list(split_frames(iter(self._head)))
        self._first = frames if source.whole else frames[:-1]  # the last one may be cut
        keys = dict[str, None]()
        for frame in self._first if source.whole or not source.rereadable else split_frames(self.lines()):
            keys |= dict.fromkeys(key for key in frame.values if key.lower() not in _SHAPE)
        self._keys = {shown(key): key for key in keys if key != GEOMETRY}
        if GEOMETRY in keys:  # the name of the frames themselves
            self._keys[free_name(GEOMETRY, keys)] = GEOMETRY
        self.names = [*self._keys]

    def records(self, columns: Sequence[str]) -> Iterator[tuple[FrameText, int, str]]:
        return ((frame, len(frame.text), frame.reason) for frame in split_frames(self.lines()))

    def cells(self, records: Sequence[FrameText], name: str) -> list[str | None]:
        if name == GEOMETRY:
            return [frame.text for frame in records]
        return [frame.values.get(self._keys.get(name, name)) for frame in records]
