"""``molgraph models``: list everything that can be trained, or describe one entry."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from molgraph.base.kinds import KINDS
from molgraph.cli.options import AsJson
from molgraph.cli.show import grid

if TYPE_CHECKING:
    from molgraph.base.registry import Entry

LINE = ("rows", "relation", "message", "update", "readout", "objective")
TAGGED = 40  # characters of a summary beside which tags are shown
AUTHOR = 10  # characters of a name
GRAPH_METHOD = "graph"  # the method that trains any encoder: its parameters are every graph model's too


def models(
    name: Annotated[str | None, typer.Argument(help="One model, with its parameters.", metavar="NAME")] = None,
    kind: Annotated[str, typer.Option(help="Another kind of thing, such as metric, split or readout.")] = "model",
    search: Annotated[
        str | None, typer.Option(help="Those with these words in name, summary, paper, system or tags.")
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Which to pick: where each stands on the measured boards.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what can be trained, from which paper, with which parameters.

    One line for each. With a name: its paper, when to use it, its parameters
    with their defaults, and of a graph model its messages, updates and readout.

    Examples:
        molgraph models
        molgraph models --search uncertainty
        molgraph models --why  # which to pick, by the measured boards
        molgraph models dmpnn --why  # its place on each board
        molgraph models dmpnn  # its parameters, for --set params.NAME=VALUE
        molgraph models --kind split  # with their parameters
        molgraph models cluster/butina
        molgraph models --kind metric  # which way is better, what each needs
    """
    from molgraph.api.catalogue import matches, model_entries, names
    from molgraph.base.errors import UnknownNameError, UnsupportedError, close_names, nearest
    from molgraph.base.registry import entry, full_name, kinds
    from molgraph.cli.why import show_why

    if kind != "model" and kind not in kinds():
        raise UnknownNameError(f"there is no kind {kind!r}", hint=nearest(kind, ["model", *kinds()]))
    entries = model_entries() if kind == "model" else [entry(kind, item) for item in names(kind)]
    if name is not None:
        known = {item.name: item for item in entries}
        if kind == "model" and name not in known:  # of another kind, where one alone has it
            others = [entry(item, name) for item in kinds() if full_name(item, name) in names(item)]
            known |= {name: others[0]} if len(others) == 1 else {}
        wanted = full_name(kind, name)
        if wanted not in known and kind == "model" and (rows := _rows_called(name)):
            if not why:
                hint = f"with which settings: molgraph models {name} --why"
                raise UnknownNameError(f"{name!r} is a row of the measured boards, of the model {rows[0]}", hint=hint)
            return show_why([name], as_json)
        if wanted not in known:
            owners = [item for item in kinds() if full_name(item, name) in names(item)]
            every = sorted({item for k in kinds() for item in names(k)})
            hint = nearest(name, every if close_names(name, every) else known)
            if owners:
                hint = "\n".join(f"the {item} of that name: molgraph models {name} --kind {item}" for item in owners)
            raise UnknownNameError(f"no {kind} is named {name!r}", hint=hint)
        entries = [known[wanted]]
    if search is not None and not (entries := [item for item in entries if matches(item, search)]):
        hint = "use fewer words; molgraph models lists all"
        raise UnknownNameError(f"no {kind} has all the words {search!r}", hint=hint)
    if why:
        if kind != "model":
            raise UnsupportedError(f"boards rank models, not a {kind}", hint="leave --kind out")
        if name is not None and (other := entries[0].kind) not in {item.kind for item in model_entries()}:
            hint = f"what it is, and its parameters: molgraph models {name}"
            raise UnsupportedError(f"boards rank models, and {name} is of the kind {other}", hint=hint)
        show_why([item.name for item in entries] if name is not None or search is not None else None, as_json)
    elif as_json:
        print(json.dumps([_plain(item) for item in entries], indent=2, default=repr))
    elif name is not None:
        show_one(entries[0])
    else:
        show_all(entries, kind)


def _rows_called(name: str) -> list[str]:
    """The models of the measured boards' rows of that name."""
    from molgraph.evaluate.benchmark.standings import read_standings

    standings = read_standings()
    return [*dict.fromkeys(standings["model"][standings["method"] == name])]


def show_all(found: list[Entry], kind: str) -> None:
    """Print a table of entries, a line each."""
    from rich.console import Console

    from molgraph.api.catalogue import group_of, tags_of

    console = Console(highlight=False)
    if kind == "metric":
        return console.print(_metrics(found))
    shown = [each for each in found if kind != "model" or each.name != GRAPH_METHOD]
    papers = [short_paper(each.paper) for each in shown]
    room = console.width - max(len(each.name) for each in shown) - max(map(len, papers)) - 4
    tags = [", ".join(tags_of(each)) for each in shown]
    wide = room - max(map(len, tags)) - 2 >= TAGGED and any(tags)
    room -= (max(map(len, tags)) + 2) * wide
    title = re.sub("y$", "ie", kind.capitalize()) + ("es" if kind.endswith("h") else "s")
    table = grid(title, "name", "what it is", "from", *["tags"] * wide)
    before = ""
    for each, paper, tag in zip(shown, papers, tags, strict=True):
        if kind == "model" and (heading := group_of(each)) != before:
            table.add_row(f"[bold default]{heading}[/]")
            before = heading
        table.add_row(each.name, brief(each.summary, room), paper, *[tag] * wide)
    console.print(table)
    if kind == "split":
        table = grid("\nParameters, with defaults", "name", "in a benchmark: params = { NAME = VALUE }")
        for each in filter(lambda each: each.value.params, shown):
            settings = (key if value is None else f"{key} = {value}" for key, value in each.value.params.items())
            table.add_row(each.name, ", ".join(settings))
        console.print(table)
    of = "" if kind == "model" else f" --kind {kind}"
    console.print(f"\n[dim]more about one: molgraph models {shown[0].name}{of}[/dim]")


