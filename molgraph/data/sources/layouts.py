"""Read the files of a dataset as a table, each layout by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from molgraph.base.errors import DataError
from molgraph.data.cards import Card
from molgraph.data.cells import Reading
from molgraph.data.sources import builtin
from molgraph.data.sources.dataset_files import Found
from molgraph.data.sources.geometries import read_npz
from molgraph.data.sources.graph_files import read_dgcnn, read_tu
from molgraph.data.sources.pairs import read_deepdta
from molgraph.data.sources.pyg import read_pyg
from molgraph.data.table import Table
from molgraph.data.table_reader import read_rows

PARTS = ("valid", "test")


def read_layout(card: Card, found: Found) -> Table:
    """Read a dataset's files as the layout of their place says."""
    return LAYOUTS[found.source.layout](card, found)


def _table(card: Card, found: Found) -> Table:
    """One table with a header (csv, csv.gz, parquet) or a list of SMILES; files of row numbers say its parts."""
    table = _read(card, found, found.files["table"])
    words = np.full(len(table), "train", dtype=object)
    for part in PARTS:
        if part in found.files:
            words[_row_numbers(found.files[part], len(table))] = part
    return replace(table, split=words) if set(PARTS) & set(found.files) else table


def _joined(card: Card, found: Found) -> Table:
    """Several tables, one after another in the card's order; each file's role is its rows' part."""
    tables = {role: _read(card, found, path) for role, path in found.files.items()}
    first, *rest = tables.values()
    entity = first.entity("molecule")
    ids = np.array([str(i) for i in range(sum(map(len, tables.values())))], dtype=object)
    values = np.concatenate([table.smiles for table in tables.values()])
    return Table(
        ids,
        (replace(entity, values=values),),
        np.concatenate([table.status for table in tables.values()]),
        np.concatenate([table.reason for table in tables.values()]),
        first.targets,
        None if first.y is None else np.concatenate([first.y, *(table.y for table in rest)]),
        split=np.concatenate([np.full(len(table), role, dtype=object) for role, table in tables.items()]),
    )


def _read(card: Card, found: Found, path: Path) -> Table:
    """One file's molecules and targets; a target that stands in a column of another name is renamed."""
    named = {t.name: replace(t, name=found.source.columns.get(t.name, t.name)) for t in card.targets}
    smiles = found.source.smiles or card.smiles or None
    (rows,) = read_rows(path, Reading(), smiles=smiles, targets=tuple(named.values()) or None)
    # one published file has a line break inside each cell
    texts = np.array([text.strip("\r\n") for text in rows.table.smiles], dtype=object)
    return replace(rows.table.with_smiles(texts), targets=card.targets, split=None)


def _row_numbers(path: Path, n: int) -> np.ndarray:
    try:
        rows = np.array(path.read_text(encoding="utf-8").split(), dtype=np.int64)
    except ValueError as error:
        raise DataError(f"{path.name} is no list of row numbers: {error}", hint="download it again") from None
    if len(rows) and (rows.min() < 0 or rows.max() >= n):
        raise DataError(f"{path.name} names row {rows.max()}, the table has {n}")
    return rows


def _tu(card: Card, found: Found) -> Table:
    return read_tu(found.files["zip"], found.source.member, card.targets[0])


def _dgcnn(card: Card, found: Found) -> Table:
    return read_dgcnn(found.files["zip"], found.source.member, card.targets[0])


def _deepdta(card: Card, found: Found) -> Table:
    return read_deepdta(found.files, card.targets[0], molar="log10" in card.units[card.targets[0].name])


def _npz(card: Card, found: Found) -> Table:
    return read_npz(found.files["npz"], card.targets, found.source.columns)


def _builtin(card: Card, found: Found) -> Table:
    return builtin.load(found.source.files["table"])


LAYOUTS: dict[str, Callable[[Card, Found], Table]] = {
    "table": _table,
    "joined": _joined,
    "tu": _tu,
    "dgcnn": _dgcnn,
    "deepdta": _deepdta,
    "npz": _npz,
    "builtin": _builtin,
    "pyg": read_pyg,
}
