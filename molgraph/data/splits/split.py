"""Define a split: which rows train, validate and test, frozen with its splitter and a hash."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.errors import DataError, FormatError, MismatchError, RowIdError
from molgraph.base.paths import write_whole
from molgraph.base.toml_config import parse_json
from molgraph.data.content import value_digest
from molgraph.data.table import Table

FORMAT = "molgraph-split-1"
PARTS = ("train", "valid", "test")
ANEW = "split this table anew, or give the one that the split was made for"
_SAVED = ("seed", "fractions", "params", "n_rows", "groups", "content", "hash", "digests")
_LAST = ("left_out", "leaks")  # the fields in the order of the file
_WAY_OUT = "where a benchmark's run wrote it, delete its folder and run again"


class Leak(NamedTuple):
    """A test row whose molecule is, in another form, in training: the ids of both rows, and what ties them."""

    train: str
    test: str
    what: str

    def __str__(self) -> str:
        """The leak in words.

        Example:
            >>> print(Leak("56", "a7", "salt form"))
            id a7 of the test is a salt form of id 56 in training
        """
        return f"id {self.test} of the test is a {self.what} of id {self.train} in training"


class LeftOut(NamedTuple):
    """A row that is in no part, and why."""

    row: int
    reason: str


@dataclass(frozen=True)
class Split:
    """Rows of a table in three parts.

    Args:
        train: int64, sorted row numbers.
        valid: int64, sorted row numbers; may be empty.
        test: int64, sorted row numbers.
        splitter: the splitter's registered name, such as ``scaffold/balanced``.
        seed: what its shuffling began from.
        fractions: the parts that were asked for.
        n_rows: rows of the table it was made for.
        params: the splitter's other settings, plain JSON values.
        content: sha256 of the table's ids and structures, in row order.
        digests: two digits of each row's own sha256, which tell the row that differs in another table.
        hash: sha256 of the splitter, every part's sorted contents and the indices.
        leaks: pairs of train and test rows that hold forms of one molecule; empty for splitters that group.
        left_out: rows in no part.
        groups: how many groups the splitter kept whole, or None for a splitter that does not group.
    """

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    splitter: str
    seed: int
    fractions: tuple[float, ...]
    n_rows: int
    params: Mapping[str, Any] = field(default_factory=dict)
    content: str = ""
    digests: str = ""
    hash: str = ""
    leaks: tuple[Leak, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    groups: int | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        parts: Mapping[str, np.ndarray],
        splitter: str,
        seed: int,
        fractions: tuple[float, ...],
        params: Mapping[str, Any],
        contents: Sequence[str] | None = None,
        **fields: Any,
    ) -> Split:
        """The split of a table by the rows of its parts, with hashes of both.

        Args:
            table: all rows.
            parts: int64, the rows of ``train``, ``valid`` and ``test``.
            splitter: its name; ``seed``, ``fractions`` and ``params`` are its settings.
            contents: the table's ``row_contents`` where they are known.
            fields: the other fields of a split.
        """
        contents = row_contents(table) if contents is None else contents
        settings = {"recipe": splitter, "seed": seed, "fractions": list(fractions), "params": params}
        fields |= {"content": rows_hash(contents), "digests": digests_of(contents)}
        fields |= {"hash": split_hash(contents, parts, settings)}
        train, valid, test = (parts[name] for name in PARTS)
        return cls(train, valid, test, splitter, seed, fractions, len(table), params, **fields)

    @property
    def sizes(self) -> dict[str, int]:
        """Rows in each part, and left out."""
        return {name: len(getattr(self, name)) for name in PARTS} | {"left_out": len(self.left_out)}

    @property
    def words(self) -> np.ndarray:
        """object array [n_rows]: ``train``, ``valid``, ``test``, or ``""`` where a row is in no part."""
        words = np.full(self.n_rows, "", dtype=object)
        for name in PARTS:
            words[getattr(self, name)] = name
        return words

    @property
    def leak_sentence(self) -> str:
        """How many test rows hold a molecule that is also in training, and what ties them; empty where none does."""
        if not self.leaks:
            return ""
        n = len({leak.test for leak in self.leaks})
        kinds = Counter(leak.what for leak in self.leaks)
        ties = ", ".join(f"{kinds[tie]:,} {tie}" for tie in sorted(kinds))
        hold = "holds" if n == 1 else "hold"
        return f"{n:,} of {len(self.test):,} test rows {hold} a molecule that is also in training ({ties})"

    def tables(self, table: Table) -> tuple[Table, Table, Table]:
        """The three parts of the table that the split was made for; another table raises ``MismatchError``."""
        self.check(table)
        return table.take(self.train), table.take(self.valid), table.take(self.test)

    def check(self, table: Table) -> None:
        """Raise ``MismatchError`` unless the table has the ids and structures that the split was made for."""
        if len(table) != self.n_rows:
            raise MismatchError(
                f"the split was made for a table of {self.n_rows} rows, this one has {len(table)}", hint=ANEW
            )
        if self.content and rows_hash(row_contents(table)) != self.content:
            raise MismatchError(
                "the split was made for other rows: ids or structures differ, or stand in another order",
                hint=f"{ANEW}, standardised as it was then",
            )

    def text(self, n_leaks: int = 5) -> str:
        """Sizes, groups, leaks and what was left out, in a few lines."""
        counts = ", ".join(f"{k} {v}" for k, v in self.sizes.items())
        lines = [f"{self.splitter} (seed {self.seed}): {counts}"]
        if self.groups is not None:
            lines.append(f"{self.groups} groups kept whole")
        if self.leaks:
            lines.append(f"LEAKS: {self.leak_sentence}, such as")
            lines += [f"  {leak}" for leak in self.leaks[:n_leaks]]
            if len(self.leaks) > n_leaks:
                lines.append(f"  and {len(self.leaks) - n_leaks} more pairs")
        for out in self.left_out[:n_leaks]:
            lines.append(f"left out: row {out.row + 1}, {out.reason}")
        if len(self.left_out) > n_leaks:
            lines.append(f"left out: {len(self.left_out) - n_leaks} more rows")
        return "\n".join([*lines, f"hash {self.hash}"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the split as JSON, one line a part."""
        fields: dict[str, Any] = {"format": FORMAT, "recipe": self.splitter}
        fields |= {name: getattr(self, name) for name in (*_SAVED, *PARTS, *_LAST)}
        fields |= {name: fields[name].tolist() for name in PARTS} | {"params": dict(self.params)}
        body = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in fields.items())
        write_whole(path, f"{{\n{body}\n}}\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Split:
        """Read a split that ``save`` wrote; one that is corrupt or foreign raises ``DataError``."""
        try:
            raw = read_json(path)
            if not isinstance(raw, dict) or raw.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT!r}")
            parts: dict[str, Any] = {name: np.asarray(raw[name], dtype=np.int64).reshape(-1) for name in PARTS}
            split = cls(
                **parts,
                splitter=str(raw["recipe"]),
                seed=int(raw["seed"]),
                fractions=tuple(float(f) for f in raw["fractions"]),
                n_rows=int(raw["n_rows"]),
                params=dict(raw["params"]),
                content=str(raw["content"]),
                digests=str(raw.get("digests", "")),
                hash=str(raw["hash"]),
                leaks=tuple(Leak(*map(str, leak)) for leak in raw["leaks"]),
                left_out=tuple(LeftOut(int(row), str(reason)) for row, reason in raw["left_out"]),
                groups=None if raw["groups"] is None else int(raw["groups"]),
            )
        except OSError as error:
            raise DataError(f"cannot read the split {path}: {error.strerror}", hint=_WAY_OUT) from error
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise FormatError(f"{path} is not a molgraph split: {error}", hint=_WAY_OUT) from error
        check_parts(parts.values(), split.n_rows, str(path), hint=_WAY_OUT)
        return split

    def __repr__(self) -> str:
        counts = ", ".join(f"{k}={v}" for k, v in self.sizes.items())
        return f"Split({self.splitter!r}, seed={self.seed}, {counts}, leaks={len(self.leaks)}, hash={self.hash[:12]!r})"


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file.

    Raises:
        OSError: it cannot be read. ValueError: it is no JSON, or one that is nested too deeply.
        FormatError: it is a folder or a pipe.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise FormatError(f"cannot read {path}: it is no file", hint="name a file")
    return parse_json(Path(path).read_text(encoding="utf-8"))


