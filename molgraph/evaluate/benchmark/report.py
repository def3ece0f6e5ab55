"""Report on a benchmark: one self-contained HTML page, and a leaderboard in Markdown."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from molgraph.base import progress
from molgraph.base.errors import UsageError
from molgraph.base.paths import atomic_write
from molgraph.base.version import __version__
from molgraph.evaluate.benchmark import report_sections as parts
from molgraph.evaluate.benchmark.folder import lies_in
from molgraph.evaluate.benchmark.published_record import ABOUT, PACKED, is_record, read_record, write_record
from molgraph.evaluate.benchmark.report_data import BenchReport, gather
from molgraph.evaluate.benchmark.report_markdown import leaderboard
from molgraph.evaluate.benchmark.report_style import colours
from molgraph.evaluate.benchmark.run_folder import Records, read_records
from molgraph.evaluate.benchmark.scoring import score_records

METHOD = (
    "Statistics as in Ash et al. 2025 (J. Chem. Inf. Model.): methods are compared on the same folds. Where residuals"
    " are normal, variances equal and differences spherical, by repeated-measures ANOVA and Tukey's HSD with its "
    "error term; else by Friedman's and Conover's tests with Holm's correction, a pair's p-value never below "
    "Friedman's over any run of methods that holds both, and two are told apart only where the interval of their "
    "difference says so too; where folds are too few for ranks, by paired t-tests with Bonferroni's correction. Folds"
    " of a repeated cross-validation share training rows, so their intervals are too narrow: beside them stand those "
    "widened by Nadeau and Bengio's factor, and which differences outlive it. Only cells of the same data hash and "
    "the same split hashes stand in one table. A method that lacks a fold is shown and not ranked; so is one that "
    "predicts fewer than 99% of the rows that another predicts in a fold, one row aside. Scores are computed from "
    "stored predictions alone. Cost is what a cell's process took, its search of parameters too; features that cells "
    "share are made once, by the first."
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
    if out is not None:
        with atomic_write(out) as file:
            file.write(report_page(report).encode())
    if markdown is not None:
        with atomic_write(markdown, "w") as file:
            file.write(leaderboard(report))
    return report


def report_page(report: BenchReport) -> str:
    """The page as one HTML text that loads nothing from anywhere."""
    colour = colours(report.methods)
    each = report.sections()
    sections = [parts.section(report, boards, colour) for boards in progress.track(each, label="figures")]
    page = _template().render(
        report=report,
        summary=summary(report),
        warnings=warnings(report),
        overview=parts.overview(report),
        sections=sections,
        several_splits=len(report.overall) > 1,
        method=METHOD,
        commands=commands(report),
        version=__version__,
    )
    return page.encode("utf-8", "replace").decode()  # a lone surrogate would make the page unwritable


def summary(report: BenchReport) -> str:
    """What was run, in one line."""
    datasets = len({board.name for board in report.boards})
    words = [f"{datasets} dataset{'s' * (datasets != 1)}", f"{len(report.methods)} methods"]
    words += [f"{report.done:,} of {report.wanted:,} cells", f"{sum(report.failed.values()):,} failed"]
    words += [f"{report.facts[key]}" for key in ("CPU time of all cells", "computed") if key in report.facts]
    return ", ".join([*words[:-2], f"CPU time {words[-2]}", words[-1]] if len(words) > 5 else words) + "."


def warnings(report: BenchReport) -> list[str]:
    """What a reader has to know before anything else."""
    out = []
    if report.done < report.wanted:
        out.append(f"{report.wanted - report.done:,} cells were not run yet: methods that lack folds have no rank.")
    if report.failed:
        out.append("Failed cells: " + ", ".join(f"{n} {status}" for status, n in report.failed.items()) + ".")
    return [*out, *report.refusals]


def commands(report: BenchReport) -> str:
    """How to do it again."""
    name = report.recipe_name
    return f"molgraph bench run {name}.toml -o bench/{name}\nmolgraph bench report bench/{name}"


def _template() -> Any:
    text = files("molgraph.evaluate.benchmark").joinpath("report.html.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(text)
