"""Write a benchmark's leaderboard as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from molgraph.base.version import __version__
from molgraph.evaluate.benchmark import report_words as words
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.board_overall import Overall
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.report_parts import NONE, number


def leaderboard(report: BenchReport) -> str:
    """The leaderboard: one table a dataset and split for the metric that leads, and a summary over datasets."""
    lines = [f"# {text(report.title)}", "", "<!-- made by `molgraph bench report`; edits are lost -->", ""]
    facts = report.facts
    recipe = f"Recipe `{facts.get('recipe', '')}`, sha256 `{facts.get('recipe sha256', '')[:16]}`"
    lines += [f"{recipe}; molgraph {__version__}; computed {facts.get('computed', 'at an unknown date')}.", ""]
    failed = ", ".join(f"{n} {status}" for status, n in report.failed.items()) or "none failed"
    lines += [
        f"{report.done:,} of {report.wanted:,} cells ({failed}); a cell has {facts.get('budget of a cell', '')}.",
        "",
    ]
    lines += [line for said in report.refusals for line in (text(said) + ".", "")]
    lines += [
        "A rank is one more than the number of methods that are significantly better on the same folds; methods that",
        "share a letter are not told apart. Scores are means over folds with Student's 95% interval, which says",
        "nothing about differences: those are tested in pairs. Methods that lack folds are shown and not ranked.",
        "Boards go by rank, then by mean; tested by ranks (Conover, Wilcoxon), by mean rank over folds, so that the",
        "first need not have the best mean. Differences are to the first.",
        "",
    ]
    for overall in report.overall:
        lines += [f"## Split {text(overall.split)}", "", *_summary(overall)]
        for title, board in overall.boards.items():
            lines += [f"### {text(title)}", "", *board_lines(board)]
    lines += ["## How to do it again", "", "```bash"]
    lines += [f"molgraph bench run {report.recipe_name}.toml -o bench/{report.recipe_name}"]
    lines += [f"molgraph bench report bench/{report.recipe_name} --leaderboard LEADERBOARD.md", "```", ""]
    shown = [(key, value) for key, value in facts.items() if key not in ("recipe", "recipe sha256") and value]
    lines += [*table(["what", "value"], [[key, f"`{value}`"] for key, value in shown]), ""]
    return "\n".join(lines)


def text(value: object) -> str:
    """A text that Markdown shows as it is, on one line.

    Example:
        >>> text("a|b\\n<c>")
        'a\\\\|b &lt;c&gt;'
    """
    plain = " ".join(str(value).split())
    for mark, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_")):
        plain = plain.replace(mark, shown)
    return plain


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Lines of a Markdown table; columns ``right`` are aligned right."""
    marks = ["---:" if i in right else "---" for i in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)]


def _summary(overall: Overall) -> list[str]:
    boards, names = overall.boards, list(overall.boards)
    rows = []
    for method in map(str, overall.table.index):
        row = overall.table.loc[method]
        ranks = [overall.ranks.loc[method, name] if boards[name].tested else np.nan for name in names]
        cells = [f"**{r:.0f}**" if r == 1 else f"{r:.0f}" if np.isfinite(r) else NONE for r in ranks]
        place = number(row["mean_place"]) if np.isfinite(row["mean_place"]) else NONE
        rows.append([text(method), place, *(f"{row[c]:.0f}" for c in ("first", "alone", "loses")), *cells])
    head = ["method", "mean place", "first (shared)", "first alone", "loses to the forest", *map(text, names)]
    out = table(head, rows, right=range(1, len(head)))
    if np.isfinite(overall.critical) and overall.datasets > 1:
        out += ["", f"Mean place: by mean score among methods that each of the {overall.over} ranks. Places less than "]
        out[-1] += f"{number(overall.critical)} apart are not told apart (Nemenyi, Demsar 2006)."
    return [*out, ""]


def board_lines(board: Board) -> list[str]:
    """One board: facts, then a row a method, quoted numbers last."""
    label = words.metric_label(board.metric)
    arrow = "higher" if board.ranking.higher_is_better else "lower"
    used = f" {board.rows}." if str(board.rows) else ""
    out = [f"{label}, {arrow} is better.{used} **{text(board.sentence)}.**", ""]
    said = [words.resolution(board), words.ceiling(board), words.tasks(board), words.how_tested(board)]
    said += [words.best_mean(board), *board.notes]
    out += [text(" ".join(t for t in said if t)), ""]
    frame, places = board.to_frame(), words.decimals(board)
    unit, cost = words.cost_column(frame["cpu_minutes"])
    head = ["rank", "method", label, "groups", "to the first", "folds", f"CPU a cell, {unit}", "failed"]
    head += ["against the forest"]
    rows = []
    for row, cpu in zip(frame.itertuples(), cost, strict=True):
        name = str(row.Index)
        rank = f"{row.rank:.0f}" if np.isfinite(row.rank) and board.tested else NONE
        note = f" ({text(row.note)})" if row.note else ""
        step = NONE
        if np.isfinite(row.to_best):
            step = f"{words.signed(row.to_best)} ({number(row.to_best_low)} to {number(row.to_best_high)})"
        forest = words.against_forest(board, name)
        cells = [rank, text(name) + note, words.plus_minus(row.mean, row.low, row.high, places), row.groups, step]
        rows.append([*cells, str(row.folds), cpu, str(row.failures), forest])
    for q in board.quoted:
        cells = [
            "",
            f"*{text(q.method)}, quoted, never ranked: {text(q.protocol)}; {text(q.source)}*",
            f"*{q.value:g}*",
        ]
        rows.append([*cells, *[""] * 6])
    return [*out, *table(head, rows, right=(0, 2, 4, 5, 6, 7)), ""]
