"""Read interactions of proteins: a list of pairs beside the sequences of the proteins that it names."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import FormatError, MissingColumnError
from molgraph.data.table import OK, Entities, Table

COLUMNS = ("protein_a", "protein_b")
STRING = ("item_id_a", "item_id_b", "mode")  # of the header of STRING's actions


def read_interactions(files: Mapping[str, Path], targets: Sequence[Target]) -> Table:
    """Pairs of proteins as two columns of sequences.

    The file ``pairs`` has an identifier of each protein and a label in each line, or is a table of STRING's actions,
    whose lines each name a type of interaction: a pair, in whatever order, is then one row, with 1 for each type that
    it has. The file ``sequences`` has an identifier and a sequence in each line, or is FASTA.

    Args:
        files: paths by role, ``pairs`` and ``sequences``; compressed where the name ends in ``.gz``.
        targets: one for the labels, or those of the types of interaction by their names.

    Raises:
        FormatError: lines that cannot be read as that.
        MissingColumnError: a protein without a sequence, or a target that is no type of interaction of the file.
    """
    known = dict(_sequences(files["sequences"]))
    rows = [*csv.reader(_lines(files["pairs"]), delimiter="\t")]
    name = files["pairs"].name
    if any(len(row) < len(STRING) for row in rows):
        raise FormatError(f"{name} has a line of fewer than three columns", hint="download it again")
    pairs, y = _by_type(rows[1:], targets, name) if rows and tuple(rows[0][:3]) == STRING else _labelled(rows, name)
    if lacking := next((one for pair in pairs for one in pair if one not in known), None):
        raise MissingColumnError(f"{files['sequences'].name} has no sequence of {lacking}", hint="download both again")
    n = len(pairs)
    entities = []
    for place, column in enumerate(COLUMNS):
        values = np.empty(n, dtype=object)
        values[:] = [known[pair[place]] for pair in pairs]
        entities.append(Entities(column, "sequence", values))
    ids, status, reason = np.array([str(i) for i in range(n)], object), np.full(n, OK, object), np.full(n, "", object)
    return Table(ids, tuple(entities), status, reason, tuple(targets), y)


def _labelled(rows: Sequence[Sequence[str]], name: str) -> tuple[list[tuple[str, str]], np.ndarray]:
    try:
        return [(a, b) for a, b, *_ in rows], np.array([[float(row[2])] for row in rows])
    except ValueError as error:
        raise FormatError(f"{name} has a label that is no number: {error}", hint="download it again") from None


def _by_type(
    rows: Sequence[Sequence[str]], targets: Sequence[Target], name: str
) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Each pair once, in the order of the file, and 1 for each type of interaction that it has."""
    types = [target.name for target in targets]
    if missing := sorted({*types} - {row[2] for row in rows}):
        raise MissingColumnError(f"{name} has no interaction of the type {missing[0]!r}")
    numbers: dict[frozenset[str], int] = {}
    pairs, found = list[tuple[str, str]](), list[tuple[int, int]]()
    for a, b, mode, *_ in rows:
        key = frozenset((a, b))
        if key not in numbers:
            numbers[key] = len(pairs)
            pairs.append((a, b))
        found += [(numbers[key], types.index(mode))] * (mode in types)
    y = np.zeros((len(pairs), len(types)))
    y[tuple(np.array(found).reshape(-1, 2).T)] = 1
    return pairs, y


def _sequences(path: Path) -> Iterator[tuple[str, str]]:
    """Identifier and sequence of each protein."""
    held: list[str] = []
    for line in _lines(path):
        if line.startswith(">"):
            if held:
                yield held[0], "".join(held[1:])
            held = [line[1:].split()[0] if line[1:].split() else ""]
        elif held:
            held.append(line.strip())
        elif line.count("\t") == 1:
            identifier, _, sequence = line.partition("\t")
            yield identifier, sequence
        else:
            raise FormatError(f"{path.name} is neither FASTA nor lines of an identifier and a sequence")
    if held:
        yield held[0], "".join(held[1:])


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file that are not empty, without their ends."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            yield from (line.rstrip("\r\n") for line in file if line.strip())
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise FormatError(f"{path.name} cannot be read: {error}", hint="copy or download it again") from None
