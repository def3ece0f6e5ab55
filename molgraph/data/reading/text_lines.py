"""Read a text source line by line, marking bytes that are not text and truncating very long lines."""

from __future__ import annotations

import io
from collections.abc import Iterator

from molgraph.chem.molfile import MAX_LINE
from molgraph.data.reading.csv_repair import MARKED
from molgraph.data.reading.source import DAMAGED, Opened, broken


class LineReader:
    """The base class of readers of lines.

    Args:
        opened: the source.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self.name, self.rereadable = opened.name, opened.rereadable
        self._encoding = opened.encoding.replace("utf-8", "utf-8-sig")

    def _lines(self) -> Iterator[str]:
        """All lines, none longer than ``MAX_LINE``: the rest of such a one is passed over."""
        text = io.TextIOWrapper(self._opened.stream(), encoding=self._encoding, errors=MARKED)
        try:
            while line := text.readline(MAX_LINE):
                more = line
                while len(more) == MAX_LINE and more[-1] != "\n":
                    more = text.readline(MAX_LINE)
                yield line
        except DAMAGED as error:
            raise broken(self.name, error) from None
        finally:
            text.close()

    def _head_lines(self) -> list[str]:
        """Whole lines of the sample."""
        head = self._opened.sample.decode(self._encoding, errors=MARKED).removeprefix("\ufeff")
        lines = io.StringIO(head, newline=None).readlines()
        return lines if self._opened.whole else lines[:-1]
