"""Report on a benchmark: one self-contained HTML page, and a leaderboard in Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from molgraph.base import progress
from molgraph.base.errors import ConflictError, UnsupportedError
from molgraph.base.paths import write_whole
from molgraph.base.printable import count
from molgraph.chem.draw import draw_molecule
from molgraph.evaluate.benchmark import report_rows
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.published_record import ABOUT, PACKED, is_record, read_record, write_record
from molgraph.evaluate.benchmark.report_data import BenchReport, gather
from molgraph.evaluate.benchmark.report_figures import gallery
from molgraph.evaluate.benchmark.report_markdown import leaderboard
from molgraph.evaluate.benchmark.report_slices import Slices
from molgraph.evaluate.benchmark.run_folder import Records, lies_in, read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.report_style import COLOURS, NONE, number, render

NO_MOLECULES = "Distances to training molecules, pictures and replicates need one molecule a row: none are shown here."


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
        ConflictError: page or leaderboard would be written over a file of the benchmark or of the record.
        StorageError: no such folder, or a file cannot be written.
        DataError: nothing was computed yet, or rows of differing hash would stand in one table.
    """
    folder = source.out if isinstance(source, Records) else Path(source)
    for path in (out, markdown):
        if path is not None and lies_in(folder, path, ABOUT, PACKED):
            raise ConflictError(f"{path} is read, and would be written over", hint="name another file to write")
    if isinstance(source, str | Path) and is_record(source):
        if record is not None:
            hint = "name the folder of the run to make a record of it"
            raise UnsupportedError(f"{source} is a record itself", hint=hint)
        report = read_record(source)
    else:
        records = source if isinstance(source, Records) else read_records(source)
        scores = score_records(records)
        report = gather(records, scores, slices)
        if record is not None:
            write_record(records, scores, report, record)
    for path, renderer in ((out, report_page), (markdown, leaderboard)):
        if path is not None:
            write_whole(path, renderer(report))
    return report


def report_page(report: BenchReport, home: str = "") -> str:
    """The page as one HTML text that loads nothing from anywhere; with a link to the index at ``home``."""
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(report.methods)}
    words = [count(len({board.name for board in report.boards}), "dataset"), count(len(report.methods), "method")]
    words += [f"{report.done:,} of {report.wanted:,} cells", f"{sum(report.failed.values()):,} failed"]
    if "computed" in report.facts and "CPU time of all cells" in report.facts:
        words += [f"CPU time {report.facts['CPU time of all cells']}", report.facts["computed"]]
    return render(
        "bench.html.jinja",
        report=report,
        home=home,
        summary=", ".join(words) + ".",
        warnings=warnings(report),
        sections=[section(report, boards, colour) for boards in progress.track(report.sections(), label="figures")],
        anchor=anchor,
        breakable=breakable,
        heat=heat,
        number=number,
        rows=report_rows,
    )


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
    return re.sub(r"[^A-Za-z0-9-]", "-", key)


def breakable(name: str) -> Markup:
    """A name that a narrow heading may break after an underscore, a hyphen or a slash, and inside no word.

    Example:
        >>> str(breakable("random_forest <b>"))
        'random_<wbr>forest &lt;b&gt;'
    """
    return Markup(re.sub("([_/-])", r"\1<wbr>", str(escape(name))))


def heat(board: Board, methods: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """A board's cells in the overview: text, colour, what is said on hovering, and the mean score."""
    frame, cells = report_rows.board_rows(board), []
    lost = board.failures.drop_duplicates("method").set_index("method")["status"]
    for name in methods:
        row = frame.loc[name] if name in frame.index else None
        if row is None:
            cells.append((NONE, "none", "not on this board", ""))
        elif row["note"]:
            cells.append((lost.get(name, NONE), "none lost" if name in lost else "none", row["note"], ""))
        elif not board.leaders:
            cells.append((NONE, "untested", board.sentence, row["score"]))
        else:
            third = int(min(3 * (row["rank"] - 1) // len(board.ranking.ranked), 2))
            tone = "first" if row["leads"] else ("high", "middle", "low")[third]
            says = f"{name}: {report_rows.metric_label(board.metric)} {row['score']}"
            cells.append((row["place"], tone, says, row["score"]))
    return cells


def section(report: BenchReport, boards: Sequence[Board], colour: Mapping[str, str]) -> dict[str, Any]:
    """A dataset's section: the leading board in full, the other metrics in short."""
    main, *others = boards
    slices = report.slices.get((main.dataset, main.split))
    slices = slices.of(main.scores.tasks) if slices is not None and not main.alone else slices
    about = [str(main.rows)] if str(main.rows) else []
    if (known := main.card) is not None:
        about = [known.title, *(about or [f"{known.rows:,} rows"]), known.task, f"grade {known.grade}"]
    better = "higher" if main.ranking.higher_is_better else "lower"
    about += [f"split {main.split}", f"{report_rows.error_label(main)}: {better} is better"]
    facts = report_rows.sentences(main)
    if slices is not None and slices.ids is not None and slices.smiles is None:
        facts.append(NO_MOLECULES)
    figures, (leader, worst) = gallery(main, slices, colour, anchor(main)), _worst(main, slices)
    return {"board": main, "others": others, "about": about, "facts": facts, "figures": figures, "leader": leader,
            "worst": worst}  # fmt: skip


def _worst(board: Board, slices: Slices | None) -> tuple[str, list[dict[str, Any]]]:
    """The leading method, and the molecules that it got most wrong, with the predictions of the next two."""
    names = [m for m in board.methods if slices is not None and m in slices.p][:3]
    if slices is None or slices.smiles is None or slices.ids is None or not names or not board.ranking.ranked:
        return "", []
    examples = []
    for row, j, _ in slices.worst(names[0]):
        target, y = slices.targets[j], slices.y[row, j]
        plain = f"{y:g}" if target.kind == "binary" else number(y)
        lines = [("measured", target.classes[int(y)] if target.kind == "multiclass" else plain)]
        template = {"binary": "P(1), {}", "multiclass": "P(that), {}"}.get(target.kind, "{}")
        lines += [(template.format(m), number(slices.p[m][row, j])) for m in names if np.isfinite(slices.p[m][row, j])]
        if slices.distance is not None and np.isfinite(slices.distance[row]):
            lines.append(("distance to train", number(slices.distance[row])))
        picture = Markup(draw_molecule(str(slices.smiles[row]), width=200, height=140))
        label = f"id {slices.ids[row]}" + (f", {target.name}" if len(slices.targets) > 1 else "")
        examples.append({"picture": picture, "id": label, "lines": lines})
    return names[0], examples
