"""Read DeepDTA's files of drug-target affinities as a table of pairs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError
from molgraph.data.table import OK, Entities, Table

NANOMOLAR = 1e9


def read_deepdta(files: Mapping[str, Path], target: Target, *, molar: bool) -> Table:
    """Measured pairs in row-major order of the affinity matrix, as the published folds count them.

    Args:
        files: ``ligands`` and ``proteins`` (JSON, name -> text, in the matrix's order), ``affinity`` (a matrix as
            text, nan where nobody measured), and maybe ``test`` and ``train`` (JSON: positions of the published folds).
        target: the affinity.
        molar: whether values are Kd in nM, to become -log10(Kd / 1 M).

    Returns:
        A table of two entity columns; ``split`` holds the published test fold, and the first training fold as valid.
    """
    ligands, proteins = (list(_json(files[role]).values()) for role in ("ligands", "proteins"))
    matrix = _matrix(files["affinity"])
    if matrix.shape != (len(ligands), len(proteins)):
        raise DataError(f"the matrix is {matrix.shape}, but there are {len(ligands)} ligands, {len(proteins)} proteins")
    rows, columns = np.nonzero(np.isfinite(matrix))
    y = matrix[rows, columns]
    y = -np.log10(y / NANOMOLAR) if molar else y
    n = len(rows)
    entities = (
        Entities("smiles", "molecule", np.array(ligands, dtype=object)[rows]),
        Entities("sequence", "sequence", np.array(proteins, dtype=object)[columns]),
    )
    ids = np.array([str(i) for i in range(n)], dtype=object)
    status, reason = np.full(n, OK, dtype=object), np.full(n, "", dtype=object)
    split = _words(files, n)
    return Table(ids, entities, status, reason, (target,), y[:, None], split=split)


def _words(files: Mapping[str, Path], n: int) -> np.ndarray | None:
    if "test" not in files or "train" not in files:
        return None
    words = np.full(n, "train", dtype=object)
    words[_positions(_json(files["train"])[0], n)] = "valid"
    words[_positions(_json(files["test"]), n)] = "test"
    return words


def _positions(values: Any, n: int) -> np.ndarray:
    found = np.asarray(values, dtype=np.int64)
    if len(found) and (found.min() < 0 or found.max() >= n):
        raise DataError(f"a fold names pair {found.max()}, there are {n}")
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path.name} is not JSON: {error}", hint="download it again") from None


def _matrix(path: Path) -> np.ndarray:
    try:
        text = path.read_text(encoding="utf-8")
        return pd.read_csv(io.StringIO(text), sep=r"\s+", header=None, na_values=["nan"]).to_numpy(dtype=np.float64)
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"{path.name} is no matrix: {error}", hint="download it again") from None
