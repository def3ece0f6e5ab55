"""``molgraph models``: the registry in, a table of what can be trained out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from molgraph.base.registry import Entry

LINE = ("rows", "relation", "message", "update", "readout", "objective")
GRAPH_METHOD = "graph"  # the method that trains any encoder: its parameters are every graph model's too


def models(
    name: Annotated[str | None, typer.Argument(help="One model, with its parameters.", metavar="NAME")] = None,
    kind: Annotated[str, typer.Option(help="Another kind of thing, such as metric, split or readout.")] = "model",
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
) -> None:
    """List what can be trained, from which paper, with which parameters.

    Every graph model is one line of the same table: rows speak along a relation.

    Examples:
        molgraph models
        molgraph models dmpnn  # its parameters, for --set key=value
        molgraph models --kind split
        molgraph models --kind metric  # which way is better, what each needs
    """
    from molgraph.base.errors import UsageError, nearest
    from molgraph.catalogue import entry, kinds, model_entries, names

    if kind != "model" and kind not in kinds():
        raise UsageError(f"there is no kind {kind!r}", hint=nearest(kind, ["model", *kinds()]))
    found = model_entries() if kind == "model" else [entry(kind, each) for each in names(kind)]
    if name is not None:
        known = {each.name: each for each in found}
        if name not in known:
            raise UsageError(f"no {kind} is named {name!r}", hint=nearest(name, sorted(known)))
        found = [known[name]]
    if as_json:
        print(json.dumps([_plain(each) for each in found], indent=2))
    elif name is not None:
        show_one(found[0])
    else:
        show_all(found, kind)


def show_all(found: list[Entry], kind: str) -> None:
    """Print a table of entries."""
    from rich.console import Console

    console = Console(highlight=False)
    graphs = [each for each in found if each.line]
    if graphs:
        _show_lines(console, "Graph models", graphs)
    if kind == "metric":
        console.print(_metrics(found))
        return
    table = _table("Models" if kind == "model" else kind.capitalize() + "s", "name", "what it is", "from")
    for each in found:
        if kind != "model" or each.name != GRAPH_METHOD:
            table.add_row(each.name, each.summary, each.paper)
    console.print(table)
    if kind == "model":
        console.print(f"\n[dim]parameters: molgraph models {found[0].name}[/dim]")


def _metrics(found: list[Entry]) -> Any:
    """The table of metrics: which way is better, what they judge, what they need."""
    judges = {("regression", "bounded"): "numbers", ("binary", "multiclass"): "classes"}
    table = _table("Metrics", "name", "what it is", "better", "judges", "needs")
    for each in found:
        better = "higher" if each.value.higher_is_better else "lower"
        what = judges.get(each.value.kinds, ", ".join(each.value.kinds))
        table.add_row(each.name, each.summary, better, what, each.value.needs)
    return table


def show_one(entry: Entry) -> None:
    """Print one entry: what it is, its line of the design's table, its parameters."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print(f"[bold cyan]{entry.name}[/bold cyan]  {entry.summary}")
    if entry.paper:
        console.print(f"[dim]{entry.paper}[/dim]")
    if entry.kind == "metric":
        better = "higher" if entry.value.higher_is_better else "lower"
        console.print(f"{better} is better; judges {', '.join(entry.value.kinds)} targets; needs {entry.value.needs}")
    console.print()
    if entry.line:
        _show_lines(console, "", [entry])
    for title, rows in _parameters(entry).items():
        table = _table(title, "parameter", "default", "meaning")
        for row in rows:
            table.add_row(row["name"], repr(row["default"]), row["meaning"])
        console.print(table)
        console.print()


def _show_lines(console: Any, title: str, entries: list[Entry]) -> None:
    """Print lines of the design's table; where no word of it may be cut, downwards."""
    names = ["name"] if title else []
    table = _table(title, *names, *LINE)
    for each in entries:
        table.add_row(*[each.name] * len(names), *each.line)
    least = console.measure(table, options=console.options.update(width=1000)).minimum
    if least + 2 * len(table.columns) <= console.width:  # rich leaves the room between columns out
        console.print(table)
        console.print()
        return
    for each in entries:
        table = _table(title and f"{title}: {each.name}", "part", "what it is")
        for row in zip(LINE, each.line, strict=True):
            table.add_row(*row)
        console.print(table)
        console.print()


def _table(title: str, *columns: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.show_edge = table.pad_edge = False
    table.padding = (0, 1, 0, 0)
    for i, column in enumerate(columns):
        table.add_column(column, style="cyan" if not i else None, no_wrap=not i, header_style="dim", overflow="fold")
    return table


def _parameters(entry: Entry) -> dict[str, list[dict[str, Any]]]:
    """Tables of parameters by title; a graph model has its own and those of training."""
    from molgraph.catalogue import entry as find
    from molgraph.catalogue import parameters

    if entry.kind not in ("encoder", "method"):
        return {}
    sources = {"Its own parameters  (--set params.NAME=VALUE)": entry.value}
    if entry.kind == "encoder":
        sources["Training"] = find("method", GRAPH_METHOD).value
    return {
        title: [each._asdict() for each in parameters(value) if each.name not in ("encoder", "params")]
        for title, value in sources.items()
    }


def _plain(entry: Entry) -> dict[str, Any]:
    tables = _parameters(entry)
    rows = [row for table in tables.values() for row in table]
    line = dict(zip(LINE, entry.line, strict=True)) if entry.line else None
    plain: dict[str, Any] = {
        "name": entry.name,
        "kind": entry.kind,
        "summary": entry.summary,
        "paper": entry.paper,
        "line": line,
    }
    if entry.kind == "metric":
        direction = "higher" if entry.value.higher_is_better else "lower"
        plain |= {"direction": direction, "kinds": list(entry.value.kinds), "needs": entry.value.needs}
    return plain | {"parameters": {row["name"]: _json(row["default"]) for row in rows}}


def _json(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
