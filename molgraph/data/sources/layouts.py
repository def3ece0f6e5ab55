"""Files of a dataset in, each layout by its name; a table out."""

from __future__ import annotations

from collections.abc import Callable

from molgraph.data.cards import Card
from molgraph.data.read import read_table
from molgraph.data.sources import builtin
from molgraph.data.sources.finding import Found
from molgraph.data.table import Table


def read_layout(card: Card, found: Found) -> Table:
    """Read a dataset's files as the layout of their place says."""
    return LAYOUTS[found.source.layout](card, found)


def _table(card: Card, found: Found) -> Table:
    """One table with a header: csv, csv.gz, parquet, sdf or smi."""
    return read_table(found.files["table"], smiles=found.source.smiles or card.smiles, targets=card.targets or None)


def _builtin(card: Card, found: Found) -> Table:
    return builtin.load(found.source.files["table"])


LAYOUTS: dict[str, Callable[[Card, Found], Table]] = {"table": _table, "builtin": _builtin}
