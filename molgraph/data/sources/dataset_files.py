"""Find or download the files of a dataset, check them, and record the hashes of their first time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from molgraph.base.errors import CannotReadError, DataError, MismatchError, MissingFileError, StorageError
from molgraph.base.paths import atomic_write, cache_dir, data_dir, expanded
from molgraph.data.card_parts import UNVERIFIED, Source
from molgraph.data.cards import Card
from molgraph.data.sources.download import download, sha256_of

DOWNLOAD = "download"
"""The edition of a dataset that is what its address gives, whatever the card says of its content."""
BUILT_IN = "chembl2321810, nci"
ORIGINS = {
    "built in": "the rdkit package",
    "here": "MOLGRAPH_DATA",
    "cache": "the cache",
    "deepchem": "DeepChem's data folder",
}
DEEPCHEM = "deepchemdata"  # in the addresses whose files DeepChem's own loaders keep by their last name
RECORD = "downloads.json"


@dataclass(frozen=True)
class Found:
    """Where a dataset is."""

    source: Source  # the card's place that has it
    files: Mapping[str, Path] = field(default_factory=dict)  # what each file is -> its path
    origin: str = ""  # the place in words
    fresh: bool = False  # whether the files were downloaded just now


def find(card: Card, edition: str = "raw") -> Found:
    """Find a dataset's files: in MOLGRAPH_DATA, in the cache, or by download."""
    sources = places(card, edition)
    for source in sources:
        if (files := look(card, source)) is not None:
            return files
    for source in sources:
        if source.place == "url":
            try:
                return Found(source, fetch(card, source), "the cache", fresh=True)
            except StorageError as error:
                raise type(error)(f"{card.name} is not here, and {error.message}", hint=advice(card, error)) from None
    raise MissingFileError(f"{card.name} is not here", hint=advice(card))


def places(card: Card, edition: str = "raw") -> list[Source]:
    """The places that have an edition, in the card's order; ``download`` is what any of its addresses gives."""
    if edition == DOWNLOAD:
        from_outside = [s for s in card.source if s.edition == "raw" and s.place not in ("data", "rdkit")]
        return [s.model_copy(update={"edition": DOWNLOAD}) for s in from_outside]
    return [s for s in card.source if s.edition == edition]


def look(card: Card, source: Source) -> Found | None:
    """A place's files where they are on this machine, checked; nothing is downloaded."""
    word, files = _here(card, source)
    again = "copy or download the file again; no board takes data that nobody has checked"
    if word == "cache":
        again = f"remove {folder_of(card)} and fetch it again: molgraph data get {card.name}"
    for role, path in files.items():
        _check(card, source, role, path, hint=again, recorded=word == "cache")
    return Found(source, files, ORIGINS[word]) if word else None


def _here(card: Card, source: Source) -> tuple[str, dict[str, Path]]:
    """Where a place's files are on this machine, in a word (empty: nowhere), and the files; nothing is hashed."""
    if source.place == "rdkit":
        return "built in", {}
    if source.place == "data":
        files = _below(data_dir(), source)
        return "here" if files else "", files
    files = paths_of(card, source)
    if all(path.is_file() for path in files.values()):
        return "cache", files
    named = os.environ.get("DEEPCHEM_DATA_DIR")
    if named and all(DEEPCHEM in url for url in source.files.values()):
        names = {role: Path(urlsplit(url).path).name for role, url in source.files.items()}
        files = _below(expanded(named), source.model_copy(update={"files": names}))
        return "deepchem" if files else "", files
    return "", {}


def advice(card: Card, error: StorageError | None = None) -> str:
    """What to do where a dataset is not here."""
    lines = [error.hint] if error and error.hint else []
    if any(s.place == "data" for s in card.source):
        lines.append("set MOLGRAPH_DATA to a folder that has it")
    if any(DEEPCHEM in url for s in card.source if s.place == "url" for url in s.files.values()):
        lines.append("or DEEPCHEM_DATA_DIR to the one where DeepChem's loader left it")
    if any(s.place == "url" for s in card.source):
        lines.append(f"fetch it where there is a network: molgraph data get {card.name}")
    others = {s.edition for s in card.source if s.edition != "raw" and _below(data_dir(), s)}
    lines += [f"this machine has another edition: {card.name}@{edition}" for edition in sorted(others)]
    return "\n".join([*lines, f"sets that need no network: {BUILT_IN}"])