def brief(text: str, room: int) -> str:
    """The text, or as many of its clauses as fit into that many characters; else as many words.

    Example:
        >>> brief("support vectors; slow on large tables", 30), brief("support vectors", 10)
        ('support vectors', 'support…')
    """
    if len(text) <= room:
        return text
    ends = [match.start() for match in re.finditer(r"[;:] | \(", text) if room / 2 <= match.start() <= room]
    return text[: max(ends)] if ends else text[:room].rsplit(" ", 1)[0].rstrip(",;:") + "…"


def short_paper(paper: str) -> str:
    """The first author and the year of the first paper.

    Example:
        >>> short_paper("Yang et al. 2019, J. Chem. Inf. Model. 59:3370; Rong et al. 2020, NeurIPS")
        'Yang 2019'
        >>> short_paper("Lakshminarayanan et al. 2017, NeurIPS")
        'Lakshmina… 2017'
    """
    match = re.match(r"([\w-]+)[^;]*?\b(\d{4})\b", paper)
    if match is None:
        return paper.partition(",")[0]
    author, year = match.groups()
    return f"{author if len(author) <= AUTHOR else author[: AUTHOR - 1] + '…'} {year}"


def _metrics(found: list[Entry]) -> Any:
    """The table of metrics: which way is better, what they judge, what they need."""
    judges = {("regression", "bounded"): "numbers", ("binary", "multiclass"): "classes"}
    table = grid("Metrics", "name", "what it is", "better", "judges", "needs")
    for metric in found:
        better = "higher" if metric.value.higher_is_better else "lower"
        what = judges.get(metric.value.kinds, ", ".join(metric.value.kinds))
        table.add_row(metric.name, metric.summary, better, what, metric.value.needs)
    return table


def show_one(entry: Entry) -> None:
    """Print one entry: what it is, its line of the design's table, its parameters."""
    from rich.console import Console
    from rich.markup import escape

    from molgraph.api.catalogue import COMMANDS, advice, command_of

    console = Console(highlight=False)
    console.print(f"[bold cyan]{entry.name}[/bold cyan]  {entry.summary}")
    if entry.paper:
        console.print(f"[dim]{entry.paper}[/dim]")
    if entry.kind == "metric":
        better = "higher" if entry.value.higher_is_better else "lower"
        console.print(f"{better} is better; judges {', '.join(entry.value.kinds)} targets; needs {entry.value.needs}")
    if entry.kind == "split":
        console.print(entry.value.asks)
    for passage in advice(entry.value):
        console.print(f"\n{escape(passage)}")
    console.print()
    if entry.line:
        table = grid("", "part", "what it is")
        for part in zip(LINE, entry.line, strict=True):
            table.add_row(*part)
        console.print(table, "")
    for title, rows in _parameters(entry).items():
        explained = any(row["meaning"] for row in rows)
        console.print(f"[bold]{escape(title)}[/bold]")
        table = grid("", "parameter", "default", *["meaning"] * explained)
        for row in rows:
            table.add_row(row["name"], repr(row["default"]), *[row["meaning"]] * explained)
        console.print(table, "")
    if entry.command or entry.kind in COMMANDS:
        console.print(f"[dim]try it:[/dim] {escape(command_of(entry))}", soft_wrap=True)


def _parameters(entry: Entry) -> dict[str, list[dict[str, Any]]]:
    """Tables of parameters by title; a graph model has its own and those of training."""
    from molgraph.api.catalogue import parameters
    from molgraph.base.registry import entry as find

    if entry.kind == "split":
        rows = [{"name": key, "default": value, "meaning": ""} for key, value in entry.value.params.items()]
        return {"Its parameters": rows} if rows else {}
    option = KINDS[entry.kind].option.format(name=entry.name) if entry.kind in KINDS else ""
    if not callable(entry.value):
        return {}
    sources = {f"Its own parameters  ({option})" if option else "Its own parameters": entry.value}
    if entry.kind == "encoder":
        sources["Training"] = find("method", GRAPH_METHOD).value
    return {
        title: [param._asdict() for param in params]
        for title, value in sources.items()
        if (params := [param for param in parameters(value) if param.name not in ("encoder", "params")])
    }


def _plain(entry: Entry) -> dict[str, Any]:
    from molgraph.api.catalogue import tags_of

    rows = [row for table in _parameters(entry).values() for row in table]
    line = dict(zip(LINE, entry.line, strict=True)) if entry.line else None
    plain = {name: getattr(entry, name) for name in ("name", "kind", "summary", "paper")}
    plain["system"] = ", ".join(card.id for card in entry.systems)
    plain |= {"tags": list(tags_of(entry)), "line": line}
    if entry.kind == "metric":
        direction = "higher" if entry.value.higher_is_better else "lower"
        plain |= {"direction": direction, "kinds": list(entry.value.kinds), "needs": entry.value.needs}
    return plain | {"parameters": {row["name"]: row["default"] for row in rows}}
