"""Mark rows whose molecules cannot be read, and write the targets of a fitted method as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from molgraph.base.contracts import Method, Target
from molgraph.base.errors import NotFittedError
from molgraph.data.standardise import check_molecules
from molgraph.data.table import Table


def described(method: Method, targets: Sequence[Target], unlearned: Mapping[str, str]) -> dict[str, Any]:
    """A method's parameters and targets as JSON values, without a folder of this machine.

    A target's level is left out where it is that of rows, as in files of 0.1.
    """
    params = method.get_params()
    listed = [
        {"name": t.name, "kind": t.kind, "classes": list(t.classes), "bounds": t.bounds}
        | ({} if t.level == "row" else {"level": t.level})
        for t in targets
    ]
    return {
        "params": params | ({"store": None} if "store" in params else {}),
        "targets": listed,
        "unlearned": unlearned,
    }


def checked(table: Table) -> Table:
    """The same rows; those with a molecule that cannot be read are marked, with the reason.

    Example:
        >>> from molgraph.data.table import make_table
        >>> checked(make_table(["C", "C(C"])).status.tolist()
        ['ok', 'unreadable']
    """
    for column in table.entities:
        if column.kind == "molecule":
            molecules = check_molecules(replace(table, entities=(column,)))
            table = replace(table, status=molecules.status, reason=molecules.reason)
    return table


def whole(method: Method) -> Any:
    """What a method's ``fit`` left; raises ``NotFittedError`` before it."""
    if not hasattr(method, "_fitted"):
        raise NotFittedError("this method has not been fitted", hint="call fit(table) first")
    return method._fitted
