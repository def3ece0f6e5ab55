"""Read pairs of proteins beside their sequences, and complexes of a ligand and a pocket beside their affinities."""

from __future__ import annotations

import csv
import gzip
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import FormatError, MissingColumnError
from molgraph.chem.complexes import read_structure
from molgraph.data.graph_values import Geometry
from molgraph.data.table import OK, UNREADABLE, Entities, Table

COLUMNS = ("protein_a", "protein_b")
MAX_MEMBER_BYTES = 1 << 24
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


def read_complexes(files: Mapping[str, Path], target: Target, column: str) -> Table:
    """Complexes of a ligand and a pocket, in the order of a table of their names and affinities.

    A complex that cannot be read is a row with the reason.

    Args:
        files: paths by role: ``table``, a csv file whose first column has the names, and ``archive``, a tar file with
            ``NAME_ligand.sdf`` and ``NAME_pocket.pdb`` of each.
        target: what ``column`` of the table holds.
        column: its name.

    Raises:
        FormatError: the archive cannot be read.
        MissingColumnError: the table has no such column.
    """
    frame = pd.read_csv(files["table"], dtype=str, keep_default_na=False)
    if column not in frame.columns[1:]:
        raise MissingColumnError(f"{files['table'].name} has no column {column!r}", hint=", ".join(frame.columns))
    names, texts = frame.iloc[:, 0].tolist(), _members(files["archive"])
    values, status = np.full(len(names), None, dtype=object), np.full(len(names), OK, dtype=object)
    reason = np.full(len(names), "", dtype=object)
    for i, name in enumerate(names):
        try:
            block = texts[f"{name}_ligand.sdf"].partition("$$$$")[0]
            values[i] = Geometry(*read_structure(block + texts[f"{name}_pocket.pdb"]))
        except KeyError as error:
            status[i], reason[i] = UNREADABLE, f"the archive has no {error.args[0]}"
        except ValueError as error:
            status[i], reason[i] = UNREADABLE, str(error)
    ids = np.array([str(i) for i in range(len(names))], dtype=object)
    y = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64)[:, None]
    return Table(ids, (Entities("geometry", "geometry", values),), status, reason, (target,), y)


def _members(path: Path) -> dict[str, str]:
    """The texts in a tar file by the ends of their paths; nothing is unpacked."""
    try:
        with tarfile.open(path) as archive:
            files = [member for member in archive if member.isfile() and member.size <= MAX_MEMBER_BYTES]
            opened = ((member.name.rpartition("/")[2], archive.extractfile(member)) for member in files)
            return {name: file.read().decode("utf-8", "replace") for name, file in opened if file is not None}
    except (OSError, EOFError, tarfile.TarError) as error:
        raise FormatError(f"{path.name} cannot be read: {error}", hint="copy or download it again") from None


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