def whereabouts(card: Card) -> str:
    """In a word: ``built in``, ``here``, ``cache``, ``deepchem``, ``download`` or ``unverified``; nothing is hashed.

    ``here: @subset`` is an edition of that name alone.
    """
    word = "download" if card.verified else UNVERIFIED
    for source in card.source:
        here, _ = _here(card, source)
        if here == "built in" or (here == "here" and source.edition == "raw"):
            return here
        if here == "here":
            return f"{word}; here: @{source.edition}"
        if here == "cache" or (here == "deepchem" and source.edition == "raw"):
            word = here
    return word


def _below(folder: Path | None, source: Source) -> dict[str, Path]:
    """The files of a place below a folder; none where one of them is missing."""
    files = {} if folder is None else {role: folder / name for role, name in source.files.items()}
    return files if all(path.is_file() for path in files.values()) else {}


def folder_of(card: Card) -> Path:
    """The folder of a dataset in the user's cache; may not exist yet."""
    return cache_dir() / "datasets" / card.name


def paths_of(card: Card, source: Source) -> dict[str, Path]:
    """Where the files of an address are kept once they are downloaded."""
    names = {role: Path(urlsplit(url).path).name or "file" for role, url in source.files.items()}
    return {role: folder_of(card) / f"{role}-{name}" for role, name in names.items()}


def fetch(card: Card, source: Source) -> dict[str, Path]:
    """Download the files of a place; hashes of the first time are recorded beside them, a later change is refused."""
    files = paths_of(card, source)
    for role, path in files.items():
        fresh = path.with_name(f"new-{path.name}")  # what is there stays until the new one is known to be the same
        stated = source.sha256.get(role, UNVERIFIED).replace(UNVERIFIED, "")
        download(source.files[role], fresh, sha256=stated, md5=source.md5.get(role, ""), label=card.name)
        try:
            _check(
                card,
                source,
                role,
                fresh,
                hint=f"the file has changed: remove {path.parent} to take the new one instead",
                recorded=True,
            )
        except DataError:
            fresh.unlink()
            raise
        fresh.replace(path)
    return files


def _check(card: Card, source: Source, role: str, path: Path, *, hint: str, recorded: bool) -> None:
    """Compare a file's sha256 with the card and, where ``recorded``, with its first time, which may be now."""
    digest, name = sha256_of(path), paths_of(card, source)[role].name
    record = _read(card) if recorded else {"files": {name: {}}}
    first = record["files"].get(name, {}).get("sha256", UNVERIFIED)
    for stated, witness in ((source.sha256.get(role, UNVERIFIED), "the card"), (first, "its first download")):
        if stated not in (UNVERIFIED, digest):
            message = f"{path} is not the file of {card.name}: its sha256 is {digest}, {witness} has {stated}"
            raise MismatchError(message, hint=hint)
    if name not in record["files"]:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record["files"][name] = {"url": source.files[role], "sha256": digest, "first": now}
        _write(card, record)


def recorded_content(card: Card, edition: str) -> str:
    """The content hash that the first load of an unverified edition recorded; empty before it."""
    return str(_read(card)["content"].get(edition, ""))


def record_content(card: Card, edition: str, digest: str) -> None:
    """Note the content hash of an unverified edition's first load."""
    values = _read(card)
    values["content"][edition] = digest
    _write(card, values)


def _read(card: Card) -> dict[str, Any]:
    path = folder_of(card) / RECORD
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return {"files": dict(values["files"]), "content": dict(values["content"])}
    except FileNotFoundError:
        return {"files": {}, "content": {}}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotReadError(
            f"cannot read {path}: {error}", hint=f"remove {path.parent} and fetch again: molgraph data get {card.name}"
        ) from None


def _write(card: Card, values: Mapping[str, Any]) -> None:
    folder_of(card).mkdir(parents=True, exist_ok=True)
    with atomic_write(folder_of(card) / RECORD, "w") as file:
        json.dump(values, file, indent=1)


def forget(card: Card, source: Source) -> None:
    """Remove the files of an address and their record, so that they are fetched anew."""
    record = _read(card)
    for path in paths_of(card, source).values():
        path.unlink(missing_ok=True)
        record["files"].pop(path.name, None)
    _write(card, record)
