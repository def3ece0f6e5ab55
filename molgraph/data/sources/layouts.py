"""Read the files of a dataset as a table, each layout by its name."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import MissingColumnError, RowIdError, ShapeError
from molgraph.base.table import EntityKind
from molgraph.data.cards import Card
from molgraph.data.graph_values import Geometry, Graph
from molgraph.data.log import log10
from molgraph.data.reading.cells import Reading
from molgraph.data.reading.npz import load_arrays
from molgraph.data.reading.rows import read_rows
from molgraph.data.sources import builtin
from molgraph.data.sources.dataset_files import Found
from molgraph.data.sources.graph_files import members, plain_table, read_dgcnn, read_tu, reading
from molgraph.data.sources.pair_files import read_complexes, read_interactions
from molgraph.data.table import Table, concatenate

PARTS = ("valid", "test")
NANOMOLAR = 1e9


def read_layout(card: Card, copy: Found) -> Table:
    """Read a dataset's files as the layout of their place says."""
    return LAYOUTS[copy.source.layout](card, copy)


def _table(card: Card, copy: Found) -> Table:
    """One table with a header (csv, csv.gz, parquet) or a list of SMILES; files of row numbers say its parts."""
    table = _read(card, copy, copy.files["table"])
    words = np.full(len(table), "train", dtype=object)
    for part in PARTS:
        if part in copy.files:
            words[_row_numbers(copy.files[part], len(table))] = part
    return replace(table, split=words) if set(PARTS) & set(copy.files) else table


def _joined(card: Card, copy: Found) -> Table:
    """Several tables, one after another in the card's order; each file's role is its rows' part."""
    return _in_parts({part: _read(card, copy, path) for part, path in copy.files.items()})


def _tdc(card: Card, copy: Found) -> Table:
    """``train_val.csv`` and ``test.csv`` of one folder (``member``) in the zip of a TDC benchmark group.

    Huang et al. 2021, Therapeutics Data Commons, NeurIPS Datasets and Benchmarks.
    """
    names = [f"{copy.source.member}/{name}.csv" for name in ("train_val", "test")]
    texts = [io.BytesIO(content or b"") for content in members(copy.files["zip"], *names)]
    frames = [pd.read_csv(text, dtype=str, keep_default_na=False) for text in texts]
    return _in_parts({part: _read(card, copy, frame) for part, frame in zip(("train", "test"), frames, strict=True)})


def _in_parts(parts: Mapping[str, Table]) -> Table:
    """Tables one after another; each one's key is its rows' part."""
    tables = list(parts.values())
    words = np.array([*parts], dtype=object).repeat([len(table) for table in tables])
    ids = np.array([str(i) for i in range(len(words))], dtype=object)
    return replace(reduce(concatenate, tables), ids=ids, split=words)


def _read(card: Card, copy: Found, path: Path | pd.DataFrame) -> Table:
    """One file's molecules and targets; a target that stands in a column of another name is renamed."""
    named = {t.name: replace(t, name=copy.source.columns.get(t.name, t.name)) for t in card.targets}
    smiles = copy.source.smiles or card.smiles or None
    columns: dict[str, Any] = {"smiles": smiles, "sequence": copy.source.sequence or None}
    (rows,) = read_rows(path, Reading(), **columns, targets=tuple(named.values()) or None)
    # one published file has a line break inside each cell
    texts = np.array([text.strip("\r\n") for text in rows.table.smiles], dtype=object)
    return replace(rows.table.with_smiles(texts), targets=card.targets, split=None)


def _row_numbers(path: Path, n: int) -> np.ndarray:
    with reading(path):
        return _inside(path.read_text(encoding="utf-8").split(), n, f"{path.name} names row")


def read_npz(path: Path, targets: tuple[Target, ...], columns: Mapping[str, str]) -> Table:
    """Molecules packed one after another: ``N`` atoms of each, ``Z`` and ``R`` of all, a value of each a key.

    ``columns`` has the key of a target where its name is another. Arrays of objects are passed over: they are pickles.
    """
    values = load_arrays(path)
    keys = [columns.get(t.name, t.name) for t in targets]
    if lacking := [key for key in ("N", "Z", "R", *keys) if key not in values]:
        raise MissingColumnError(f"{path.name} has no {lacking[0]!r}", hint=f"it has: {', '.join(values)}")
    ends = np.cumsum(values["N"].astype(np.int64))
    n = len(ends)
    if n == 0 or not ends[-1] == len(values["Z"]) == len(values["R"]):
        raise ShapeError(f"{path.name}: atoms of Z and R are not as many as N says")
    cuts = zip(np.split(values["Z"], ends[:-1]), np.split(values["R"], ends[:-1]), strict=True)
    entities: dict[EntityKind, Any] = {"molecule": values["smiles"]} if "smiles" in values else {}
    entities["geometry"] = [Geometry(z.astype(np.uint8), r.astype(np.float32)) for z, r in cuts]
    return plain_table(entities, targets, np.column_stack([values[key] for key in keys]))


