"""Load the molecules that ship with RDKit, which need no download."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError, UnknownNameError, nearest
from molgraph.chem.rdkit_data import contrib_dir, data_dir
from molgraph.data.table import Table, make_table

SHUFFLE_SEED = 2321810


def _shipped(folder: Path | None, *parts: str) -> Path:
    path = None if folder is None else folder.joinpath(*parts)
    if path is None or not path.is_file():
        raise DataError(
            f"this rdkit installation has no {'/'.join(parts)}",
            hint="the wheels on PyPI bring it: pip install --force-reinstall rdkit",
        )
    return path


def chembl2321810() -> Table:
    """The ChEMBL series CHEMBL2321810: 1,017 molecules with measured pActivity, in a fixed shuffled order.

    The two files are sorted by activity; a split by row order would be unfair, so rows are shuffled by a
    seed that never changes.

    Returns:
        A table with the regression target ``pActivity`` and ChEMBL's numbers as ids.

    Example:
        >>> table = chembl2321810()
        >>> len(table), table.targets[0].name
        (1017, 'pActivity')
    """
    folder = contrib_dir()
    molecules = _shipped(folder, "FreeWilson", "data", "CHEMBL2321810.smi")
    activities = _shipped(folder, "FreeWilson", "data", "CHEMBL2321810_act.csv")
    with activities.open(newline="", encoding="utf-8") as file:
        activity = {row["Name"]: float(row["Act"]) for row in csv.DictReader(file)}
    rows = [line.split() for line in molecules.read_text(encoding="utf-8").splitlines() if line.strip()]
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(rows))
    rows = [rows[i] for i in order]
    return make_table(
        [smiles for smiles, _ in rows],
        ids=[name for _, name in rows],
        targets=(Target("pActivity"),),
        y=[activity.get(name, np.nan) for _, name in rows],
    )


def nci() -> Table:
    """The NCI list: 4,999 molecules of the NCI open database, as RDKit ships them; no targets.

    Example:
        >>> len(nci())
        4999
    """
    path = _shipped(data_dir(), "NCI", "first_5K.smi")
    rows = [line.split(None, 1) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return make_table([row[0] for row in rows], ids=[row[1] for row in rows])


_BUILTIN: dict[str, Callable[[], Table]] = {"chembl2321810": chembl2321810, "nci": nci}


def load(name: str) -> Table:
    """The built-in table of that name."""
    key = name.strip().lower()
    if key not in _BUILTIN:
        raise UnknownNameError(f"no built-in table is named {name!r}", hint=nearest(key, sorted(_BUILTIN)))
    return _BUILTIN[key]()
