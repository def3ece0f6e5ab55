"""``molgraph systems``: list the published methods that are implemented, each with its file and an example command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from molgraph.cli.options import AsJson

if TYPE_CHECKING:
    from molgraph.api.catalogue import System

PAGE = """# The systems of the literature that are built

Generated from the registry by `make systems`; a test compares it with the registry. Each command shows its system
working on a public dataset; `molgraph models NAME` has its parameters.
"""


def systems(
    search: Annotated[str | None, typer.Argument(help="Words in system, name, file or paper.", metavar="WORDS")] = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option(help="Print docs/systems.md: those of molgraph itself.")] = False,
) -> None:
    """List the systems of the literature that are built.

    Each has the file that it stands in, its paper, and a command that shows
    it working on a public dataset. Plug-ins' own are listed too.

    Examples:
        molgraph systems
        molgraph systems schnet
        molgraph systems --json
    """
    from molgraph.api.catalogue import systems as every
    from molgraph.base.errors import UsageError, nearest

    found = [each for each in every() if all(word in " ".join(each).lower() for word in (search or "").lower().split())]
    if not found:
        raise UsageError(f"no system has {search!r}", hint=nearest(str(search), [each.system for each in every()]))
    if as_json:
        print(json.dumps([each._asdict() for each in found], indent=2))
    elif markdown:
        print(page(found), end="")
    else:
        for each in found:
            print(f"{each.system}  ({each.kind} {each.name}, {each.place})\n  {each.paper}\n  {each.command}")


def page(found: list[System]) -> str:
    """The page docs/systems.md."""
    rows = ["| system | kind | name | file | paper | shown by |", "|---|---|---|---|---|---|"]
    for each in found:
        if each.place.startswith("molgraph/"):
            place = f"[{each.place}](../{each.place})"
            rows.append(f"| {each.system} | {each.kind} | {each.name} | {place} | {each.paper} | `{each.command}` |")
    return PAGE + "\n" + "\n".join(rows) + "\n"