def read_coulomb(path: Path, targets: tuple[Target, ...]) -> Table:
    """MATLAB's file of Coulomb matrices ``X`` and values ``T``: a graph of all pairs of atoms of each molecule.

    An edge's feature is its entry of the matrix; there are no edges where that is 0.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    with reading(path, MatReadError):
        data = loadmat(path, variable_names=["X", "T"])
        matrices, y = data["X"], data["T"].astype(np.float32)
        edges = [np.argwhere(matrix) for matrix in matrices]
        graphs = [
            Graph(int(ends.max()) + 1, ends.astype(np.int32), edge_features=matrix[tuple(ends.T)][:, None])
            for matrix, ends in zip(matrices, edges, strict=True)
        ]
    return plain_table({"graph": graphs}, targets, y)


def read_deepdta(files: Mapping[str, Path], target: Target, *, molar: bool) -> Table:
    """Measured pairs in row-major order of the affinity matrix, as the published folds count them.

    The files are ``ligands`` and ``proteins`` (JSON, name -> text, in the matrix's order), ``affinity`` (a matrix as
    text, nan where nobody measured; with ``molar`` Kd in nM, which become -log10(Kd / 1 M)), and maybe ``test`` and
    ``train`` (JSON: positions of the published folds): the table's ``split`` is the test fold, and the first training
    fold as valid.
    """
    ligands, proteins = (list(_json(files[role]).values()) for role in ("ligands", "proteins"))
    matrix = _matrix(files["affinity"])
    if matrix.shape != (n := (len(ligands), len(proteins))):
        raise ShapeError(f"the matrix is {matrix.shape}, but there are {n[0]} ligands, {n[1]} proteins")
    rows, columns_of = np.nonzero(np.isfinite(matrix))
    y = -log10(matrix[rows, columns_of] / NANOMOLAR) if molar else matrix[rows, columns_of]
    columns: dict[EntityKind, np.ndarray] = {
        "molecule": np.array(ligands, dtype=object)[rows],
        "sequence": np.array(proteins, dtype=object)[columns_of],
    }
    return plain_table(columns, (target,), y, _words(files, len(y)))


def _words(files: Mapping[str, Path], n: int) -> np.ndarray | None:
    if "test" not in files or "train" not in files:
        return None
    words = np.full(n, "train", dtype=object)
    words[_inside(_json(files["train"])[0], n, "a fold names pair")] = "valid"
    words[_inside(_json(files["test"]), n, "a fold names pair")] = "test"
    return words


def _inside(rows: Any, n: int, what: str) -> np.ndarray:
    rows = np.asarray(rows, dtype=np.int64)
    if len(rows) and (rows.min() < 0 or rows.max() >= n):
        raise RowIdError(f"{what} {rows.max()}, there are {n}")
    return rows


def _json(path: Path) -> Any:
    with reading(path):
        return json.loads(path.read_text(encoding="utf-8"))


def _matrix(path: Path) -> np.ndarray:
    with reading(path):
        return pd.read_csv(path, sep=r"\s+", header=None, na_values=["nan"]).to_numpy(dtype=np.float64)


LAYOUTS: dict[str, Callable[[Card, Found], Table]] = {
    "table": _table,
    "joined": _joined,
    "tdc": _tdc,
    "tu": lambda card, copy: read_tu(copy.files["zip"], copy.source.member, card.targets[0]),
    "dgcnn": lambda card, copy: read_dgcnn(copy.files["zip"], copy.source.member, card.targets[0]),
    "deepdta": lambda card, copy: read_deepdta(
        copy.files, card.targets[0], molar="log10" in card.units[card.targets[0].name]
    ),
    "complexes": lambda card, copy: read_complexes(
        copy.files, card.targets[0], copy.source.columns.get(card.targets[0].name, card.targets[0].name)
    ),
    "interactions": lambda card, copy: read_interactions(copy.files, card.targets),
    "npz": lambda card, copy: read_npz(copy.files["npz"], card.targets, copy.source.columns),
    "builtin": lambda card, copy: builtin.load(copy.source.files["table"]),
    "coulomb": lambda card, copy: read_coulomb(copy.files["mat"], card.targets),
}
