"""A dataset's name in; its table, checked against its card, out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError, UsageError, nearest
from molgraph.data.cards import Card, card
from molgraph.data.content import content_hash
from molgraph.data.sources.finding import Found, find
from molgraph.data.sources.layouts import read_layout
from molgraph.data.table import Table

RAW = "raw"


@dataclass(frozen=True)
class Dataset:
    """A dataset as loaded.

    Args:
        card: what is known about it.
        edition: ``raw``, a curated one (``c1``), or the word of a place whose content is another one.
        table: the rows; ids are row numbers of the source file, from 0, as text.
        hash: sha256 of the table's content, see ``content_hash``.
        origin: where the files were found.
        verified: whether the content's hash stands on the card.
        taken_out: a row for each that a curated edition took out or merged: id, smiles, action, reason, kept_as.
    """

    card: Card
    edition: str
    table: Table
    hash: str
    origin: str = ""
    verified: bool = True
    taken_out: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["id", "smiles", "action", "reason"]))

    @property
    def name(self) -> str:
        """The name with the edition, where that is not the raw one: ``bbbp@c1``."""
        return self.card.name if self.edition == RAW else f"{self.card.name}@{self.edition}"

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        mark = "" if self.verified else ", unverified"
        return f"Dataset {self.name}: {len(self):,} rows, {self.card.task}, hash {self.hash[:12]}{mark}\n{self.table!r}"

    def _repr_html_(self) -> str:
        return self.card._repr_html_() + self.table.to_frame().head()._repr_html_()


def load_dataset(name: str) -> Dataset:
    """Load a dataset by its card's name, from MOLGRAPH_DATA, the cache, the network, or inside the rdkit package.

    Args:
        name: such as ``esol``; ``bbbp@c1`` is a curated edition.

    Returns:
        The dataset; every row of the file is one of its table, unreadable ones with a reason.

    Raises:
        UsageError: no dataset or edition of that name.
        DataError: a file or content whose hash is not the card's; both hashes are named.
        StorageError: it is not here and cannot be had; the hint says what to do.

    Example:
        >>> data = load_dataset("chembl2321810")
        >>> len(data), data.card.metric, data.verified
        (1017, 'rmse', True)
    """
    known = card(name)
    edition = name.partition("@")[2].strip().lower() or RAW
    places = {s.edition for s in known.source}
    if edition not in {RAW, *places, *known.edition}:
        raise UsageError(
            f"{known.name} has no edition {edition!r}", hint=nearest(edition, sorted({RAW, *places, *known.edition}))
        )
    raw = _load(known, find(known, edition if edition in places else None))
    return raw if edition == RAW or edition in places else curated(raw, edition)


def curated(raw: Dataset, edition: str) -> Dataset:
    """A curated edition of a raw one, checked against the card."""
    from molgraph.data.editions import curate

    stated = raw.card.edition[edition]
    made = curate(raw.table, stated.rule)
    found = content_hash(made.table)
    _check_content(f"{raw.card.name}@{edition}", stated.hash, found)
    return replace(raw, edition=edition, table=made.table, hash=found, taken_out=made.taken_out)


def _load(known: Card, found: Found) -> Dataset:
    table = keep_rows(known, read_layout(known, found))
    digest = content_hash(table)
    edition = found.source.edition
    stated = known.hash if edition == RAW else found.content or known.hash
    if edition == RAW:
        _check_content(known.name, known.hash, digest)
    verified = edition == RAW and known.verified
    return Dataset(known, edition, table, digest, found.origin, verified or stated == digest)


def keep_rows(known: Card, table: Table) -> Table:
    """The rows that a card keeps, with row numbers of the source file as ids."""
    if known.source[0].place != "rdkit":
        table = replace(table, ids=np.array([str(i) for i in range(len(table))], dtype=object))
    if known.keep == "measured" and table.y is not None:
        table = table.take(~np.isnan(table.y).all(axis=1))
    return table


def _check_content(name: str, stated: str, found: str) -> None:
    if stated not in ("unverified", found):
        raise DataError(
            f"{name} is not what its card says: content hash {found}, the card has {stated}",
            hint="the files differ from those that the card was written from; `molgraph data info` names them",
        )


def datasets() -> pd.DataFrame:
    """All datasets that have a card: one row each, with task, rows, metric, split, grade and where it is found.

    Example:
        >>> frame = datasets()
        >>> frame.loc["esol", "metric"]
        'rmse'
    """
    from molgraph.data.cards import card_names
    from molgraph.data.sources.finding import whereabouts

    rows: list[dict[str, Any]] = []
    for name in card_names():
        one = card(name)
        rows.append(
            {
                "name": name,
                "title": one.title,
                "collection": one.collection,
                "task": one.task,
                "rows": one.rows,
                "metric": one.metric,
                "split": one.split,
                "grade": one.grade,
                "found": whereabouts(one),
            }
        )
    return pd.DataFrame(rows).set_index("name")
