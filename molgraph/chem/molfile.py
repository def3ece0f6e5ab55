"""Read the records of an SD file: titles, structures as SMILES or the reason why there is none, and fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem import smiles
from molgraph.chem.bounded import RINGS, TooHardError, bounded

_FIELD = re.compile(r"^>.*?<(.*)>")
_FIELD_BYTES = re.compile(rb"\n>[^\r\n]*?<([^\r\n]*)>")  # the same after an end of line; a plain start makes it fast
MAX_LINE = 1 << 18  # characters; a line of so many is cut there by those who read files
MAX_LINES = 1_000_000
MAX_RECORD = 1 << 24  # characters
MAX_NAME = 1 << 16
LONG = 20_000  # characters: about 200 atoms
_SHORT = 3_000


class Record(NamedTuple):
    """One record of an SD file."""

    title: str
    smiles: str
    reason: str
    fields: dict[str, str]


def read_records(lines: Iterable[str], *, molecules: bool = True) -> Iterator[Record]:
    """Read an SD file record by record; one that RDKit cannot read, or that is far too large, has a reason.

    Args:
        lines: the file's lines.
        molecules: whether to read the structures; without, titles and fields alone come out, much faster.

    Example:
        >>> lines = ["x", "", "", "  0  0  0  0  0  0  0  0  0  0999 V2000", "M  END", "> <y>", "1.5", "", "$$$$"]
        >>> [(r.title, r.reason, r.fields) for r in read_records(lines)]
        [('x', 'a molecule of no atoms', {'y': '1.5'})]
    """
    held: list[str] = []
    size, reason = 0, ""
    for line in lines:
        line = line.rstrip("\r\n")
        if line.startswith("$$$$"):
            yield _record(held, molecules, reason)
            held, size, reason = [], 0, ""
            continue
        size += len(line)
        if len(line) >= MAX_LINE:
            reason = f"a line of more than {MAX_LINE:,} characters"
        elif size > MAX_RECORD or len(held) == MAX_LINES:
            reason = f"a record of more than {MAX_RECORD:,} characters or {MAX_LINES:,} lines"
        else:
            held.append(line)
    if reason or any(line.strip() for line in held):
        yield _record(held, molecules, reason)


def field_names(pieces: Iterable[bytes]) -> Iterator[str]:
    """Names of the fields of an SD file, without a look at its records; far faster than ``read_records``.

    Args:
        pieces: the file's bytes, cut anywhere.

    Example:
        >>> list(field_names([b"x\\n> <y>\\n1\\n\\n> <lo", b"gP>\\n2\\n\\n> <y>\\n"]))
        ['y', 'logP']
    """
    seen: set[bytes] = set()
    held = b""
    for piece in chain(pieces, [b"\n"]):
        piece = held + piece.replace(b"\r", b"\n")
        cut = piece.rfind(b"\n") + 1
        for name in _FIELD_BYTES.findall(piece, 0, cut):
            if name not in seen:
                seen.add(name)
                yield name.decode("utf-8", errors="backslashreplace")
        held = piece[max(cut - 1, 0) :]
        if len(held) > MAX_NAME:  # a line that long is none of a field
            held = b""


def _record(lines: list[str], molecules: bool, reason: str) -> Record:
    end = next((i + 1 for i, line in enumerate(lines) if line.startswith("M  END")), None)
    if end is None:
        end = next((i for i, line in enumerate(lines) if line.startswith(">")), len(lines))
    text = ""
    if molecules and not reason:
        text, reason = _read("\n".join(lines[:end]) + "\n", lines[3:4])
    return Record(lines[0].strip() if lines else "", text, reason, _fields(lines[end:]))


def _fields(lines: list[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    name: str | None = None
    value: list[str] = []
    for line in [*lines, ""]:
        if name is None:
            if found := _FIELD.match(line):
                name, value = found[1], []
        elif line.strip():
            value.append(line)
        else:
            out[name], name = "\n".join(value), None
    return out


def _read(block: str, counts: list[str]) -> tuple[str, str]:
    """SMILES or the reason; what is large or has many rings is read in a process that can be ended."""
    try:
        rings = int(counts[0][3:6]) - int(counts[0][:3]) if counts else 0
    except ValueError:
        rings = 0
    if len(block) < _SHORT or (len(block) < LONG and rings < RINGS and "V3000" not in "".join(counts)):
        return _smiles(block)
    try:
        return bounded(_smiles, block)
    except TooHardError as error:
        return "", f"{error} to read"


def _smiles(block: str) -> tuple[str, str]:
    with smiles.captured() as log:
        try:
            mol = Chem.MolFromMolBlock(block)
            text = "" if mol is None else Chem.MolToSmiles(mol)
        except (RuntimeError, ValueError) as error:
            return "", smiles.one_line(str(error)) or type(error).__name__
    if mol is None:
        return "", smiles.one_line(log.messages) or "RDKit reads no molecule here"
    return (text, "") if mol.GetNumAtoms() else ("", "a molecule of no atoms")
