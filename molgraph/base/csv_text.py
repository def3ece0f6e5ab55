"""Write a pandas frame as CSV, quoting every cell that needs quotes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from molgraph.base.paths import write_whole
from molgraph.base.workbook import frame_bytes, is_workbook

_END = "\r\n"  # Python before 3.13 quotes a carriage return in a cell only where it is part of a line's end


class _Lines(list[str]):
    """Collects the lines of a csv writer, which hands over one at a time, and ends them with a plain newline."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix(_END) + "\n")


def csv_text(frame: Any) -> str:
    """A pandas frame as csv without its index; cells with a comma, a quote or any end of line in them are quoted.

    Example:
        >>> import pandas as pd
        >>> csv_text(pd.DataFrame({"id": ["a\\rb"], "y": [1.5]}))
        'id,y\\n"a\\rb",1.5\\n'
    """
    lines = _Lines()
    frame.to_csv(lines, index=False, lineterminator=_END)
    return "".join(lines)


def write_csv(path: Path, frame: Any) -> None:
    """Write a frame without its index: as csv, or as a workbook where the path ends in .xlsx."""
    write_whole(path, frame_bytes(frame) if is_workbook(path) else csv_text(frame))
