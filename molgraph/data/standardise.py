"""Standardise or check the molecules of a table; rows that cannot be read are marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from molgraph.base.contracts import Prediction
from molgraph.base.errors import AmbiguousColumnError
from molgraph.base.finite import NO_VALUE
from molgraph.base.packed import Packed
from molgraph.base.printable import count
from molgraph.base.table import NO_MOLECULE
from molgraph.chem.atom_order import Places, follow
from molgraph.chem.identity import reasons_of_none
from molgraph.chem.parallel import map_texts
from molgraph.chem.reaction import why_no_reaction
from molgraph.chem.smiles import why_unreadable
from molgraph.chem.standardise import preset as preset_of
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.levels import level_of
from molgraph.data.table import OK, UNREADABLE, Table

_LOST = "its atoms cannot be followed through the standardiser"


def standardise(table: Table, preset: str = "standard") -> Table:
    """Apply a standardiser preset to the molecule columns of a table.

    Args:
        table: any table.
        preset: ``none``, ``desalt``, ``standard`` or ``canonical``, with or without a version.

    Returns:
        The same rows in the same order; rows whose text the step could not read are ``unreadable``. Other entities than
        molecules stay as they are. Values of atoms and bonds follow them: those of removed ones are left out.

    Example:
        >>> from molgraph.data.table import make_table
        >>> standardise(make_table(["CC(=O)[O-].[Na+]"])).smiles[0]
        'CC(=O)O'
    """
    for place, column in enumerate(table.entities):
        if column.kind != "molecule":
            continue
        done = standardise_smiles(column.values, preset)
        bad = np.flatnonzero(done.reasons != "")
        changed = replace(column, values=done.values)
        entities = (*table.entities[:place], changed, *table.entities[place + 1 :])
        original, table = table, replace(table, entities=entities).with_status(bad, UNREADABLE, done.reasons[bad])
        if table.packed:
            table = _follow(original, table, preset)
    return table


def mark_no_molecules(table: Table, preset: str) -> Table:
    """Mark the rows that RDKit reads and that hold no molecule, so that nothing is predicted for them.

    ``none`` takes every text as it is, and models of version 1 of the other presets answer as they did.

    Args:
        table: standardised.
        preset: by which.

    Example:
        >>> from molgraph.data.table import make_table
        >>> found = mark_no_molecules(make_table(["CCO", "*CCO"]), "standard")
        >>> found.status.tolist(), found.reason[1]
        (['ok', 'not a molecule'], 'an open attachment point (*)')
    """
    if preset_of(preset).version < 2:
        return table
    for column in table.entities:
        if column.kind == "molecule":
            rows = np.flatnonzero(table.ok)
            reasons = np.array(reasons_of_none(column.values[rows]), dtype=object)
            table = table.with_status(rows[reasons != ""], NO_MOLECULE, reasons[reasons != ""])
    return table


def no_molecule_note(table: Table, preset: str) -> str:
    """A sentence on the rows of a standardised training table that hold no molecule; empty where there are none."""
    n = int((mark_no_molecules(table, preset).status == NO_MOLECULE).sum())
    what = f"{count(n, 'row')} of no molecule (open attachment points, nothing organic, bound metals)"
    return f"{what}: learnt as any other, but predict gives such rows no value" if n else ""


def as_given(prediction: Prediction, given: Table, clean: Table, preset: str) -> Prediction:
    """A prediction of standardised molecules as one of the molecules as they were given.

    Values of atoms and bonds come in the order of the given SMILES; those that the standardiser removed have none.
    """
    if not prediction.packed:
        return replace(prediction, inputs=given.inputs)
    level, row_places = level_of(prediction.targets), _places(given, clean, preset)
    status, reason, packed = prediction.status.copy(), prediction.reason.copy(), {}
    for name, column in prediction.packed.items():
        lists = column.lists()
        for row, places in row_places.items():
            if places is None:
                lists[row] = []
            elif len(lists[row]):
                out = np.full(getattr(places, f"n_{level}s"), np.nan)
                out[getattr(places, level)] = lists[row]
                lists[row] = out
        packed[name] = Packed.of(lists) if row_places else column
    for row, places in row_places.items():
        if places is None and status[row] == OK:
            status[row], reason[row] = NO_VALUE, _LOST
    return replace(prediction, inputs=given.inputs, packed=packed, status=status, reason=reason)


def _places(given: Table, clean: Table, preset: str) -> dict[int, Places | None]:
    """Where the atoms of the rows come from whose SMILES the standardiser changed; None where nobody knows.

    Where there are atoms in space or graphs, the values are theirs, which stay as they are.
    """
    row_places: dict[int, Places | None] = {}
    kinds = [e.kind for e in given.entities]
    if "molecule" not in kinds or {*kinds} & {"geometry", "graph"}:
        return row_places
    if kinds.count("molecule") > 1:
        raise AmbiguousColumnError("values of atoms or bonds need one column of molecules", hint="leave the others out")
    for row in np.flatnonzero(clean.ok & (given.smiles != clean.smiles)).tolist():
        result = follow(given.smiles[row], preset)
        row_places[row] = result[1] if result is not None and result[0] == clean.smiles[row] else None
    return row_places


def _follow(given: Table, clean: Table, preset: str) -> Table:
    """The standardised table with the values of its own atoms and bonds."""
    row_places = _places(given, clean, preset)
    if not row_places:
        return clean
    packed = {}
    for target in clean.targets:
        if target.level == "row":
            continue
        lists = clean.packed[target.name].lists()
        for row, places in row_places.items():
            lists[row] = lists[row][getattr(places, target.level)] if places is not None and len(lists[row]) else []
        packed[target.name] = Packed.of(lists)
    lost = np.array([row for row, places in row_places.items() if places is None], dtype=np.int64)
    return replace(clean, packed=packed).with_status(lost, UNREADABLE, np.full(len(lost), _LOST, dtype=object))


def check_molecules(table: Table) -> Table:
    """Parse every distinct molecule, or reaction, of the readable rows once.

    Example:
        >>> from molgraph.data.table import make_table
        >>> check_molecules(make_table(["CCO", "C(C"])).reason[1]
        'SMILES Parse Error: extra open parentheses while parsing: C(C (position 2)'
    """
    rows, of_reactions = np.flatnonzero(table.ok), [column.kind for column in table.entities] == ["reaction"]
    codes, texts = pd.factorize(table.entity("reaction" if of_reactions else "molecule").values[rows])
    check = reasons_of_reactions if of_reactions else reasons_of
    reasons = np.array(map_texts(check, list(texts), label="molecules"), dtype=object)
    if not len(reasons):
        return table
    row_reasons = reasons[codes]
    bad = row_reasons != ""
    return table.with_status(rows[bad], UNREADABLE, row_reasons[bad])


def reasons_of_reactions(texts: Sequence[str]) -> list[str]:
    """Why each text is no mapped reaction; empty where it is one."""
    return [why_no_reaction(text) for text in texts]


def reasons_of(texts: Sequence[str]) -> list[str]:
    """Why each text is no molecule; empty where it is one."""
    return [why_unreadable(text) for text in texts]
