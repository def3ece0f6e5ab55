"""Split rows by groups that stay whole: all forms of a molecule, scaffolds, clusters, drugs or proteins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.base.errors import BadValueError
from molgraph.base.registry import alias
from molgraph.base.table import EntityKind
from molgraph.chem.cluster import cluster_butina
from molgraph.chem.fingerprints import morgan
from molgraph.chem.scaffold import scaffolds
from molgraph.data.splits.splitter import Grouping, Task, number, register_split
from molgraph.data.splits.structures import geometry_key, group_by_parent, reaction_keys, reasons_by_row
from molgraph.data.table import Entities

MURCKO = "Bemis and Murcko 1996, J. Med. Chem. 39:2887"
PAIRS = "Pahikkala et al. 2015, Brief. Bioinform. 16:325"
MOST_BITS, MOST_RADIUS = 2**16, 100


@register_split(
    "group",
    "random",
    "rows at random, grouped by stereo-free parent",
    grouped=True,
    asks="New molecules of the same collection: near relatives of a tested molecule may have trained.",
)
@register_split(
    "group",
    "random/stratified",
    "rows at random, every class shared out evenly",
    stratified=True,
    grouped=True,
    asks="New molecules of the same collection, of every class as many as its share.",
)
def group_randomly(task: Task) -> Grouping:
    """Group rows by stereo-free parent; in a table without a lone molecule column, by their tuple of entities.

    Conformers of a molecule are one entity; graphs, and geometries whose bonds cannot be told, are each their own.
    """
    if [e.kind for e in task.table.entities] == ["molecule"]:
        return group_by_parent(task)[0]
    columns = [
        reaction_keys(e.values[task.rows]) if e.kind == "reaction" else e.values[task.rows] for e in task.table.entities
    ]
    keys = [
        tuple(v if isinstance(v, str) else geometry_key(v) or id(v) for v in row) for row in zip(*columns, strict=True)
    ]
    return Grouping(task.rows, number(keys))


@register_split(
    "group",
    "random/frames",
    "each row by itself at random: frames of a trajectory",
    asks="New frames of the molecules that trained, close to frames that trained: nothing is asked of other molecules.",
)
def group_by_row(task: Task) -> Grouping:
    """Every row a group of its own, where all rows are geometries of one molecule or of few."""
    return Grouping(task.rows, np.arange(len(task.rows)))


@register_split(
    "group",
    "scaffold/balanced",
    "Murcko scaffolds kept whole, large ones in train, the rest at random",
    MURCKO,
    balanced=True,
    grouped=True,
    asks="New scaffolds of the same collection; large series always train, so small ones are tested.",
)
@register_split(
    "group",
    "scaffold/stratified",
    "Murcko scaffolds whole, every class shared out evenly",
    MURCKO,
    stratified=True,
    grouped=True,
    asks="New scaffolds of the same collection, large series too, with molecules of every class in each part.",
)
def group_by_scaffold(task: Task, generic: bool = False) -> Grouping:
    """Group rows by the scaffold of the stereo-free parent; an acyclic molecule has none and is a group of its own."""
    forms, parents = group_by_parent(task)
    murcko = scaffolds(parents, generic=generic)
    keys = np.array([key or f"acyclic {parent}" for key, parent in zip(murcko.values, parents, strict=True)], object)
    reasons = murcko.reasons[forms.group_of]  # of a parent whose scaffold takes too long
    use = reasons == ""
    left_out = {**forms.left_out, **reasons_by_row(forms.rows, reasons)}
    return Grouping(forms.rows[use], number(keys[forms.group_of[use]]), left_out)


@register_split(
    "group",
    "scaffold/generic",
    "generic Murcko frameworks kept whole, large ones in train, the rest at random",
    MURCKO,
    balanced=True,
    grouped=True,
    asks="New ring frameworks, whatever their atoms; large series always train.",
)
def _group_by_framework(task: Task) -> Grouping:
    return group_by_scaffold(task, generic=True)


alias("split", "scaffold", "scaffold/balanced")


@register_split(
    "group",
    "cluster/butina",
    "Taylor-Butina clusters kept whole, large ones in train, the rest at random",
    "Butina 1999, J. Chem. Inf. Comput. Sci. 39:747",
    balanced=True,
    grouped=True,
    params={"similarity": 0.4, "radius": 2, "n_bits": 2048},
    asks="New clusters: molecules that resemble no centre of a cluster that trained.",
)
def group_by_cluster(task: Task) -> Grouping:
    """One group a Taylor-Butina cluster of the stereo-free parents' Morgan fingerprints.

    Settings: ``similarity``, least Tanimoto similarity to the cluster's centre; ``radius`` and ``n_bits`` of the
    fingerprint. Members resemble their centre; two molecules of different clusters may still resemble each other.
    """
    similarity, radius, n_bits = (task.params[name] for name in ("similarity", "radius", "n_bits"))
    if not 0 < similarity <= 1:
        raise BadValueError(f"similarity is {similarity}", hint="give more than 0 and up to 1, such as 0.4")
    if n_bits % 8 or not 8 <= n_bits <= MOST_BITS:
        raise BadValueError(f"n_bits is {n_bits}", hint=f"give a multiple of 8 up to {MOST_BITS:,}, such as 2048")
    if not 0 <= radius <= MOST_RADIUS:
        raise BadValueError(f"radius is {radius}", hint=f"give 0 to {MOST_RADIUS}, such as 2")
    forms, parents = group_by_parent(task)
    prints = morgan(list(parents), radius=radius, n_bits=n_bits)
    return replace(forms, group_of=cluster_butina(prints.x, similarity)[forms.group_of])


@register_split(
    "group",
    "cold-drug",
    "pairs: drugs kept whole, with all forms of a molecule",
    PAIRS,
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
    PAIRS,
    grouped=True,
    params={"protein": None},
    asks="New proteins with drugs that training knows; a close relative of the protein may have trained.",
)
def group_by_protein(task: Task) -> Grouping:
    """Group rows by the letters of their protein, whatever their case and the blanks between them.

    Settings: ``protein``, the name of a sequence column; the first one where not given.
    """
    texts = _column(task, "protein", "sequence").values[task.rows]
    return Grouping(task.rows, number("".join(str(text).split()).upper().removesuffix("*") for text in texts))


@register_split(
    "group",
    "cold-both",
    "pairs: both new; the fractions are of drugs and of proteins",
    PAIRS,
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
        raise BadValueError(f"the column {name!r} holds a {column.kind}, no {kind}", hint=f"name a {kind} column")
    return column
