"""A card in; the files of its dataset, found and checked, out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from molgraph.base.errors import DataError, StorageError
from molgraph.base.paths import cache_dir, data_dir, storage_error
from molgraph.data.cards import UNVERIFIED, Card, Source


@dataclass(frozen=True)
class Found:
    """Where a dataset is.

    Args:
        source: the card's place that has it.
        files: what each file is -> its path.
        origin: the place in words.
        content: the content hash that an earlier load recorded, or empty.
    """

    source: Source
    files: Mapping[str, Path] = field(default_factory=dict)
    origin: str = ""
    content: str = ""


def find(card: Card, edition: str | None = None) -> Found:
    """Find a dataset's files: in MOLGRAPH_DATA, in the cache, else by download; those inside rdkit are always there.

    Args:
        card: the dataset's card.
        edition: the word of the places to look at; None looks at all of them, in the card's order.

    Raises:
        DataError: a file has another sha256 than the card says.
        StorageError: it is nowhere.
    """
    places = [s for s in card.source if edition in (None, s.edition)]
    for source in places:
        if source.place == "rdkit":
            return Found(source, origin="the rdkit package")
        if source.place == "data" and (files := _in_data(source)):
            _check(card, source, files)
            return Found(source, files, "MOLGRAPH_DATA")
    raise StorageError(f"{card.name} is not here", hint=advice(card))


def advice(card: Card) -> str:
    """What to do where a dataset is not here."""
    lines = []
    if any(s.place == "data" for s in card.source):
        lines.append("set MOLGRAPH_DATA to a folder that has it")
    if any(s.place == "url" for s in card.source):
        lines.append(f"or download it: molgraph data get {card.name}")
    return "\n".join([*lines, "no network needed: chembl2321810, nci"])


def whereabouts(card: Card) -> str:
    """In a word: ``built in``, ``here``, ``cache``, ``download`` or ``unverified``."""
    for source in card.source:
        if source.place == "rdkit":
            return "built in"
        if source.place == "data" and _in_data(source):
            return "here"
    return "download" if card.verified else UNVERIFIED


def datasets_cache() -> Path:
    """The folder of downloaded datasets."""
    return cache_dir() / "datasets"


def sha256_of(path: Path) -> str:
    """sha256 of a file's bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise storage_error(f"cannot read {path}", error) from error


def _in_data(source: Source) -> dict[str, Path] | None:
    """The files below MOLGRAPH_DATA, or None where one of them is missing."""
    folder = data_dir()
    files = {} if folder is None else {role: folder / name for role, name in source.files.items()}
    return files if files and all(path.is_file() for path in files.values()) else None


def _check(card: Card, source: Source, files: Mapping[str, Path]) -> None:
    for role, path in files.items():
        stated = source.sha256.get(role, UNVERIFIED)
        if stated != UNVERIFIED and (found := sha256_of(path)) != stated:
            raise DataError(
                f"{path} is not the file of {card.name}'s card: its sha256 is {found}, the card has {stated}",
                hint="copy or download the file again; the board refuses data that nobody has checked",
            )
