"""``molgraph bench run``, ``report``, ``verify``: compute a benchmark, rank its methods, and check its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.printable import count
from molgraph.base.resources import recipe_names
from molgraph.cli.options import argument, check_writable, option, out_option

SHIPPED = ", ".join(recipe_names())


def run(
    recipe: Annotated[str, argument(f"A recipe file, or the name of one that ships with molgraph: {SHIPPED}.")],
    out: Annotated[Path | None, out_option("Where cells stand; bench/NAME if not given.", "FOLDER")] = None,
    jobs: Annotated[int | None, option("N", "Cells at once.", "--jobs", "-j")] = None,
    engine: Annotated[str, option("NAME", "local, or ray for a Ray cluster.")] = "local",
    retry: Annotated[
        list[str] | None, option("STATUS", "Compute again what ended as crashed, timeout, memory, refused; or failed.")
    ] = None,
    only: Annotated[
        list[str] | None, option("KEY=VALUE", "dataset=, split=, method=, seed=, repeat= or fold=; commas, or again.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be computed, and write nothing.")] = False,
) -> None:
    """Run a benchmark: datasets x splits x methods x seeds, each cell on its own.

    Each cell is a process with a budget of time and memory. One that crashes or
    goes beyond its budget is a row that says so, and the others go on. A run
    that was stopped or killed goes on with the same command; nothing is computed
    twice. A dataset that cannot be used, or that a split cannot divide, is
    refused with a word; the others go on, and the exit code is 3. It is 1 where
    cells were computed and none of them is ok.

    A file of your own is a dataset too; in the recipe:
        datasets = ["mine", "esol"]
        [[table]]
        name = "mine"
        path = "measured.csv"
        targets = ["logS"]
        margin = 0.1                        # smaller differences are no better
        sequence = "protein"                # of pairs; or geometry = "atoms"

    Splits, each with a name on the board (`label = ...` where two are alike):
        [[split]]
        splitter = "scaffold/balanced"      # molgraph models --kind split
        seeds = [0, 1, 2]
        [[split]]
        splitter = "cluster/butina"
        params = { similarity = 0.5 }
        [[split]]
        splitter = "split.json"             # of molgraph data split
        datasets = ["mine"]
        [[split]]
        splitter = "column"                 # of the own file: train, valid, test
        params = { column = "part" }        # or folds 0, 1, ... with folds = 5
        datasets = ["mine"]

    Beside a graph model of pairs or complexes the same model of each side
    alone is a row, unless the recipe has rows of that side (`side = "ligand"`)
    or says `sides = false`; the board says whether both sides were used.

    Generators have boards of their own: each [[generator]] learns from the
    training part, and its draws are judged against the test part:
        [generation]
        draws = 10000
        [[generator]]
        name = "language"

    A method of your own: a scikit-learn estimator (on fingerprints, or with
    `params = { reads = "smiles" }`) or a function of train, labels and test:
        [[method]]
        path = "mypackage:MyRegressor"

    All methods are held against the forest; at the top of the recipe, another:
        reference = "wl_kernel"

    Of a table of pairs, a method may be given some columns alone:
        [[method]]
        name = "random_forest"
        inputs = ["smiles"]

    Examples:
        molgraph bench run quick    # half a minute, no download
        molgraph bench run moleculenet --jobs 2
        molgraph bench run mine.toml -o runs/mine --only dataset=esol,bbbp --only method=mean
        molgraph bench run mine.toml -o runs/mine --retry failed
    """
    from molgraph.api.benchmarking import benchmark
    from molgraph.cli.options import check_whole
    from molgraph.cli.show import command, say, steps

    check_whole("--jobs", jobs)
    with steps():
        result = benchmark(
            recipe, out=out, jobs=jobs, engine=engine, retry=tuple(retry or ()), only=parse_only(only or []),
            dry_run=dry_run,
        )  # fmt: skip
    ran = result.ran
    if not ran.wanted and ran.refusals:
        say(f"nothing was {'planned' if dry_run else 'computed'}: everything that was asked for is refused", "red")
        if dry_run:  # a run has said so as it read them
            _warn(ran, err=True)
    elif dry_run:
        cells, left = count(ran.wanted, "cell"), ran.wanted - ran.there
        say(f"{cells}: {ran.there:,} are there, {left:,} would be computed in {ran.out}")
        _warn(ran, err=True)
    else:
        _show(result)
        say("")
        if ran.failures:
            command(["molgraph", "bench", "run", recipe, "-o", ran.out, "--retry", "failed"], "try what failed again")
        command(["molgraph", "bench", "report", ran.out], "the board, ranked, as a page")
        command(["molgraph", "bench", "verify", ran.out], "hash and score everything once more")
    if ran.refusals:
        raise typer.Exit(3)
    if ran.none_ok:
        raise typer.Exit(1)


def verify(
    out: Annotated[Path, argument("The folder of a benchmark that was run.")],
    against: Annotated[Path | None, option("RECORD", "Compare with the record of an earlier run, too.")] = None,
) -> None:
    """Hash and score everything that a run stored once more.

    Datasets, splits and predictions are hashed again, predictions compared with
    the split's test rows and the dataset's measured values, and every score is
    computed anew. Any difference is named, and the exit code is 1; so is a row
    of scores.csv without a cell, a dataset without a plan, and a folder without
    cells. Cells that the recipe asks for and that were not computed yet are
    counted.

    With --against, each cell's predictions are compared with those of a
    published record. Their bytes may differ between processors; the exit code
    is 1 where a score differs by more than a millionth of its size.

    Examples:
        molgraph bench verify bench/quick
        molgraph bench verify bench/adme --against pipelines/records/adme
    """
    from molgraph.cli.show import say
    from molgraph.evaluate.benchmark.verify import compare_with_record, verify_records

    result = verify_records(out)
    *faults, last = repr(result).splitlines()
    for line in faults:
        say(line, "red")
    say(last, "" if result.ok else "red")
    same = True
    if against is not None:
        words, same = compare_with_record(result, against)
        say(words, "" if same else "red")
    if not (result.ok and same):
        raise typer.Exit(1)


def parse_only(words: list[str]) -> dict[str, set[str]]:
    """What ``--only`` says, as keys and values.

    Example:
        >>> found = parse_only(["dataset=esol,bbbp", "method=mean"])
        >>> sorted(found["dataset"]), found["method"]
        (['bbbp', 'esol'], {'mean'})
    """
    filters: dict[str, set[str]] = {}
    for word in words:
        key = ""
        for part in word.split(","):
            name, equals, value = part.partition("=")
            key = name.strip() if equals else key
            if not key:
                raise BadValueError(f"--only {word!r} is not of the form key=value", hint="as in --only dataset=esol")
            filters.setdefault(key, set()).add((value if equals else part).strip())
    return filters


def _show(result: Any) -> None:
    from molgraph.cli.show import say, table

    ran = result.ran
    parts = [f"{n:,} {status}" for status, n in sorted(ran.made.items(), key=lambda each: each[0] != "ok")]
    there = "all" if ran.there == ran.wanted else f"{ran.there:,}"
    lost = len(ran.failures) - sum(n for status, n in ran.made.items() if status != "ok")
    there += " were there" + f" ({lost:,} without a result)" * bool(lost)
    done = ", ".join([*[there] * bool(ran.there), *parts]) or "the recipe asks for none"
    say(f"{count(ran.wanted, 'cell')}: {done} ({ran.seconds:.0f} s) in {ran.out}")
    for cell, status, reason in ran.failures[:5]:
        say(f"  {cell}: {status}: {reason}", "yellow")
    if len(ran.failures) > 5:
        say(f"  and {len(ran.failures) - 5:,} more", "yellow")
    if ran.none_ok:
        say(f"of {sum(ran.made.values()):,} cells computed, none is ok", "red")
    _warn(ran)
    if ran.stale:
        say(f"{count(ran.stale, 'cell')} of another recipe there too: kept, not read", "dim")
    if len(result.summary):
        say("")
        table(result.summary)


def _warn(ran: Any, *, err: bool = False) -> None:
    """Say which rows no method is given, and what was refused."""
    from molgraph.cli.show import say

    for line in ran.unused:
        say(line, "yellow", err=err)
    for line in ran.refusals:
        say(line, "red", err=err)


def report(
    folder: Annotated[Path, argument("What `molgraph bench run` filled, or a record of it.")],
    out: Annotated[Path | None, out_option("The page; FOLDER/board.html if not given.")] = None,
    leaderboard: Annotated[Path | None, option("FILE", "The tables as Markdown, too; such as LEADERBOARD.md.")] = None,
    record: Annotated[Path | None, option("FOLDER", "All scores, small, to make the board of again.")] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Leave out what reads the predictions once more.")] = False,
) -> None:
    """Rank the methods of a benchmark, and write one page of them.

    Methods are compared over the same folds; a method's rank is one more than
    the number of methods that are better than it. The page loads nothing from a network: tables that sort,
    all pairs, error against distance to train, cost, worst molecules.
    Cells that failed, and methods that lack folds, are shown and not ranked.

    Examples:
        molgraph bench report bench/quick
        molgraph bench report bench/moleculenet -o board.html --leaderboard LEADERBOARD.md
        molgraph bench report pipelines/records/moleculenet -o board.html    # of a record, without predictions
    """
    page = folder / "board.html" if out is None else out
    if folder.is_dir():
        check_writable(page, leaderboard)
    from molgraph.cli.show import say, steps
    from molgraph.evaluate.benchmark.report import warnings, write_bench_report
    from molgraph.evaluate.benchmark.run_folder import RECIPE, read_records
    from molgraph.evaluate.generation.board import write_generation_report

    if (folder / RECIPE).is_file() and (records := read_records(folder)).recipe.generates:
        if record is not None:
            raise UnsupportedError(
                "a record is made of methods", hint="keep the leaderboard of generators: --leaderboard FILE"
            )
        with steps():
            boards = write_generation_report(records, page, leaderboard)
        for drawn in boards:
            say(f"{drawn.dataset}, {drawn.split}: {drawn.sentence}")
        say(f"page written to {page}", err=True)
        return
    with steps():
        result = write_bench_report(folder, page, leaderboard, record=record, slices=not brief)
    for board in result.boards:
        if board.primary:
            say(f"{board.name}, {board.split}, {board.metric}: {board.sentence}")
            for text in board.notes:
                say(f"  {text}")
    for text in warnings(result):
        say(text, "yellow", err=True)
    say(f"page written to {page}", err=True)
    if leaderboard is not None:
        say(f"leaderboard written to {leaderboard}", err=True)
