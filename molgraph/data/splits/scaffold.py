"""The scaffold recipes ``balanced``, ``generic`` and ``stratified``: molecules of one Murcko scaffold stay together."""

from __future__ import annotations

import numpy as np

from molgraph.base.registry import alias
from molgraph.chem.scaffold import scaffolds
from molgraph.data.splits.recipe import Grouping, Task, number, register_split
from molgraph.data.splits.structures import group_by_parent

PAPER = "Bemis and Murcko 1996, J. Med. Chem. 39:2887"


@register_split(
    "group",
    "scaffold/balanced",
    "Murcko scaffolds kept whole, large ones in train, the rest at random",
    PAPER,
    balanced=True,
    grouped=True,
    asks="New scaffolds of the same collection; large series always train, so small ones are tested.",
)
@register_split(
    "group",
    "scaffold/stratified",
    "Murcko scaffolds whole, every class shared out evenly",
    PAPER,
    stratified=True,
    grouped=True,
    asks="New scaffolds of the same collection, large series too, with molecules of every class in each part.",
)
def group_by_scaffold(task: Task, generic: bool = False) -> Grouping:
    """Group rows by the scaffold of the stereo-free parent; an acyclic molecule has none and is a group of its own."""
    forms, parents = group_by_parent(task)
    found = scaffolds(parents, generic=generic)
    keys, failed = found.values, found.reasons != ""
    acyclic = np.array([not key for key in keys], dtype=bool)
    keys[acyclic] = [f"acyclic {parent}" for parent in parents[acyclic]]
    lost = failed[forms.group_of]  # a parent whose scaffold takes too long
    left_out = dict(forms.left_out) | {
        int(row): str(found.reasons[group]) for row, group in zip(forms.rows[lost], forms.group_of[lost], strict=True)
    }
    return Grouping(forms.rows[~lost], number(keys[forms.group_of[~lost]]), left_out)


@register_split(
    "group",
    "scaffold/generic",
    "generic Murcko frameworks kept whole, large ones in train, the rest at random",
    PAPER,
    balanced=True,
    grouped=True,
    asks="New ring frameworks, whatever their atoms; large series always train.",
)
def _group_by_framework(task: Task) -> Grouping:
    return group_by_scaffold(task, generic=True)


alias("split", "scaffold", "scaffold/balanced")
