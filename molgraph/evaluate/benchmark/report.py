"""Report on a benchmark: one self-contained HTML page, and a leaderboard in Markdown."""

from __future__ import annotations

from pathlib import Path

from molgraph.base import progress
from molgraph.base.errors import UsageError
from molgraph.base.paths import atomic_write
from molgraph.evaluate.benchmark.folder import lies_in
from molgraph.evaluate.benchmark.published_record import ABOUT, PACKED, is_record, read_record, write_record
from molgraph.evaluate.benchmark.report_data import BenchReport, gather
from molgraph.evaluate.benchmark.report_markdown import leaderboard
from molgraph.evaluate.benchmark.report_rows import signed, span
from molgraph.evaluate.benchmark.report_sections import breakable, overview, section
from molgraph.evaluate.benchmark.run_folder import Records, read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.report_style import COLOURS, number, render

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
    words = [f"{datasets} dataset{'s' * (datasets != 1)}", f"{len(report.methods)} methods"]
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
