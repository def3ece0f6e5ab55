"""Report on a benchmark: one self-contained HTML page, and a leaderboard in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from molgraph.base import progress
from molgraph.base.errors import UsageError
from molgraph.base.paths import atomic_write
from molgraph.base.printable import count
from molgraph.chem.draw import draw_molecule
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.board_overall import LEAST_DATASETS, Overall
from molgraph.evaluate.benchmark.published_record import ABOUT, PACKED, is_record, read_record, write_record
from molgraph.evaluate.benchmark.report_data import BenchReport, gather
from molgraph.evaluate.benchmark.report_figures import gallery
from molgraph.evaluate.benchmark.report_markdown import leaderboard
from molgraph.evaluate.benchmark.report_rows import (
    board_rows,
    error_label,
    how_tested,
    metric_label,
    resolution,
    sentences,
    signed,
    span,
)
from molgraph.evaluate.benchmark.report_slices import Slices
from molgraph.evaluate.benchmark.run_folder import Records, lies_in, read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.report_style import COLOURS, NONE, number, render

METHOD = (
    "Methods are compared on the same folds, each pair by a t-test of the folds' differences. Folds of a "
    "cross-validation share training rows, so the variance is Nadeau and Bengio's (2003), sd² (1/n + n_test/n_train); "
    "p-values are adjusted by Holm's rule over all pairs of a board, and a pair's interval has the level at which that "
    "rule decided it. From 20 folds on Wilcoxon's signed-rank test, adjusted alike, stands beside it: it takes folds "
    "for independent, and decides nothing. Only cells of the same data hash and the same split hashes stand in one "
    "table. A method that lacks a fold is shown and not ranked; so is one that predicts fewer than 99% of the rows "
    "that another predicts in a fold, one row aside. Scores are computed from stored predictions alone. Cost is the "
    "time of a cell's process, its search of parameters too; features that cells share are made once, by the first."
)
NO_MOLECULES = "Distances to training molecules, pictures and replicates need one molecule a row: none are shown here."
MOST_FAILURES = 50


def write_bench_report(
    source: str | Path | Records,
    out: str | Path | None = None,
    markdown: str | Path | None = None,
    *,
    record: str | Path | None = None,
    slices: bool = True,
) -> BenchReport:
    """Report on a benchmark's folder: a page, a leaderboard, or both.

    Args:
        source: the folder that ``molgraph bench run`` filled, its records, or a record's folder.
        out: the page to write, or None.
        markdown: the leaderboard to write, or None.
        record: the folder to write a record to, or None: scores and hashes of all cells, without predictions.
        slices: whether the page shows errors against distance, calibration and the worst molecules.

    Returns:
        What was shown: ``boards``, each with ``to_frame``, and the summaries over datasets.

    Raises:
        UsageError: page or leaderboard would be written over a file of the benchmark or of the record.
        StorageError: no such folder, or a file cannot be written.
        DataError: nothing was computed yet, or rows of differing hash would stand in one table.
    """
    folder = source.out if isinstance(source, Records) else Path(source)
    for path in (out, markdown):
        if path is not None and lies_in(folder, path, ABOUT, PACKED):
            raise UsageError(f"{path} is read, and would be written over", hint="name another file to write")
    if isinstance(source, str | Path) and is_record(source):
        if record is not None:
            raise UsageError(f"{source} is a record itself", hint="name the folder of the run to make a record of it")
        report = read_record(source)
    else:
        records = source if isinstance(source, Records) else read_records(source)
        scores = score_records(records)
        report = gather(records, scores=scores, slices=slices)
        if record is not None:
            write_record(records, scores, report, record)
    for path, made in ((out, report_page), (markdown, leaderboard)):
        if path is not None:
            with atomic_write(path) as file:
                file.write(made(report).encode())
    return report


def report_page(report: BenchReport) -> str:
    """The page as one HTML text that loads nothing from anywhere."""
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(report.methods)}
    return render(
        "bench.html.jinja",
        report=report,
        summary=_summary(report),
        warnings=warnings(report),
        overview=[overview(each) for each in report.overall],
        sections=[section(report, boards, colour) for boards in progress.track(report.sections(), label="figures")],
        method=METHOD,
        breakable=breakable,
        number=number,
        signed=signed,
        span=span,
    )


def _summary(report: BenchReport) -> str:
    """What was run, in one line."""
    datasets = len({board.name for board in report.boards})
    words = [count(datasets, "dataset"), count(len(report.methods), "method")]
    words += [f"{report.done:,} of {report.wanted:,} cells", f"{sum(report.failed.values()):,} failed"]
    if "computed" in report.facts and "CPU time of all cells" in report.facts:
        words += [f"CPU time {report.facts['CPU time of all cells']}", report.facts["computed"]]
    return ", ".join(words) + "."


def warnings(report: BenchReport) -> list[str]:
    """What a reader has to know before anything else."""
    out = []
    if report.done < report.wanted:
        out.append(f"{report.wanted - report.done:,} cells were not run yet: methods that lack folds have no rank.")
    if report.failed:
        out.append("Failed cells: " + ", ".join(f"{n} {status}" for status, n in report.failed.items()) + ".")
    return [*out, *report.refusals]


def anchor(board: Board) -> str:
    """Where a dataset's section stands on the page.

    Example:
        >>> from types import SimpleNamespace
        >>> anchor(SimpleNamespace(name="bbbp@c1", split="random-5x5", alone=True))
        'bbbp-c1--random-5x5'
    """
    key = f"{board.name}--{board.split}" + ("" if board.alone else f"--{board.metric}")
    return "".join(c if c.isalnum() or c == "-" else "-" for c in key)


def breakable(name: str) -> Markup:
    """A name that a narrow heading may break after an underscore, a hyphen or a slash, and inside no word.

    Example:
        >>> str(breakable("random_forest <b>"))
        'random_<wbr>forest &lt;b&gt;'
    """
    text = str(escape(name))
    for mark in "_-/":
        text = text.replace(mark, f"{mark}<wbr>")
    return Markup(text)


def overview(overall: Overall) -> dict[str, Any]:
    """A split's table of ranks by dataset and method, beside its summary over datasets."""
    heat = []
    for board in overall.boards.values():
        shown = {row["method"]: row for row in board_rows(board)[1]}
        cells = [_heat(board, shown.get(str(method))) for method in overall.table.index]
        at = {"name": breakable(board.name), "anchor": anchor(board), "metric": metric_label(board.metric)}
        heat.append(at | {"cells": cells})
    return {
        "of": overall,
        "heat": heat,
        "places": overall.datasets >= LEAST_DATASETS,
        "forest": any(b.reference for b in overall.boards.values()),
        "percent": overall.table["percent"].notna().any(),
        "missing": [str(m) for m in overall.table.index if m not in overall.compared],
    }


