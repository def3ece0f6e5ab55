"""Split pairs or complexes into sides: tables of the same rows with the ligand alone or the protein alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from molgraph.data.graph_values import Geometry
from molgraph.data.table import Entities, Table

LIGAND, PROTEIN = "ligand", "protein"
OF_KIND = {"molecule": LIGAND, "sequence": PROTEIN}


@dataclass(frozen=True)
class Side:
    """One side of a pair, such as the ligand.

    Args:
        name: ``ligand`` or ``protein``; of two columns of one kind the column's name.
        other: the name of what the side lacks.
        columns: the entity columns that it reads.
        complexes: those of the columns whose values are complexes, of which the side's own atoms are read.
    """

    name: str
    other: str
    columns: tuple[str, ...]
    complexes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Its row in a table of scores, such as ``ligand alone``."""
        return f"{self.name} alone"

    def of(self, table: Table) -> Table:
        """The same rows with the side's columns alone, in the table's order, and with its own atoms of complexes.

        Targets, weights and columns of features stay as they are.
        """
        kept = [self._cut(entity) for entity in table.entities if entity.name in self.columns]
        return replace(table, entities=tuple(kept))

    def _cut(self, entity: Entities) -> Entities:
        if entity.name not in self.complexes:
            return entity
        values = np.empty(len(entity.values), dtype=object)
        protein = self.name == PROTEIN
        values[:] = [v.part(protein) if isinstance(v, Geometry) else v for v in entity.values]
        return replace(entity, values=values)


def sides_of(table: Table, columns: Sequence[str] | None = None) -> tuple[Side, ...]:
    """The sides of a table's rows; none where a row is one thing, such as a molecule.

    Molecules, and the atoms of a complex that belong to no residue, are the ligand; sequences and the residues of a
    complex are the protein. Two columns of one kind, or of graphs, are a side each.

    Args:
        table: its rows.
        columns: the entity columns that a model reads; None for all.

    Example:
        >>> from molgraph.data.read import read_table
        >>> pairs = read_table({"drug": ["CCO"], "target": ["MKT"]}, smiles="drug", sequence="target")
        >>> [(side.title, side.other, side.columns) for side in sides_of(pairs)]
        [('ligand alone', 'protein', ('drug',)), ('protein alone', 'ligand', ('target',))]
    """
    entities = [entity for entity in table.entities if columns is None or entity.name in columns]
    by_role: dict[str, list[str]] = {LIGAND: [], PROTEIN: []}
    whole = []
    for entity in entities:
        roles = _roles(entity)
        whole += [entity.name] * (len(roles) > 1)
        for role in roles:
            by_role[role].append(entity.name)
    if all(by_role.values()) and not any(entity.kind == "graph" for entity in entities):
        ends = ((LIGAND, PROTEIN), (PROTEIN, LIGAND))
        return tuple(Side(role, other, tuple(by_role[role]), tuple(whole)) for role, other in ends)
    names = [entity.name for entity in entities]
    if len(names) < 2:
        return ()
    return tuple(Side(name, " and ".join(n for n in names if n != name), (name,)) for name in names)


def lacking(value: Any) -> str:
    """The side of a complex that a geometry lacks, ``ligand`` or ``protein``; empty where it has both, or is none.

    Example:
        >>> from molgraph.data.featurize_complex import SERINE
        >>> lacking(SERINE), lacking(SERINE.part(protein=True)), lacking(SERINE.part(protein=False))
        ('', 'ligand', 'protein')
    """
    if not isinstance(value, Geometry):
        return ""
    of_protein = np.zeros(1, bool) if value.residue is None else np.asarray(value.residue) > 0
    return PROTEIN if not of_protein.any() else LIGAND * bool(of_protein.all())


def of_complexes(values: Iterable[Any]) -> bool:
    """Whether most geometries of a column are complexes of a ligand and a protein."""
    whole = [not lacking(value) for value in values if isinstance(value, Geometry)]
    return sum(whole) > len(whole) / 2


def _roles(entity: Entities) -> tuple[str, ...]:
    if entity.kind != "geometry":
        return (OF_KIND.get(entity.kind, LIGAND),)
    residues = [v.residue for v in entity.values if isinstance(v, Geometry)]
    ligand = any(values is None or (np.asarray(values) == 0).any() for values in residues)
    protein = any(values is not None and (np.asarray(values) > 0).any() for values in residues)
    return (LIGAND,) * (ligand or not protein) + (PROTEIN,) * protein
