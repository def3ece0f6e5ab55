"""Read latent vectors from a file, a table or an array."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import FormatError, MismatchError, ShapeError
from molgraph.base.paths import missing_file

AXIS = "z"  # the columns of a latent vector are z0, z1, ...


def read_vectors(latents: Any, width: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Ids, vectors, and why a row has none."""
    if isinstance(latents, str | os.PathLike):
        latents = _read(Path(latents))
    if isinstance(latents, pd.DataFrame):
        axes = [f"{AXIS}{i}" for i in range(width)]
        if {*axes} - {*latents.columns} or f"{AXIS}{width}" in latents.columns:
            have = sum(str(name).removeprefix(AXIS).isdigit() for name in latents.columns)
            words = f"the table has {have} columns of latent vectors, the model {width}: {axes[0]} to {axes[-1]}"
            raise MismatchError(words, hint="make it with this model: molgraph latent encode MODEL DATA -o latents.csv")
        z = np.stack([_column(latents[axis]) for axis in axes], axis=1)
        notes = (
            latents["reason"].astype(object).fillna("").astype(str).tolist() if "reason" in latents else [""] * len(z)
        )
        for row in np.flatnonzero(~np.isfinite(z).all(axis=1)).tolist():
            notes[row] = notes[row] or _odd_cell(latents[axes].iloc[row])
        ids = latents["id"].astype(str).tolist() if "id" in latents else [*map(str, range(len(z)))]
    else:
        z = _real(latents)
        if z.ndim != 2 or z.shape[1] != width:
            raise ShapeError(f"latent vectors have the shape {[*z.shape]}, the model's [n, {width}]")
        notes, ids = [""] * len(z), [*map(str, range(len(z)))]
    finite = np.isfinite(z).all(axis=1)
    reasons = ["" if fine else text or "no latent vector in this row" for fine, text in zip(finite, notes, strict=True)]
    return ids, z, np.array(reasons, dtype=object)


def _real(values: Any) -> np.ndarray:
    """Numbers as float64; ``DataError`` for texts, dates, complex numbers and objects."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "fiu":
        kind = "rows of different lengths, or objects" if array.dtype.kind == "O" else f"values of type {array.dtype}"
        raise FormatError(f"latent vectors are real numbers, these are {kind}", hint="give float [n, width]")
    return array.astype(np.float64)


def _column(values: pd.Series) -> np.ndarray:
    """A column of latent vectors; NaN where a cell holds no number."""
    numbers = pd.to_numeric(values, errors="coerce")
    odd = next((series for series in (values, numbers) if series.dtype.kind in "Mmcb"), None)
    return _real(odd) if odd is not None else numbers.to_numpy(np.float64, na_value=np.nan)


def _odd_cell(row: pd.Series) -> str:
    """The first cell of a latent vector that holds no finite number, in words; empty where all cells are empty."""
    for axis, cell in row.items():
        number = pd.to_numeric(cell, errors="coerce")
        if not pd.isna(cell) and not np.isfinite(number):
            return f"{axis} is {str(cell)[:20]!r}, which is no finite number"
    return ""


def _read(path: Path) -> Any:
    """A file of vectors."""
    if not path.is_file():
        raise missing_file(path)
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False)
        return pd.read_parquet(path) if path.suffix.lower() == ".parquet" else pd.read_csv(path, dtype={"id": str})
    except (ValueError, OSError, pd.errors.ParserError) as error:
        raise FormatError(f"{path} holds no latent vectors ({str(error).splitlines()[0][:100]})") from error
