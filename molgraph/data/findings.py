"""The findings of an audit, as text for a terminal, as a frame, and as HTML."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from html import escape

import numpy as np
import pandas as pd

from molgraph.base.printable import count
from molgraph.data.profile import Profile

SHOWN = 5  # rows a finding in the text
PROFILES = 12  # targets in the text
_COUNTED = ("finding", "rows", "what it is")


@dataclass(frozen=True)
class Finding:
    """One kind of oddity and the rows that show it."""

    kind: str  # a word or two
    meaning: str  # what it is, in one line
    rows: np.ndarray  # int64 [k]: row numbers, from 0; those of one group stand together
    details: np.ndarray  # object array [k]: one line for each
    groups: np.ndarray  # int64 [k]: rows of one number belong together (forms of one molecule)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Audit:
    """What an audit found; shows well in a notebook and on a terminal."""

    ids: np.ndarray  # object array [n]: ids of all rows
    inputs: np.ndarray  # object array [n]: molecules as given
    findings: tuple[Finding, ...]  # one for each kind, also where no row shows it
    n_molecules: int  # distinct standardised parents among the readable rows
    targets: tuple[Profile, ...] = ()  # what the values of each target look like
    notes: tuple[str, ...] = ()  # sentences on how cells were read, and on what was compared

    def finding(self, kind: str) -> Finding:
        """The finding of that kind."""
        return next(f for f in self.findings if f.kind == kind)

    def to_frame(self) -> pd.DataFrame:
        """One line for each row and finding: finding, group, row (from 1), id, input, detail."""
        parts = [
            (f.kind, int(group), int(row) + 1, self.ids[row], self.inputs[row], detail)
            for f in self.findings
            for row, detail, group in zip(f.rows, f.details, f.groups, strict=True)
        ]
        return pd.DataFrame(parts, columns=["finding", "group", "row", "id", "input", "detail"])

    def target_frame(self) -> pd.DataFrame:
        """One line for each target: its kind, values, range, histogram, classes and noise."""
        return pd.DataFrame([asdict(p) for p in self.targets], columns=[f.name for f in fields(Profile)])

    def text(self, width: int | None = None) -> str:
        """The counts, then the first rows of each finding, for a terminal; None for its own width, up to 110."""
        from rich.console import Console
        from rich.table import Table as Grid

        grid = Grid(*_COUNTED, box=None, pad_edge=False, header_style="bold")
        for f in self.findings:
            grid.add_row(f.kind, str(len(f)), f.meaning)
        lists = Grid("finding", "row", box=None, pad_edge=False, header_style="bold")
        for name in self._columns:
            lists.add_column(name, overflow="fold")
        for cells in self._examples():
            lists.add_row(*cells)
        width = width or min(shutil.get_terminal_size((110, 24)).columns, 110)
        console = Console(width=width, color_system=None, markup=False, highlight=False)
        with console.capture() as captured:
            console.print(self._title())
            console.print(grid)
            for line in self._lines():
                console.print(line, soft_wrap=not line.startswith("note"))
            if lists.row_count:
                console.print()
                console.print(lists)
        return captured.get()

    def __repr__(self) -> str:
        return self.text()

    def _title(self) -> str:
        return f"{count(len(self.ids), 'row')}, {count(self.n_molecules, 'different molecule')}"

    @property
    def _columns(self) -> list[str]:
        """Columns behind the row's number; ids that are row numbers again, from 0, would only confuse."""
        own = any(str(id) != str(row) for row, id in enumerate(self.ids))
        return ["id"] * own + ["molecule", "detail"]

    def _lines(self) -> Iterator[str]:
        """An empty line, the profiles of the targets, and the notes."""
        if self.targets or self.notes:
            yield ""
        for one in self.targets[:PROFILES]:
            yield from one.lines()
        if len(self.targets) > PROFILES:
            yield f"and {len(self.targets) - PROFILES:,} more targets; in Python target_frame() has them all"
        for note in self.notes:
            yield f"note: {note}"

    def _examples(self) -> Iterator[tuple[str, ...]]:
        first = ("id" in self._columns) * 1
        for f in self.findings:
            for i, (row, detail) in enumerate(zip(f.rows[:SHOWN], f.details[:SHOWN], strict=True)):
                id_cell = (_cut(self.ids[row]),)[:first]
                yield f.kind if i == 0 else "", str(row + 1), *id_cell, _cut(self.inputs[row]), detail
            if len(f) > SHOWN:
                yield "", "", f"and {len(f) - SHOWN} more", *("",) * (first + 1)

    def _repr_html_(self) -> str:
        counts = pd.DataFrame([(f.kind, len(f), f.meaning) for f in self.findings], columns=_COUNTED)
        examples = pd.DataFrame(self._examples(), columns=["finding", "row", *self._columns])
        with pd.option_context("display.max_colwidth", None):
            tables = [frame.to_html(index=False, justify="left") for frame in (counts, examples)]
        lines = escape("\n".join(self._lines()).strip())
        return f"<p>{self._title()}</p>{tables[0]}" + f"<pre>{lines}</pre>" * bool(lines) + tables[1]


def _cut(text: str, limit: int = 40) -> str:
    text = "".join(c if c.isprintable() else "?" for c in str(text)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 3] + "..."
