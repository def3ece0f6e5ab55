"""Record what was downloaded into a dataset's folder, with the hashes of its first time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from molgraph.base.errors import DataError, StorageError
from molgraph.base.paths import atomic_write, cache_dir
from molgraph.data.card_parts import UNVERIFIED, Source
from molgraph.data.cards import Card
from molgraph.data.sources.download import download, sha256_of

RECORD = "downloads.json"


def folder_of(card: Card) -> Path:
    """The folder of a dataset in the user's cache; may not exist yet."""
    return cache_dir() / "datasets" / card.name


def paths_of(card: Card, source: Source) -> dict[str, Path]:
    """Where the files of an address are kept once they are downloaded."""
    names = {role: Path(urlsplit(url).path).name or "file" for role, url in source.files.items()}
    return {role: folder_of(card) / f"{role}-{name}" for role, name in names.items()}


def cached(card: Card, source: Source) -> dict[str, Path] | None:
    """The files of a place as they were downloaded, or None where one of them is missing."""
    files = paths_of(card, source)
    if not files or not all(path.is_file() for path in files.values()):
        return None
    for role, path in files.items():
        hint = f"remove {path} and fetch it again: molgraph data get {card.name}"
        _check(card, source, role, sha256_of(path), hint)
    return files


def fetch(card: Card, source: Source) -> dict[str, Path]:
    """Download the files of a place; hashes of the first time are recorded beside them, a later change is refused."""
    files = paths_of(card, source)
    for role, path in files.items():
        fresh = path.with_name(f"new-{path.name}")  # what is there stays until the new one is known to be the same
        expected = source.sha256.get(role, UNVERIFIED).replace(UNVERIFIED, "")
        came = download(source.files[role], fresh, sha256=expected, md5=source.md5.get(role, ""), label=card.name)
        try:
            _check(card, source, role, came, f"remove {path.parent} to take the new file instead")
        except DataError:
            fresh.unlink()
            raise
        fresh.replace(path)
    return files


def _check(card: Card, source: Source, role: str, found: str, hint: str) -> None:
    """Compare a file's sha256 with the card and with its first time, which this is where none is on record."""
    name, record = paths_of(card, source)[role].name, _read(card)
    noted = record["files"].get(name, {}).get("sha256", UNVERIFIED)
    for expected, who in ((source.sha256.get(role, UNVERIFIED), "the card has"), (noted, "its first download had")):
        if expected not in (UNVERIFIED, found):
            words = f"{name} of {card.name} has changed: its sha256 is {found}, {who} {expected}"
            raise DataError(words, hint=hint)
    if name not in record["files"]:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record["files"][name] = {"url": source.files[role], "sha256": found, "first": now}
        _write(card, record)


def forget(card: Card, source: Source) -> None:
    """Remove the files of an address and their record, so that they are fetched anew."""
    record = _read(card)
    for path in paths_of(card, source).values():
        path.unlink(missing_ok=True)
        record["files"].pop(path.name, None)
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
        raise StorageError(
            f"cannot read {path}: {error}", hint=f"remove {path.parent} and fetch again: molgraph data get {card.name}"
        ) from None


def _write(card: Card, values: Mapping[str, Any]) -> None:
    folder_of(card).mkdir(parents=True, exist_ok=True)
    with atomic_write(folder_of(card) / RECORD, "w") as file:
        json.dump(values, file, indent=1)
