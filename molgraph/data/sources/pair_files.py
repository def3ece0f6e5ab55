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
from molgraph.data.sources.graph_files import column, plain_table, reading
from molgraph.data.table import Table

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
    sequence_of = dict(_sequences(files["sequences"]))
    rows = [*csv.reader(_lines(files["pairs"]), delimiter="\t")]
    name = files["pairs"].name
    if any(len(row) < len(STRING) for row in rows):
        raise FormatError(f"{name} has a line of fewer than three columns", hint="download it again")
    pairs, y = _by_type(rows[1:], targets, name) if rows and tuple(rows[0][:3]) == STRING else _labelled(rows, name)
    if lacking := next((protein for pair in pairs for protein in pair if protein not in sequence_of), None):
        message = f"{files['sequences'].name} has no sequence of {lacking}"
        raise MissingColumnError(message, hint="download both again")
    columns = [
        column("sequence", [sequence_of[pair[side]] for pair in pairs], name) for side, name in enumerate(COLUMNS)
    ]
    return plain_table(columns, tuple(targets), y)


def read_complexes(files: Mapping[str, Path], target: Target, column_name: str) -> Table:
    """Complexes of a ligand and a pocket, in the order of a table of their names and affinities.

    A complex that cannot be read is a row with the reason.

    Args:
        files: paths by role: ``table``, a csv file whose first column has the names, and ``archive``, a tar file with
            ``NAME_ligand.sdf`` and ``NAME_pocket.pdb`` of each.
        target: what ``column_name`` of the table holds.
        column_name: its name.

    Raises:
        FormatError: the archive cannot be read.
        MissingColumnError: the table has no such column.
    """
    frame = pd.read_csv(files["table"], dtype=str, keep_default_na=False)
    if column_name not in frame.columns[1:]:
        raise MissingColumnError(f"{files['table'].name} has no column {column_name!r}", hint=", ".join(frame.columns))
    names, texts = frame.iloc[:, 0].tolist(), _members(files["archive"])
    geometries: list[Geometry | None] = [None] * len(names)
    reasons = np.full(len(names), "", dtype=object)
    for i, name in enumerate(names):
        try:
            block = texts[f"{name}_ligand.sdf"].partition("$$$$")[0]
            geometries[i] = Geometry(*read_structure(block + texts[f"{name}_pocket.pdb"]))
        except KeyError as error:
            reasons[i] = f"the archive has no {error.args[0]}"
        except ValueError as error:
            reasons[i] = str(error)
    y = pd.to_numeric(frame[column_name], errors="coerce").to_numpy(np.float64)
    return plain_table({"geometry": geometries}, (target,), y, reasons=reasons)


def _members(path: Path) -> dict[str, str]:
    """The texts in a tar file by the ends of their paths; nothing is unpacked."""
    with reading(path), tarfile.open(path) as archive:
        files = [member for member in archive if member.isfile() and member.size <= MAX_MEMBER_BYTES]
        streams = ((member.name.rpartition("/")[2], archive.extractfile(member)) for member in files)
        return {name: file.read().decode("utf-8", "replace") for name, file in streams if file is not None}


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
    pairs, cells = list[tuple[str, str]](), list[tuple[int, int]]()
    for a, b, mode, *_ in rows:
        key = frozenset((a, b))
        if key not in numbers:
            numbers[key] = len(pairs)
            pairs.append((a, b))
        if mode in types:
            cells.append((numbers[key], types.index(mode)))
    y = np.zeros((len(pairs), len(types)))
    y[tuple(np.array(cells).reshape(-1, 2).T)] = 1
    return pairs, y


def _sequences(path: Path) -> Iterator[tuple[str, str]]:
    """Identifier and sequence of each protein."""
    record: list[str] = []
    for line in _lines(path):
        if line.startswith(">"):
            if record:
                yield record[0], "".join(record[1:])
            record = [line[1:].split()[0] if line[1:].split() else ""]
        elif record:
            record.append(line.strip())
        elif line.count("\t") == 1:
            identifier, _, sequence = line.partition("\t")
            yield identifier, sequence
        else:
            raise FormatError(f"{path.name} is neither FASTA nor lines of an identifier and a sequence")
    if record:
        yield record[0], "".join(record[1:])


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file that are not empty, without their ends."""
    with reading(path), (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        yield from (line.rstrip("\r\n") for line in file if line.strip())
