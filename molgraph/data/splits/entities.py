"""The recipes ``cold-drug``, ``cold-protein`` and ``cold-both``: test pairs of drugs or proteins not in training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.base.errors import UsageError
from molgraph.base.table import EntityKind
from molgraph.data.splits.recipe import Grouping, Task, number, register_split
from molgraph.data.splits.structures import group_by_parent
from molgraph.data.table import Entities

PAPER = "Pahikkala et al. 2015, Brief. Bioinform. 16:325"


@register_split(
    "group",
    "cold-drug",
    "pairs: drugs kept whole, with all forms of a molecule",
    PAPER,
    grouped=True,
    params={"drug": None},
    asks="New drugs with proteins that training knows.",
)
def group_by_drug(task: Task) -> Grouping:
    """Group rows by the stereo-free parent of their drug, so that all forms of a molecule stay together.

    Settings: ``drug``, the name of a molecule column; the first one where not given.
    """
    return group_by_parent(task, _column(task, "drug", "molecule"))[0]


@register_split(
    "group",
    "cold-protein",
    "pairs: proteins kept whole",
    PAPER,
    grouped=True,
    params={"protein": None},
    asks="New proteins with drugs that training knows; a close relative of the protein may have trained.",
)
def group_by_protein(task: Task) -> Grouping:
    """Group rows by the letters of their protein, whatever their case and the blanks between them.

    Settings: ``protein``, the name of a sequence column; the first one where not given.
    """
    texts = _column(task, "protein", "sequence").values[task.rows]
    letters = ["".join(str(text).split()).upper().removesuffix("*") for text in texts]
    return Grouping(task.rows, number(np.array(letters, dtype=object)))


@register_split(
    "group",
    "cold-both",
    "pairs: both new; the fractions are of drugs and of proteins",
    PAPER,
    grouped=True,
    params={"drug": None, "protein": None},
    asks="New drugs with new proteins; pairs of a new one with a known one are left out.",
)
def group_by_both(task: Task) -> Grouping:
    """Group rows by drug and, a second time, by protein; settings of both."""
    drugs = group_by_drug(task)
    return replace(drugs, second=group_by_protein(replace(task, rows=drugs.rows)).group_of)


def _column(task: Task, setting: str, kind: EntityKind) -> Entities:
    name = task.params[setting]
    column = task.table.entity(kind) if name is None else task.table.column(name)
    if column.kind != kind:
        raise UsageError(f"the column {name!r} holds a {column.kind}, no {kind}", hint=f"name a {kind} column")
    return column