def _heat(board: Board, row: Mapping[str, Any] | None) -> dict[str, Any]:
    if row is None:
        return {"text": NONE, "tone": "none", "says": "not on this board", "mean": ""}
    if row["note"]:
        lost = board.failures.loc[board.failures["method"] == row["method"], "status"]
        tone = "none lost" if len(lost) else "none"
        return {"text": next(iter(lost), NONE), "tone": tone, "says": row["note"], "mean": ""}
    if not board.tested:
        return {"text": NONE, "tone": "untested", "says": how_tested(board), "mean": row["score"]}
    rank, k = int(row["rank"]), len(board.ranking.ranked)
    tone = "first" if rank == 1 else ("high", "middle", "low")[min(3 * (rank - 1) // k, 2)]
    says = f"{row['method']}: {metric_label(board.metric)} {row['score']}"
    return {"text": row["rank"], "tone": tone, "says": says, "mean": row["score"]}


def section(report: BenchReport, boards: Sequence[Board], colour: Mapping[str, str]) -> dict[str, Any]:
    """A dataset's section: the leading board in full, the other metrics in short."""
    main, *others = boards
    known, slices = report.cards.get(main.dataset), report.slices.get((main.dataset, main.split))
    slices = slices.of(main.scores.tasks) if slices is not None and not main.alone else slices
    rows, higher = str(main.rows), "higher" if main.ranking.higher_is_better else "lower"
    about = [rows] if rows and known is None else []
    if known is not None:
        about = [known.title, rows or f"{known.rows:,} rows", known.task, f"grade {known.grade}"]
    about += [f"split {main.split}", f"{error_label(main)}: {higher} is better"]
    facts = sentences(main)
    if slices is not None and len(slices.ids) > len(slices.smiles):
        facts.append(NO_MOLECULES)
    leader, worst = _worst(main, slices)
    return _table(main) | {
        "anchor": anchor(main),
        "about": about,
        "facts": facts,
        "metric": metric_label(main.metric),
        "figures": gallery(main, slices, colour, anchor(main)),
        "wilcoxon": main.ranking.pairs["wilcoxon_p"].notna().any(),
        "others": [_table(board) for board in others],
        "failures": main.failures.head(MOST_FAILURES).to_dict("records"),
        "leader": leader,
        "worst": worst,
    }


def _table(board: Board) -> dict[str, Any]:
    arrow, (unit, rows) = "↑" if board.ranking.higher_is_better else "↓", board_rows(board)
    label = f"{error_label(board)} {arrow}"
    return {"board": board, "metric": label, "rows": rows, "unit": unit, "resolution": resolution(board)}


def _worst(board: Board, slices: Slices | None) -> tuple[str, list[dict[str, Any]]]:
    """The leading method, and the molecules that it got most wrong, with the predictions of the next two."""
    names = [m for m in board.methods if slices is not None and m in slices.tested][:3]
    if slices is None or not names or not len(slices.smiles) or not board.ranking.ranked:
        return "", []
    found = []
    for row, j, _ in slices.worst(names[0]):
        target, places = slices.targets[j], {m: np.flatnonzero(slices.tested[m].rows == row) for m in names}
        y = float(slices.tested[names[0]].y[places[names[0]][0], j])
        plain = f"{y:g}" if target.kind == "binary" else number(y)
        lines = [("measured", target.classes[int(y)] if target.kind == "multiclass" else plain)]
        said = {"binary": "P(1), {}", "multiclass": "P(that), {}"}.get(target.kind, "{}")
        lines += [(said.format(m), number(slices.tested[m].p[i[0], j])) for m, i in places.items() if len(i)]
        if np.isfinite(slices.distance[row]):
            lines.append(("distance to train", number(slices.distance[row])))
        picture = Markup(draw_molecule(str(slices.smiles[row]), width=200, height=140))
        label = f"id {slices.ids[row]}" + (f", {target.name}" if len(slices.targets) > 1 else "")
        found.append({"picture": picture, "id": label, "lines": lines})
    return names[0], found
