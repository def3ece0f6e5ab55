"""``molgraph data list``, ``info`` and ``get``: list, describe and fetch public datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from molgraph.base.printable import count
from molgraph.cli.options import argument, option

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from molgraph.data.cards import Card

Names = list[str]  # before this module's own `list`


def list(
    collection: Annotated[str | None, option("WORD", "MoleculeNet, ADME, TU, ...", "--collection", "-c")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON, one object a dataset.")] = False,
) -> None:
    """Name the datasets that have a card, and where each is found.

    Grade: A one assay, or curated; B in between; C old compilation.
    Found: built in (inside the rdkit package), here (in the folder that
    MOLGRAPH_DATA names), cache (downloaded before), download (its hash is
    known), unverified (nobody has recorded its hash yet: the first download
    does, and refuses a later change).

    Examples:
        molgraph data list
        molgraph data list --collection ADME
    """
    from molgraph.base.errors import UnknownNameError, nearest
    from molgraph.cli.show import console, say
    from molgraph.data.datasets import datasets

    frame = datasets()
    if collection is not None:
        known = frame["collection"].unique().tolist()
        chosen = [word for word in known if word.lower() == collection.lower()]
        if not chosen:
            raise UnknownNameError(f"no collection is named {collection!r}", hint=nearest(collection, known))
        frame = frame[frame["collection"] == chosen[0]]
    if json:
        print(frame.reset_index().to_json(orient="records", indent=2))
        return
    console().print(_grid(frame))
    say("one of them: molgraph data info NAME; to learn from it: molgraph train dataset:NAME", "dim", err=True)


def info(
    name: Annotated[str, argument("A dataset: molgraph data list names them.")],
) -> None:
    """Show a dataset's card: what it is, what is known against it, what the audit found.

    Examples:
        molgraph data info bbbp
    """
    from rich.text import Text

    from molgraph.cli.show import console
    from molgraph.data.cards import LABEL_WIDTH, card, card_text

    out = console()
    title, *lines = card_text(card(name), width=min(out.width, 110)).splitlines()
    out.print(Text(title, style="bold"))
    for line in lines:
        out.print(Text(line[:LABEL_WIDTH], style="bold cyan").append(line[LABEL_WIDTH:], style="not bold default"))


def get(
    names: Annotated[Names | None, typer.Argument(metavar="NAME...", help="Datasets to download.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All that are not here yet and have an address.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what is here: has the file changed at its address?")] = (
        False
    ),
) -> None:
    """Download datasets into the cache, check them, and say what came.

    A download that broke off goes on where it stopped. Files whose hash the
    card knows are checked; of others the first download's hash is recorded
    beside them, and a later change is refused.

    Examples:
        molgraph data get esol tox21
        molgraph data get --all
    """
    from molgraph.base.errors import MissingOptionError, MolgraphError
    from molgraph.cli.show import say
    from molgraph.data.cards import card, card_names

    if every == bool(names):
        hint = "molgraph data get esol; molgraph data list names them"
        raise MissingOptionError("name datasets, or say --all", hint=hint)
    wanted = {name: card(name) for name in names or card_names()}  # an unknown name is refused before any download
    failed: Names = []
    for name, known in wanted.items():
        try:
            say(f"{name}: {_fetched(name, known, again)}")
        except MolgraphError as error:
            if len(wanted) == 1:
                raise
            failed.append(name)
            say(f"{name}: {error.message}", "red", err=True)
    if failed:
        raise MolgraphError(f"{len(failed)} of {len(wanted)} could not be had: {', '.join(failed)}")


def _fetched(name: str, known: Card, again: bool) -> str:
    """Have one dataset on this machine; how it stands with it, in words."""
    from molgraph.data.datasets import load_dataset
    from molgraph.data.sources.dataset_files import DOWNLOAD, fetch, places

    if again:
        for source in places(known, DOWNLOAD):
            if source.place == "url":
                fetch(known, source)
    data = load_dataset(name)
    state = "as on its card" if data.verified else "unverified, its hashes are recorded now"
    return f"{count(len(data), 'row')} from {data.origin}, {state} (edition {data.edition}, content {data.hash[:12]})"


def _grid(frame: pd.DataFrame) -> Table:
    from molgraph.cli.show import grid

    shown = grid("", "name", "task", "rows", "metric", "split", "grade", "found")
    shown.box, shown.columns[2].justify = None, "right"
    for column in shown.columns[:-1]:
        column.no_wrap = True
    colours = {"A": "green", "B": "yellow", "C": "red"}
    for collection, part in frame.groupby("collection", sort=False):
        shown.add_row(f"[bold]{collection}[/bold]")
        for row in part.itertuples():
            grade, task = f"[{colours[row.grade]}]{row.grade}", str(row.task).replace("regression", "value")
            shown.add_row(row.Index, task, f"{row.rows:,}", row.metric or "-", row.split, grade, row.found)
    return shown
