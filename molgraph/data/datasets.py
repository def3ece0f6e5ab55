"""Load datasets by name, checked against their cards."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError, MismatchError, UnknownNameError, nearest
from molgraph.data.card_parts import UNVERIFIED
from molgraph.data.cards import Card, card, card_names
from molgraph.data.content import content_hash
from molgraph.data.curate import curate
from molgraph.data.featurize import rdkit_version
from molgraph.data.sources.dataset_files import (
    DOWNLOAD,
    Found,
    find,
    forget,
    record_content,
    recorded_content,
    whereabouts,
)
from molgraph.data.sources.layouts import read_layout
from molgraph.data.table import Table

logger = logging.getLogger("molgraph")
RAW = "raw"
COLLECTIONS = ("MoleculeNet", "ADME", "TU", "drug-target", "protein-protein", "generation", "built-in")


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
        UnknownNameError: no dataset or edition of that name.
        MismatchError: a file or content whose hash is not the card's; both hashes are named.
        StorageError: it is not here and cannot be had; the hint says what to do.

    Example:
        >>> data = load_dataset("chembl2321810")
        >>> len(data), data.card.metric, data.verified
        (1017, 'rmse', True)
    """
    its_card = card(name)
    edition = name.partition("@")[2].strip().lower() or RAW
    editions = edition_names(its_card)
    if edition not in editions:
        raise UnknownNameError(f"{its_card.name} has no edition {edition!r}", hint=nearest(edition, editions))
    if edition in its_card.edition:
        return curated(_load(its_card, find(its_card)), edition)
    return _load(its_card, find(its_card, edition))


def edition_names(card: Card) -> list[str]:
    """The editions of a dataset: ``raw``, those of its places, curated ones, and ``download`` where it has an address.

    Example:
        >>> edition_names(card("chembl2321810"))[0]
        'raw'
    """
    outside = [DOWNLOAD] if any(s.place not in ("data", "rdkit") for s in card.source) else []
    return list(dict.fromkeys([RAW, *(s.edition for s in card.source), *card.edition, *outside]))


def curated(raw: Dataset, name: str) -> Dataset:
    """A curated edition of a raw one, checked against the card.

    Another version of rdkit may write some molecule otherwise: then the edition is good, but unverified, and no
    board shows it beside the verified one.
    """
    stated = raw.card.edition[name]
    edition = curate(raw.table, name, tolerance=raw.card.tolerances)
    digest = content_hash(edition.table)
    if stated.rdkit == rdkit_version():
        _check_content(f"{raw.card.name}@{name}", stated.hash, digest, "the card has")
    elif digest != stated.hash:
        logger.warning(
            "%s@%s is unverified: rdkit %s makes other content of it (%s) than rdkit %s did (%s on the card)",
            *(raw.card.name, name, rdkit_version(), digest[:12], stated.rdkit, stated.hash[:12]),
        )
    verified = raw.verified and digest == stated.hash
    return replace(raw, edition=name, table=edition.table, hash=digest, verified=verified, taken_out=edition.taken_out)


def _load(card: Card, copy: Found) -> Dataset:
    """The dataset of some files; of those that came just now, what cannot be read as it is not kept."""
    try:
        return _read(card, copy)
    except DataError as error:
        if not copy.fresh:
            raise
        forget(card, copy.source)
        addresses = ", ".join(copy.source.files.values())
        again = f"what {addresses} gave is not kept; fetch it again: molgraph data get {card.name}"
        raise type(error)(error.message, hint="\n".join(filter(None, (error.hint, again)))) from None


def _read(card: Card, copy: Found) -> Dataset:
    edition, table = copy.source.edition, keep_rows(card, read_layout(card, copy))
    digest, stated = content_hash(table), card.hash if edition == RAW else copy.source.hash
    name = card.name if edition == RAW else f"{card.name}@{edition}"
    if edition != DOWNLOAD or stated == UNVERIFIED:
        _check_content(name, stated, digest, "the card has")
    verified = digest in (stated, card.hash)
    if not verified and copy.source.place != "data":
        _check_content(name, recorded_content(card, edition) or UNVERIFIED, digest, "its first load had")
        record_content(card, edition, digest)
    return Dataset(card, edition, table, digest, copy.origin, verified)


def keep_rows(card: Card, table: Table) -> Table:
    """The rows that a card keeps, with row numbers of the source file as ids."""
    if card.source[0].place != "rdkit":
        table = replace(table, ids=np.array([str(i) for i in range(len(table))], dtype=object))
    if card.keep == "measured" and table.y is not None:
        table = table.take(~np.isnan(table.y).all(axis=1))
    return table


def _check_content(name: str, stated: str, digest: str, witness: str) -> None:
    if stated not in (UNVERIFIED, digest):
        raise MismatchError(
            f"{name} is not what it should be: the hash of its content is {digest}, {witness} {stated}",
            hint=f"`molgraph data info {name.partition('@')[0]}` says where the card's files come from; what an "
            f"address gives now, whatever it is, loads as {name.partition('@')[0]}@{DOWNLOAD}",
        )


def datasets() -> pd.DataFrame:
    """All datasets that have a card: one row each, with task, rows, metric, split, grade and where it is found.

    Example:
        >>> frame = datasets()
        >>> frame.loc["esol", "metric"]
        'rmse'
    """
    columns = ("name", "title", "collection", "task", "rows", "metric", "split", "grade")
    cards = map(card, card_names())
    frame = pd.DataFrame([{c: getattr(one, c) for c in columns} | {"found": whereabouts(one)} for one in cards])
    place = frame["collection"].map({word: i for i, word in enumerate(COLLECTIONS)}).fillna(len(COLLECTIONS))
    return frame.assign(place=place).sort_values(["place", "name"]).drop(columns="place").set_index("name")
