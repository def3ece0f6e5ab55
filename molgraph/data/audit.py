"""A table in; what is odd in it out: unreadable rows, duplicates, contradictory labels, open stereo, salts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.chem.facts import Facts, facts_of
from molgraph.chem.parallel import map_texts
from molgraph.data.table import MISSING, Table

SHOWN = 5  # rows a finding in the text


@dataclass(frozen=True)
class Finding:
    """One kind of oddity and the rows that show it.

    Args:
        kind: a word or two.
        meaning: what it is, in one line.
        rows: int64 [k]: row numbers, from 0; those of one group stand together.
        details: object array [k]: one line for each.
        groups: int64 [k]: rows of one number belong together (forms of one molecule).
    """

    kind: str
    meaning: str
    rows: np.ndarray
    details: np.ndarray
    groups: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Audit:
    """What an audit found; shows well in a notebook and on a terminal.

    Args:
        ids: object array [n]: ids of all rows.
        inputs: object array [n]: molecules as given.
        findings: one for each kind, also where no row shows it.
        n_molecules: distinct standardised parents among the readable rows.
    """

    ids: np.ndarray
    inputs: np.ndarray
    findings: tuple[Finding, ...]
    n_molecules: int

    def finding(self, kind: str) -> Finding:
        """The finding of that kind."""
        return next(f for f in self.findings if f.kind == kind)

    def to_frame(self) -> pd.DataFrame:
        """One line for each row and finding: finding, group, row (from 1), id, input, detail."""
        parts = [
            {
                "finding": f.kind,
                "group": int(g),
                "row": int(r) + 1,
                "id": self.ids[r],
                "input": self.inputs[r],
                "detail": d,
            }
            for f in self.findings
            for r, d, g in zip(f.rows, f.details, f.groups, strict=True)
        ]
        return pd.DataFrame(parts, columns=["finding", "group", "row", "id", "input", "detail"])

    def text(self, width: int = 110) -> str:
        """The counts, then the first rows of each finding, for a terminal."""
        from rich.console import Console
        from rich.table import Table as Grid

        grid = Grid("finding", "rows", "what it is", box=None, pad_edge=False, header_style="bold")
        for f in self.findings:
            grid.add_row(f.kind, str(len(f)), f.meaning)
        lists = Grid("finding", "row", box=None, pad_edge=False, header_style="bold")
        for name in ("id", "molecule", "detail"):
            lists.add_column(name, overflow="fold")
        for cells in self._examples():
            lists.add_row(*cells)
        console = Console(width=width, color_system=None, markup=False, highlight=False)
        with console.capture() as captured:
            console.print(self._title())
            console.print(grid)
            if lists.row_count:
                console.print()
                console.print(lists)
        return captured.get()

    def __repr__(self) -> str:
        return self.text()

    def _title(self) -> str:
        return f"{len(self.ids)} rows, {self.n_molecules} different molecules"

    def _examples(self) -> Iterator[tuple[str, str, str, str, str]]:
        for f in self.findings:
            for i, (row, detail) in enumerate(zip(f.rows[:SHOWN], f.details[:SHOWN], strict=True)):
                yield f.kind if i == 0 else "", str(row + 1), _cut(self.ids[row]), _cut(self.inputs[row]), detail
            if len(f) > SHOWN:
                yield "", "", f"and {len(f) - SHOWN} more", "", ""

    def _repr_html_(self) -> str:
        head = "".join(
            f"<tr><td>{escape(f.kind)}</td><td>{len(f)}</td><td style='text-align:left'>{escape(f.meaning)}</td></tr>"
            for f in self.findings
        )
        rows = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{escape(c)}</td>" for c in cells) + "</tr>"
            for cells in self._examples()
        )
        return (
            f"<p>{self._title()}</p><table><tr><th>finding</th><th>rows</th><th>what it is</th></tr>{head}</table>"
            f"<table><tr><th>finding</th><th>row</th><th>id</th><th>molecule</th><th>detail</th></tr>{rows}</table>"
        )


def audit(table: Table, *, workers: int | None = None) -> Audit:
    """Look at every molecule and label of a table; nothing is changed.

    Two rows hold the same molecule where their standardised parents (largest fragment, neutral, stereo kept)
    have one canonical SMILES, and of pairs the same sequence. Labels contradict where such rows have different values.

    Args:
        table: any table with a molecule column.
        workers: processes; None decides by the number of molecules.

    Returns:
        Findings with the rows that show them.

    Example:
        >>> from molgraph.data.table import make_table
        >>> found = audit(make_table(["CCO", "OCC", "C(C", "CC(=O)[O-].[Na+]"]))
        >>> {f.kind: f.rows.tolist() for f in found.findings if len(f)}
        {'unreadable': [2], 'duplicate': [0, 1], 'salt or mixture': [3]}
    """
    readable = np.flatnonzero(table.ok)
    codes, texts = pd.factorize(table.smiles[readable])
    facts: list[Facts] = map_texts(facts_of, list(texts), label="audit", workers=workers)
    reasons = table.reason.copy()
    reasons[readable] = [facts[c].reason for c in codes]
    good = reasons == ""
    rows = np.flatnonzero(good)
    each = [facts[c] for c, is_good in zip(codes, good[readable], strict=True) if is_good]
    parent, parents = pd.factorize(np.array([f.parent for f in each], dtype=object))
    group, thing = parent, "molecule"
    for entity in table.entities:
        if entity.kind == "sequence":  # a drug with another target is another thing
            second = pd.factorize(entity.values[rows])[0]
            group, thing = pd.factorize(group * (second.max(initial=0) + 1) + second)[0], "pair"
    twice = np.flatnonzero(np.bincount(group, minlength=1)[group] > 1) if len(group) else np.arange(0)
    twice = twice[np.argsort(group[twice], kind="stable")]
    centres = np.array([f.open_centres for f in each], dtype=np.int64)
    bonds = np.array([f.open_bonds for f in each], dtype=np.int64)
    parts = np.array([f.fragments for f in each], dtype=np.int64)

    missing = table.status == MISSING
    lost = np.flatnonzero(~good & ~missing)
    stereo, mixed = np.flatnonzero(centres + bonds > 0), np.flatnonzero(parts > 1)
    empty = np.flatnonzero(missing)
    findings = (
        _finding("unreadable", "RDKit reads no molecule there", lost, reasons[lost]),
        _finding("missing", "no molecule, or no value in a descriptor column", empty, reasons[empty]),
        _finding(
            "duplicate",
            f"several rows of one {thing} (largest fragment, neutral)",
            rows[twice],
            np.array([f"as {parents[parent[i]]}" for i in twice], dtype=object),
            group[twice],
        ),
        *(_contradictions(table, target, j, rows[twice], group[twice]) for j, target in enumerate(table.row_targets)),
        _finding(
            "undefined stereo",
            "stereo centres or double bonds without a stated configuration",
            rows[stereo],
            np.array([_stereo_line(centres[i], bonds[i]) for i in stereo], dtype=object),
        ),
        _finding(
            "salt or mixture",
            "more than one part; the presets desalt and standard keep the largest",
            rows[mixed],
            np.array([f"{parts[i]} parts, largest {each[i].parent}" for i in mixed], dtype=object),
        ),
    )
    return Audit(table.ids, table.smiles, findings, len(parents))


def _finding(
    kind: str, meaning: str, rows: np.ndarray, details: np.ndarray, groups: np.ndarray | None = None
) -> Finding:
    return Finding(kind, meaning, rows, details, np.arange(len(rows)) if groups is None else groups)


def _contradictions(table: Table, target: Target, j: int, rows: np.ndarray, groups: np.ndarray) -> Finding:
    """Rows of one molecule whose labels differ, the widest range first."""
    y = np.full(len(rows), np.nan) if table.y is None else table.y[rows, j]
    known = ~np.isnan(y)
    rows, groups, y = rows[known], groups[known], y[known]
    by_group = pd.Series(y).groupby(groups)
    low, high = by_group.transform("min").to_numpy(), by_group.transform("max").to_numpy()
    differ = high - low > 1e-9 * np.maximum(1.0, np.abs(high))
    order = np.flatnonzero(differ)
    order = order[np.lexsort((rows[order], groups[order], (low - high)[order]))]

    def shown(value: float) -> str:
        return target.classes[int(value)] if target.kind == "multiclass" else f"{value:g}"

    details = [f"{shown(y[i])}; the molecule has {shown(low[i])} to {shown(high[i])}" for i in order]
    meaning = f"rows of one molecule with different values of {target.name}"
    return _finding(
        f"contradiction in {target.name}", meaning, rows[order], np.array(details, dtype=object), groups[order]
    )


def _stereo_line(centres: int, bonds: int) -> str:
    parts = [(centres, "stereo centre"), (bonds, "double bond")]
    return ", ".join(f"{n} {word}{'s' if n > 1 else ''}" for n, word in parts if n)


def _cut(text: str, limit: int = 40) -> str:
    text = "".join(c if c.isprintable() else "?" for c in str(text)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 3] + "..."
