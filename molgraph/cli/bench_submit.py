"""``molgraph bench export``, ``submit``: write folds as csv files, and enter the predictions of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.printable import count
from molgraph.cli.options import argument, option, out_option


def export(
    recipe: Annotated[str, argument("A recipe file, or the name of one that ships with molgraph.")],
    out: Annotated[Path | None, out_option("Where folds stand; bench/NAME if not given.", "FOLDER")] = None,
) -> None:
    """Write the folds of a benchmark as csv files for any program.

    Each fold is a folder FOLDER/folds/DATASET/SPLIT/r0-f0 with train.csv and
    test.csv (valid.csv too, where the split has such rows). Test files have no
    labels. Add a column of predictions for each target to the test files, join
    them to one file, and hand it to `molgraph bench submit FOLDER`.

    Examples:
        molgraph bench export quick -o bench/quick
    """
    from molgraph.api.benchmarking import benchmark
    from molgraph.cli.show import command, say, steps
    from molgraph.evaluate.benchmark.export import FOLDS, export_folds

    with steps():
        result = benchmark(recipe, out=out, only={"method": ()})
        folders = export_folds(result.records)
    for line in result.ran.refusals:
        say(line, "red")
    say(f"{count(len(folders), 'fold')} written to {result.out / FOLDS}")
    for name, problem in result.records.problems.items():
        say(f"columns to predict of {name}: {', '.join(c for target in problem.targets for c in target.columns)}")
    command(
        ["molgraph", "bench", "submit", result.out, "predictions.csv", "--card", "method.toml"], "enter predictions"
    )
    if result.ran.refusals:
        raise typer.Exit(3)


def submit(
    run: Annotated[Path, argument("The folder of a benchmark that was exported or run.")],
    predictions: Annotated[Path, argument("A csv file: the rows of test.csv files with a column for each target.")],
    card: Annotated[Path, option("FILE", "How they were made: a toml file, see below.", "--card")],
    reproduced: Annotated[
        str, option("WORDS", "By whom, and how, you made them again; else the row is self-reported.", "--reproduced")
    ] = "",
) -> None:
    """Enter the predictions of another program into a benchmark.

    Ids, coverage and the splits' hashes are checked, and predictions that are
    labels are refused; nothing is written where something is wrong. Scores are
    computed here, and the board marks the row as external. Of a class, give the
    probability of class 1.

    The card is a toml file; all but the name may be left out:
        name = "mine"                      # the row of the board
        code = "https://example.org/mine"
        commit = "3f2c1d0"
        licence = "MIT"
        pretraining = "corpus.smi"         # searched for test molecules
        tuning = "20 trials inside each training part"
        hardware = "one GPU"
        seconds = 40.0                     # of a fold

    Examples:
        molgraph bench submit bench/quick predictions.csv --card method.toml
    """
    from molgraph.cli.show import command, say, steps
    from molgraph.evaluate.benchmark.run_folder import read_records
    from molgraph.evaluate.benchmark.scoring import write_scores
    from molgraph.evaluate.benchmark.submission import submit as enter

    with steps():
        cells = enter(read_records(run), predictions, card, reproduced=reproduced)
        write_scores(read_records(run))
    say(f"{count(len(cells), 'cell')} of {cells[0].method} entered and scored in {run}")
    command(["molgraph", "bench", "report", run], "the board, ranked, as a page")