def check_parts(parts: Iterable[np.ndarray], n_rows: int, source: str, hint: str = "") -> None:
    """Raise ``RowIdError`` where a row is outside the table or in two parts."""
    rows = np.concatenate([np.asarray(p, dtype=np.int64) for p in parts])
    outside = rows[(rows < 0) | (rows >= n_rows)]
    if len(outside):
        raise RowIdError(f"{source} names row {outside[0]}, the table has {n_rows} rows", hint=hint)
    values, counts = np.unique(rows, return_counts=True)
    if (counts > 1).any():
        raise RowIdError(f"{source} has row {values[counts > 1][0]} twice", hint=hint)


_quoted = json.encoder.encode_basestring_ascii


def rows_hash(contents: Sequence[str]) -> str:
    """sha256 of a table's ids and structures (its ``row_contents``), in row order."""
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def digests_of(contents: Sequence[str]) -> str:
    """The first two digits of each row's digest, one after the other: too few to tell which molecules they are of."""
    return "".join(row[:2] for row in contents)


def row_contents(table: Table) -> list[str]:
    """One text for each row: a digest of its id and its entities, blanks around texts aside."""
    columns = [table.ids, *(e.values for e in table.entities)]
    texts = ([v.strip() if isinstance(v, str) else value_digest(v) for v in row] for row in zip(*columns, strict=True))
    rows = (", ".join(map(_quoted, row)) for row in texts)
    return [hashlib.sha256(f"[{row}]".encode()).hexdigest() for row in rows]  # a list as json.dumps writes it


def split_hash(contents: Sequence[str], parts: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> str:
    """sha256 of the settings, each part's sorted contents (a table's ``row_contents``) and its indices.

    The splitter's name stands in the settings under ``recipe``, its key in files and hashes.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in PARTS:
        digest.update(f"\n{name}\n".encode())
        digest.update("\n".join(sorted(contents[i] for i in parts[name])).encode())
        digest.update(np.asarray(parts[name], dtype="<i8").tobytes())
    return digest.hexdigest()
