"""``molgraph models --why``: print how each model ranks on the measured benchmarks."""

from __future__ import annotations

import json

from molgraph.cli.show import grid, number

NOTE = (
    "led: boards on which nothing is significantly better, and that tell their best from the mean. behind: boards on "
    "which the random forest is significantly better. Each method has the settings of its board's recipe. Scores and "
    "tests: docs/benchmarks.md"
)


def show_why(names: list[str] | None, as_json: bool = False) -> None:
    """Print a table for each question that boards ask, or the place of some models on each board.

    Args:
        names: of models; None for all.
        as_json: print the places as JSON.
    """
    from rich.console import Console

    from molgraph.base.errors import UsageError
    from molgraph.evaluate.benchmark.standings import BOARD, questions, read_standings

    console, standings = Console(highlight=False), read_standings()
    chosen = standings if names is None else standings[standings["method"].isin(names)]
    if chosen.empty:
        known = ", ".join(sorted({*standings["method"]}))
        raise UsageError(f"{', '.join(names or [])} stands on no measured board", hint=f"those that do: {known}")
    if as_json:
        print(json.dumps(chosen.to_dict("records"), indent=2))
    elif names is None:
        for asked in questions(standings):
            table = grid(f"{asked.words} ({', '.join(asked.boards)})", "model", "led", "behind", "mean place", "CPU s")
            for method, row in asked.table.iterrows():
                led, behind = (f"{row[key]:.0f} of {row['boards']:.0f}" for key in ("first", "behind"))
                table.add_row(str(method), led, behind, f"{row['place']:.1f}", f"{float(f'{row.cpu_seconds:.2g}'):g}")
            console.print(table, "")
        console.print(f"[dim]{NOTE}[/dim]")
        console.print("[dim]one of them, board by board: molgraph models random_forest --why[/dim]")
    else:
        best = standings[standings["place"] == 1].set_index(BOARD)
        of = standings.groupby(BOARD).size()
        table = grid("", "dataset", "split", "model", "place", "metric", "score", "best", "the forest")
        beside = {"better": "beaten", "worse": "better", "alike": "not told apart", "": ""}
        for row in chosen.itertuples():
            board = (row.recipe, row.dataset, row.split, row.metric)
            leader = best.loc[board]
            table.add_row(
                row.dataset, row.split, row.method, f"{row.place} of {of[board]}", row.metric, number(row.score),
                f"{number(leader['score'])} {leader['method']}", beside[row.against],
            )  # fmt: skip
        console.print(table)
