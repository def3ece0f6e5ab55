"""Write the pages of several benchmarks, an index of all boards, and a page for each method."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.errors import UsageError
from molgraph.base.paths import atomic_write
from molgraph.base.printable import count
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.report import anchor, report_page
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_rows import board_rows, error_label
from molgraph.evaluate.benchmark.standings import question_of
from molgraph.evaluate.report_style import NONE, number, render

INDEX = "index.html"


def write_site(reports: Sequence[BenchReport], out: Path) -> list[Path]:
    """Write ``index.html`` with all leading boards, a page for each benchmark and one for each method.

    Every page is whole and loads nothing from a network; they link to each other by their names in the folder.

    Returns:
        The files, the index first.

    Raises:
        UsageError: two benchmarks of one name.
    """
    names = [report.recipe_name for report in reports]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two benchmarks are called {name!r}", hint="give one recipe another name")
    pages = {f"board-{file_name(report.recipe_name)}.html": report for report in reports}
    rows = [_row(page, report, board, r) for page, report in pages.items() for board in report.boards if board.primary
            for r in board_rows(board)[1]]  # fmt: skip
    methods = list(dict.fromkeys(row["method"] for row in sorted(rows, key=lambda r: (r["rank_value"], r["method"]))))
    texts = {INDEX: _index(pages, rows, methods)}
    for page, report in pages.items():
        texts[page] = report_page(report)
    for method in methods:
        texts[page_of(method)] = _method(method, [row for row in rows if row["method"] == method], reports)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with atomic_write(out / name) as file:
            file.write(text.encode())
    return [out / name for name in texts]


def file_name(name: str) -> str:
    """A name as part of a file's.

    Example:
        >>> file_name("dmpnn+deepdta @1")
        'dmpnn-deepdta--1'
    """
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)


def page_of(method: str) -> str:
    """The file of a method's page."""
    return f"method-{file_name(method)}.html"


def _row(page: str, report: BenchReport, board: Board, r: Mapping[str, Any]) -> dict[str, Any]:
    """One method on one board, as both tables show it."""
    rank = float(board.ranking.table["rank"][r["method"]])
    cpu = 60 * float(board.cost["cpu_minutes"].get(r["method"], np.nan))
    place = {"dataset": board.title, "split": board.split, "question": question_of(board.split)}
    place |= {"metric": error_label(board), "href": f"{page}#{anchor(board)}", "benchmark": report.title}
    shown = {
        key: r[key] for key in ("method", "kind", "rank", "score", "value", "step", "step_value", "span", "forest")
    }
    return {**place, **shown, "held": r["held"], "note": r["note"], "rank_value": rank if np.isfinite(rank) else 9999,
            "cpu": cpu, "cpu_text": number(cpu), "board": board}  # fmt: skip


def _index(pages: Mapping[str, BenchReport], rows: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> str:
    boards = []
    for first in {id(row["board"]): row for row in reversed(rows)}.values():
        board: Board = first["board"]
        own = [row for row in rows if row["board"] is board]
        untested = not board.tested and len(board.ranking.ranked) > 1
        leaders = board.ranking.ranked[:1] if untested else [row["method"] for row in own if row["rank_value"] == 1]
        best = next((row for row in own if row["method"] in board.ranking.ranked), own[0])
        used = board.rows.rows
        boards.append({**first, "rows": used, "rows_text": f"{used:,}" if used else NONE, "value": best["value"],
                       "ranked": len(board.ranking.ranked), "score": best["score"], "untested": untested,
                       "leaders": [{"name": name, "href": page_of(name)} for name in leaders]})  # fmt: skip
    boards.reverse()
    questions = list(dict.fromkeys(board["question"] for board in boards))
    about = [_counts(method, [row for row in rows if row["method"] == method]) for method in methods]
    summary = f"{count(len(boards), 'board')} of {count(len(pages), 'benchmark')}, {count(len(methods), 'method')}"
    return render("bench_index.html.jinja", boards=boards, questions=questions, methods=about, summary=summary)


def _counts(method: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    cpu = float(np.nanmedian([row["cpu"] for row in rows])) if np.isfinite([r["cpu"] for r in rows]).any() else np.nan
    held = [row["held"] for row in rows]
    first = sum(row["rank_value"] == 1 for row in rows)
    return {"name": method, "href": page_of(method), "boards": len(rows), "first": first, "cpu": cpu,
            "cpu_text": number(cpu), "beats": held.count("beats"), "loses": held.count("loses")}  # fmt: skip


def _method(method: str, rows: Sequence[Mapping[str, Any]], reports: Sequence[BenchReport]) -> str:
    known = _counts(method, rows)
    summary = f"On {count(len(rows), 'board')}, rank 1 on {known['first']}; {known['cpu_text']} CPU seconds a fold."
    settings = [(r.title, words) for r in reports if (words := r.facts.get(f"settings of {method}"))]
    return render("bench_method.html.jinja", name=method, rows=rows, summary=summary, settings=settings)
