"""Write the pages, records, leaderboard, standings and picture of finished benchmarks.

python pipelines/boards/run.py                    # of the runs in bench/ that are there (moleculenet, ...)
python pipelines/boards/run.py --runs elsewhere   # of elsewhere/moleculenet, ...
python pipelines/boards/run.py --records          # from the stored records alone: no run and no data needed

A run of some cells of a recipe (``--only dataset=...``) is joined with those that the stored record has.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from molgraph.base.errors import MolgraphError  # noqa: E402
from molgraph.base.paths import atomic_write  # noqa: E402
from molgraph.evaluate.benchmark.published_record import is_record, read_record  # noqa: E402
from molgraph.evaluate.benchmark.report import write_bench_report  # noqa: E402
from molgraph.evaluate.benchmark.report_data import BenchReport  # noqa: E402
from molgraph.evaluate.benchmark.report_markdown import leaderboard, table, text  # noqa: E402
from molgraph.evaluate.benchmark.site import write_site  # noqa: E402
from molgraph.evaluate.benchmark.standings import FILE  # noqa: E402
from pipelines.boards.join import join_records  # noqa: E402
from pipelines.boards.picture import write_picture  # noqa: E402
from pipelines.boards.standings import make_standings  # noqa: E402
from pipelines.readme.block import replace_block  # noqa: E402

PEERS = "quality"  # dmpnn and chemprop at the same sizes
NAMES = (
    "moleculenet",
    "adme",
    "zoo",
    PEERS,
    "hiv",
    "tdc-admet",
    "tu-graphs",
    "tu-large",
    "davis",
    "kiba",
    "pdbbind",
    "pdbbind-complexes",
)
RECORDS, LEADERBOARD, PICTURE = ROOT / "pipelines" / "records", ROOT / "pipelines" / "LEADERBOARD.md", "docs/board.png"
PAGES = ROOT / "docs" / "boards"


def read_records(folder: Path = RECORDS) -> list[BenchReport]:
    """The reports of the records that are stored, in the order of ``NAMES``."""
    return [read_record(folder / name) for name in NAMES if is_record(folder / name)]


def leaderboards(reports: list[BenchReport]) -> str:
    """All leaderboards as one page."""
    return "\n".join(leaderboard(report) for report in reports)


def block(reports: list[BenchReport]) -> str:
    """The picture, and which methods lead each board."""
    lines = [f"![Ranks and mean scores on the first boards of molecules]({Path(PICTURE).name})", ""]
    for report in reports:
        facts, cells = report.facts, f"{report.done:,} of {report.wanted:,} cells"
        failed = sum(report.failed.values())
        said = f"{cells}, {failed or 'none'} failed, {facts['CPU time of all cells']} of CPU time, {facts['computed']}"
        lines += [f"**{text(report.title)}** ({said}; `pipelines/{report.recipe_name}.toml`)", ""]
        rows = []
        for board in (b for b in report.boards if b.primary):
            ranked = board.ranking.ranked
            leaders = ", ".join(map(text, board.leaders))
            if ranked and not leaders:
                told = "none of rank 1 is told from the mean label"
                why = told if board.tested else "not ranked, one split alone"
                leaders = f"{why}; best score: {text(ranked[0])}"
            rows.append([text(board.name), text(board.split), leaders or "none", str(len(ranked))])
        lines += [*table(["data", "split", "lead", "of"], rows, right=(3,)), ""]
    return "\n".join(lines) + "\nMade by `python pipelines/boards/run.py` from `pipelines/records`."


def headline(reports: list[BenchReport]) -> str:
    """The README's line: on how many boards of molecules, which have a forest, each method of at least half leads."""
    found = [b for r in reports for b in r.boards if b.primary and b.tested and "random_forest" in b.ranking.ranked]
    leads = Counter(name for b in found for name in b.leaders)
    there = Counter(name for b in found for name in b.ranking.ranked)
    often = [name for name in there if 2 * there[name] >= len(found)]
    said = ", ".join(f"{text(name)} {leads[name]} of {there[name]}" for name in sorted(often, key=lambda n: -leads[n]))
    words = "boards of molecules that the method leads (nothing is better, and it or a lower one beats the mean label)"
    return f"- **Honest**: {words}: {said} ([all, with the methods of fewer boards](docs/benchmarks.md))."


def peers(reports: list[BenchReport]) -> str:
    """The README's line on dmpnn beside chemprop and the forest at the same sizes, of ``pipelines/quality.toml``."""
    boards = [b for r in reports if r.recipe_name == PEERS for b in r.boards if b.primary]
    said = []
    for row, other in (("chemprop-50-epochs", "chemprop"), ("random_forest", "random_forest")):
        found: dict[str, list[str]] = {}
        for board in boards:
            found.setdefault(board.ranking.verdict("dmpnn-50-epochs", row) or "not tested", []).append(text(board.name))
        verdicts = "; ".join(f"{verdict} on {', '.join(names)}" for verdict, names in found.items())
        said.append(f"dmpnn against {text(other)}: {verdicts}")
    return f"- **Measured**: new scaffolds, five draws, 50 epochs: {'. '.join(said)} ([all](docs/benchmarks.md))."


def write_pages(reports: list[BenchReport], folder: Path = PAGES) -> list[Path]:
    """The index, a page for each benchmark and one for each method; pages of others go."""
    written = write_site(reports, folder)
    for path in set(folder.glob("*.html")) - set(written):
        path.unlink()
    return written


def write(reports: list[BenchReport]) -> None:
    """Leaderboard, standings, picture and the blocks of README and docs."""
    with atomic_write(LEADERBOARD, "w") as file:
        file.write(leaderboards(reports))
    with atomic_write(ROOT / "pipelines" / FILE, "w") as file:
        file.write(make_standings(reports).to_csv(index=False))
    write_picture(reports, ROOT / PICTURE)
    replace_block("board", block(reports))
    replace_block("headline-board", headline(reports))
    replace_block("headline-peers", peers(reports))


def main() -> int:
    """Make what can be made, and say what."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=ROOT / "bench", help="the folder that holds the runs' folders")
    parser.add_argument("--records", action="store_true", help="use the stored records alone")
    asked = parser.parse_args()
    try:
        for name in () if asked.records else NAMES:
            run = asked.runs / name
            if (run / "recipe.toml").is_file():
                with TemporaryDirectory() as folder:
                    report = write_bench_report(run, run / "board.html", record=(made := Path(folder) / name))
                    join_records(RECORDS / name if is_record(RECORDS / name) else None, made)
                    (RECORDS / name).mkdir(parents=True, exist_ok=True)
                    for part in made.iterdir():
                        with atomic_write(RECORDS / name / part.name) as file:
                            file.write(part.read_bytes())
                print(f"{run}: {report.done:,} of {report.wanted:,} cells; page and record written")
        reports = read_records()
        if not reports:
            print("there is no record yet")
            return 1
        write(reports)
        pages = write_pages(reports)
    except MolgraphError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{LEADERBOARD}, {PICTURE}, {pages[0]} and the blocks of docs/benchmarks.md and README.md written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
