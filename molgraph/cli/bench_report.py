"""``molgraph bench report``: write a benchmark's page and leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.cli.options import argument, check_writable, option, out_option


def report(
    folder: Annotated[Path, argument("What `molgraph bench run` filled, or a record of it.")],
    out: Annotated[Path | None, out_option("The page; FOLDER/board.html if not given.")] = None,
    leaderboard: Annotated[Path | None, option("FILE", "The tables as Markdown, too; such as LEADERBOARD.md.")] = None,
    record: Annotated[Path | None, option("FOLDER", "All scores, small, to make the board of again.")] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Leave out what reads the predictions once more.")] = False,
) -> None:
    """Rank the methods of a benchmark, and write one page that says who won.

    Methods are compared over the same folds; those that the folds can't tell
    apart share a rank. The page loads nothing from a network: tables that sort,
    all pairs, error against distance to train, cost, worst molecules.
    Cells that failed, and methods that lack folds, are shown and not ranked.

    Examples:
        molgraph bench report bench/quick
        molgraph bench report bench/moleculenet-small -o board.html --leaderboard LEADERBOARD.md
        molgraph bench report pipelines/records/moleculenet-small -o board.html    # of a record, without predictions
    """
    page = folder / "board.html" if out is None else out
    if folder.is_dir():
        check_writable(page, leaderboard)
    from molgraph.cli.show import say, steps
    from molgraph.evaluate.benchmark.report import warnings, write_bench_report

    with steps():
        made = write_bench_report(folder, page, leaderboard, record=record, slices=not brief)
    for board in made.boards:
        if board.primary:
            say(f"{board.name}, {board.split}, {board.metric}: {board.sentence}")
            for text in board.notes:
                say(f"  {text}")
    for text in warnings(made):
        say(text, "yellow", err=True)
    say(f"page written to {page}", err=True)
    if leaderboard is not None:
        say(f"leaderboard written to {leaderboard}", err=True)
