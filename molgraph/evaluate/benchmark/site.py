"""Write the pages of several benchmarks, an index of all boards, and a page for each method."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from molgraph.base.errors import ConflictError
from molgraph.base.paths import write_whole
from molgraph.base.printable import count
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.report import anchor, report_page
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_rows import badge, board_rows, error_label
from molgraph.evaluate.benchmark.standings import question_of
from molgraph.evaluate.report_style import number, render

INDEX = "index.html"


def write_site(reports: Sequence[BenchReport], out: Path) -> list[Path]:
    """Write ``index.html`` with all leading boards, a page for each benchmark and one for each method.

    Every page is whole and loads nothing from a network; they link to each other by their names in the folder.

    Returns:
        The files, the index first.

    Raises:
        ConflictError: two benchmarks of one name.
    """
    names = [report.recipe_name for report in reports]
    for name in names:
        if names.count(name) > 1:
            raise ConflictError(f"two benchmarks are called {name!r}", hint="give one recipe another name")
    pages = {page_of(report.recipe_name, "board"): report for report in reports}
    boards = [(b, _rows(page, report, b)) for page, report in pages.items() for b in report.boards if b.primary]
    rows = pd.concat([frame for _, frame in boards])
    held = rows["reference"]
    held = rows.assign(beats=held == "better", loses=held == "worse", judged=held != "").groupby("method")
    sums = dict.fromkeys(("first", "beats", "loses", "judged"), "sum")
    methods = held.agg({"place": "size", **sums, "cpu_seconds": "median", "badge": "max"})
    methods = methods.loc[rows.sort_values(["rank", "method"])["method"].unique()]
    summary = f"{count(len(boards), 'board')} of {count(len(pages), 'benchmark')}, {count(len(methods), 'method')}"
    common = {"number": number, "page_of": page_of}
    texts = {INDEX: render("bench_index.html.jinja", boards=boards, methods=methods, summary=summary, **common)}
    for page, report in pages.items():
        texts[page] = report_page(report, home=INDEX)
    for name, group in rows.groupby("method", sort=False):
        settings = [(r.title, words) for r in reports if (words := r.facts.get(f"settings of {name}"))]
        pairs = ((r.title, b.entered[name]) for r in reports for b in r.boards if name in b.entered)
        settings += dict.fromkeys(pairs)
        known = {"name": name, "rows": group, "about": methods.loc[name], "settings": settings}
        texts[page_of(str(name))] = render("bench_method.html.jinja", **known, **common)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(out / name, text)
    return [out / name for name in texts]


def page_of(name: str, kind: str = "method") -> str:
    """The file of a method's page, or of a benchmark's (``board``).

    Example:
        >>> page_of("dmpnn+deepdta @1")
        'method-dmpnn~2b~deepdta~20~~40~1.html'
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]", lambda found: f"~{ord(found[0]):x}~", name)  # no two names have one file
    return f"{kind}-{plain}.html"


def _rows(page: str, report: BenchReport, board: Board) -> pd.DataFrame:
    """A board's methods, as the index and the methods' pages show them."""
    rows = board_rows(board).reset_index(names="method")
    return rows.assign(
        first=rows["leads"],
        badge=[badge(board, name) for name in rows["method"]],
        dataset=board.title,
        split=board.split,
        question=question_of(board.split),
        metric=error_label(board),
        href=f"{page}#{anchor(board)}",
        benchmark=report.title,
        cpu_seconds=60 * rows["cpu_minutes"],
    )
