"""Write a benchmark's leaderboard as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from molgraph.base.version import __version__
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.board_overall import Overall
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_rows import badge, beside_texts, board_rows, error_label, sentences, span
from molgraph.evaluate.report_style import NONE, number


def leaderboard(report: BenchReport) -> str:
    """The leaderboard: one table a dataset and split for the metric that leads, and a summary over datasets."""
    lines = [f"# {text(report.title)}", "", "<!-- made by `molgraph bench report`; edits are lost -->", ""]
    facts = report.facts
    recipe = f"Recipe `{facts.get('recipe', '')}`, settings of sha256 `{facts.get('recipe sha256', '')[:16]}`"
    lines += [f"{recipe}; molgraph {__version__}; computed {facts.get('computed', 'at an unknown date')}.", ""]
    failed = ", ".join(f"{n} {status}" for status, n in report.failed.items()) or "none failed"
    cells = f"{report.done:,} of {report.wanted:,} cells ({failed})"
    lines += [f"{cells}; a cell has {facts.get('budget of a cell', '')}.", ""]
    lines += [line for sentence in report.refusals for line in (text(sentence) + ".", "")]
    lines += [
        "Methods stand by their mean. A method is better than another where they differ significantly on the same",
        "folds, and by more than the margin that matters in practice, where the dataset's card names one; equivalent",
        "where the interval of their difference lies within the margin. A rank is one more than the number of methods",
        "that are better than this one, or than one with a better mean; of methods that share a letter none is better.",
        "Scores are means over folds with a 95% interval, differences are to the first with the interval of their",
        "test; both allow for folds that share training rows. Methods that lack folds are shown and not ranked.",
        "",
    ]
    for overall in report.overall:
        lines += [f"## Split {text(overall.split)}", "", *_summary(overall)]
        for title, board in overall.boards.items():
            lines += [f"### {text(title)}", "", *board_lines(board)]
    lines += ["## How to do it again", "", "```bash", *report.commands, "```", ""]
    shown = [(key, value) for key, value in facts.items() if key not in ("recipe", "recipe sha256") and value]
    lines += [*table(["what", "value"], [[key, f"`{value}`"] for key, value in shown]), ""]
    return "\n".join(lines)


def text(value: object) -> str:
    """A text that Markdown shows as it is, on one line.

    Example:
        >>> text("a|b\\n<c>")
        'a\\\\|b &lt;c&gt;'
    """
    marks = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "*": "\\*", "_": "\\_"})
    return " ".join(str(value).split()).translate(marks)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Lines of a Markdown table; columns ``right`` are aligned right."""
    marks = ["---:" if i in right else "---" for i in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)]


def _summary(overall: Overall) -> list[str]:
    frame, columns, against = overall.table, {}, next(iter(overall.boards.values())).against
    if frame["percent"].notna().any():
        percents = frame[["percent", "percent_low", "percent_high"]].to_numpy()
        texts = [number(value) + (f" ({span(low, high)})" if low < high else "") for value, low, high in percents]
        columns[f"% of {text(against)}'s error"] = texts
    if places := frame["mean_place"].notna().any():
        columns["mean place"] = [number(value) for value in frame["mean_place"]]
    loses = f"loses to {text(against)}"
    held = any(board.reference for board in overall.boards.values())
    for head, name in (("first (shared)", "first"), ("first alone", "alone"), *[(loses, "loses")] * held):
        columns[head] = [f"{n:.0f}" for n in frame[name]]
    for title, ranks in overall.ranks.items():
        leaders, there = overall.boards[title].leaders, ranks.map("{:.0f}".format).where(np.isfinite(ranks), NONE)
        columns[text(title)] = [f"**{r}**" if name in leaders else r for name, r in there.items()]
    rows = [[text(method), *cells] for method, *cells in zip(frame.index, *columns.values(), strict=True)]
    caption = f"Mean place: by mean score among methods that each of the {overall.over} ranks."
    lines = table(["method", *columns], rows, right=range(1, len(columns) + 1))
    return [*lines, *(["", caption] if places else []), ""]


def board_lines(board: Board) -> list[str]:
    """One board: facts, then a row a method, quoted numbers last."""
    label = error_label(board)
    arrow = "higher" if board.ranking.higher_is_better else "lower"
    used = f" {board.rows}." if str(board.rows) else ""
    out = [f"{label}, {arrow} is better.{used} **{text(board.sentence)}.**", "", text(" ".join(sentences(board))), ""]
    shown, others = board_rows(board), beside_texts(board)
    head = ["rank", "method", label, *others, "groups", "to the first", "folds", "CPU a cell, s", "failed"]
    head += [against := f"against {text(board.against)}"] * bool(board.reference)
    rows = []
    for r, beside in zip(shown.itertuples(), others.to_numpy(), strict=True):
        marks = [text(mark) for mark in (badge(board, r.Index), r.note) if mark]
        name = text(r.Index) + (f" ({'; '.join(marks)})" if marks else "")
        step = f"{r.step} ({r.span})" if r.span else NONE
        cells = [r.place, name, r.score, *beside, r.groups, step, str(r.folds), r.cpu, str(r.failures)]
        rows.append([*cells, *[r.against] * bool(board.reference)])
    for q in board.quoted:
        name = f"*{text(q.method)}, quoted, never ranked: {text(q.protocol)}; {text(q.source)}*"
        rows.append(["", name, f"*{q.value:g}*", *[""] * (len(head) - 3)])
    right = [i for i, name in enumerate(head) if name not in ("method", "groups", against)]
    return [*out, *table(head, rows, right=right), ""]
