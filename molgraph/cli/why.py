"""``molgraph models --why``: print how each model ranks on the measured benchmarks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from molgraph.cli.show import grid, number

if TYPE_CHECKING:
    import pandas as pd

NOTE = (
    "error %: of the random forest's, of graphs without atoms the WL kernel's; a geometric mean over the datasets that "
    "the model is on. led: boards where nothing is better than the model, and it or a lower one is better than "
    "the mean label. behind: boards on which the forest, or the kernel, is better; a dash where none was measured. "
    "Better: significantly, and by more than matters in practice. Models on fewer than half of the boards stand last. "
    "CPU s: of a fold, the median. Each method has the settings of its board's recipe; dmpnn is the graph alone there, "
    "where molgraph train adds RDKit's descriptors, as the row dmpnn+rdkit has them. Scores and tests: "
    "docs/benchmarks.md"
)


def show_why(names: list[str] | None, as_json: bool = False) -> None:
    """Print a table for each question that boards ask, or the place of some models on each board.

    Args:
        names: of models; None for all.
        as_json: print the places as JSON.
    """
    from rich.console import Console

    from molgraph.api.catalogue import command_of, model_entries
    from molgraph.base.errors import UsageError
    from molgraph.evaluate.benchmark.standings import BOARD, questions, read_standings

    console, standings = Console(highlight=False), read_standings()
    chosen = standings if names is None else standings[standings[["method", "model"]].isin(names).any(axis=1)]
    if chosen.empty:
        asked = names or []
        who = f"{asked[0]} stands" if len(asked) == 1 else f"{', '.join(asked)} stand"
        cmd = next((command_of(item) for item in model_entries() if item.name == asked[0] and item.command), "")
        measure = "measure it beside a random forest on your own table: molgraph train assay.csv -t Y -m "
        hint = f"{f'try it: {cmd}' if cmd else measure + asked[0]}\nthose that stand on one: molgraph models --why"
        raise UsageError(f"{who} on no measured board yet", hint=hint)
    if as_json:
        print(json.dumps(chosen.astype(object).where(chosen.notna(), None).to_dict("records"), indent=2))
    elif names is None:
        for question in questions(standings):
            console.print(f"[bold]{question.words}[/bold] ({', '.join(question.boards)})")
            table = grid("", "model", "error %", "led", "behind", "CPU s")
            for method, row in question.table.iterrows():
                led, behind = (_share(row[key], row["boards"]) for key in ("first", "behind"))
                error = f"{row['percent']:.0f}" if row["percent"] > 0 else "-"
                table.add_row(str(method), error, led, behind, f"{float(f'{row.cpu_seconds:.2g}'):g}")
            console.print(table)
            first = question.table.iloc[0]
            if first["first"]:
                led = _share(first["first"], first["boards"])
                best = "the least error of those on most boards; " if first["percent"] > 0 else ""
                console.print(f"Start with {first.name}: {best}it led {led} boards.")
            console.print()
        if rows := [*_others(standings).itertuples()]:
            named = ", ".join(f"{row.method} ({row.model})" for row in rows)
            how = f"molgraph models {rows[0].method} --why"
            console.print(f"[dim]rows with settings of their own: {named}; how to train one: {how}[/dim]")
        console.print(f"[dim]{NOTE}[/dim]")
        console.print("[dim]more about one, board by board: molgraph models random_forest --why[/dim]")
    else:
        best = standings[standings["place"] == 1].set_index(BOARD)
        of = standings.groupby(BOARD).size()
        heads = "dataset", "place", "metric", "score", "best"
        beside = {"better": "beaten", "worse": "better", "equivalent": "equivalent", "undecided": "undecided", "": "-"}
        for (method, split), rows in chosen.groupby(["method", "split"], sort=False):
            references = [*dict.fromkeys(filter(None, rows["reference"]))]
            table = grid(f"{method}, {split}", *heads, *[" or ".join(references)] * bool(references))
            for row in rows.itertuples():
                board = (row.recipe, row.dataset, row.split, row.metric)
                leader = best.loc[board]
                table.add_row(
                    row.dataset, f"{row.place} of {of[board]}", row.metric, number(row.score),
                    f"{number(leader['score'])} {leader['method']}", *[beside[row.against]] * bool(references),
                )  # fmt: skip
            console.print(table, "")
        for row in _others(chosen, ["method", "model", "settings"]).itertuples():
            data = "assay.csv -t Y" if row.entity == "molecule" else f"dataset:{row.dataset}"
            words = f"molgraph train {data} -m {row.model}" if ":" not in row.model else row.model
            console.print(f"{row.method}: {words} {row.settings}".rstrip(), markup=False, soft_wrap=True)


def _others(rows: pd.DataFrame, by: list[str] | str = "method") -> pd.DataFrame:
    """The rows that are called otherwise than their model, one for each of ``by``."""
    return rows[(rows["method"] != rows["model"]) & (rows["model"] != "")].drop_duplicates(by)


def _share(count: float, of: float) -> str:
    return "-" if count != count else f"{count:.0f} of {of:.0f}"
