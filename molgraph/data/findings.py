"""The findings of an audit, as text for a terminal, as a frame, and as HTML."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.printable import count
from molgraph.data.profile import Profile

SHOWN = 5  # rows a finding in the text
PROFILES = 12  # targets in the text


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

        width = width or min(shutil.get_terminal_size((110, 24)).columns, 110)
        console = Console(width=width, color_system=None, markup=False, highlight=False)
        counts, examples = self._frames()
        with console.capture() as captured:
            console.print(self._title())
            console.print(_grid(counts))
            for line in self._lines():
                console.print(line, soft_wrap=not line.startswith("note"))
            if len(examples):
                console.print()
                console.print(_grid(examples))
        return captured.get()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            counts, examples = (frame.to_html(index=False, justify="left") for frame in self._frames())
        lines = escape("\n".join(self._lines()).strip())
        return f"<p>{self._title()}</p>{counts}{f'<pre>{lines}</pre>' if lines else ''}{examples}"

    def _title(self) -> str:
        return f"{count(len(self.ids), 'row')}, {count(self.n_molecules, 'different molecule')}"

    def _lines(self) -> Iterator[str]:
        """An empty line, the profiles of the targets, and the notes."""
        if self.targets or self.notes:
            yield ""
        for target in self.targets[:PROFILES]:
            yield from target.lines()
        if len(self.targets) > PROFILES:
            yield f"and {len(self.targets) - PROFILES:,} more targets; in Python target_frame() has them all"
        for note in self.notes:
            yield f"note: {note}"

    def _frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows of each finding, and examples of them."""
        counts = [(f.kind, len(f), f.meaning) for f in self.findings]
        examples: list[tuple[str, ...]] = []
        for f in self.findings:
            kinds = [f.kind] + [""] * (SHOWN - 1)
            for kind, row, detail in zip(kinds, f.rows, f.details, strict=False):
                examples.append((kind, str(row + 1), _cut(self.ids[row]), _cut(self.inputs[row]), detail))
            if len(f) > SHOWN:
                examples.append(("", "", "", f"and {len(f) - SHOWN} more", ""))
        columns = ["finding", "row", "id", "molecule", "detail"]
        counted = pd.DataFrame(counts, columns=["finding", "rows", "what it is"])
        return counted, pd.DataFrame(examples, columns=columns)[self._columns]

    @property
    def _columns(self) -> list[str]:
        """Columns of the examples; ids that are row numbers again, from 0, would only confuse."""
        numbered = all(str(id) == str(row) for row, id in enumerate(self.ids))
        return ["finding", "row", *([] if numbered else ["id"]), "molecule", "detail"]


def _grid(frame: pd.DataFrame) -> Any:
    """A frame as a grid of ``rich``."""
    from rich.table import Column, Table

    columns = [Column(name, overflow="fold" if name in ("id", "molecule", "detail") else "ellipsis") for name in frame]
    grid = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in frame.itertuples(index=False):
        grid.add_row(*map(str, row))
    return grid


def _cut(text: str, limit: int = 40) -> str:
    text = "".join(c if c.isprintable() else "?" for c in str(text)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 3] + "..."
