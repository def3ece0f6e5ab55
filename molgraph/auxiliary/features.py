"""A table comes in; the classical feature matrix (fingerprint, descriptors, the table's own columns) goes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from molgraph.base.errors import DataError, ModelFileError, UsageError, nearest
from molgraph.chem.descriptors import NAMES, rdkit_descriptors
from molgraph.chem.fingerprints import morgan
from molgraph.data.table import UNREADABLE, Table

Choice = Literal["morgan", "morgan+descriptors"]
CHOICES = ("morgan", "morgan+descriptors")


@dataclass(frozen=True)
class Matrix:
    """Features of a table.

    Args:
        x: float32 [number of usable rows, width], finite.
        rows: int64: the table's rows that these are.
        status: object array [n]: the table's, with rows that could not be read marked.
        reason: object array [n].
    """

    x: np.ndarray
    rows: np.ndarray
    status: np.ndarray
    reason: np.ndarray


@dataclass(frozen=True)
class Features:
    """Which features a method uses, and what fills the gaps in them.

    Args:
        choice: ``morgan`` or ``morgan+descriptors``.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        extra: names of the table's own feature columns.
        fill: float32 [width - n_bits]: the training part's median of each descriptor and column, put where a
            value is missing or not finite.
    """

    choice: Choice
    radius: int
    n_bits: int
    extra: tuple[str, ...] = ()
    fill: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.float32))

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            raise UsageError(f"no features are named {self.choice!r}", hint=nearest(str(self.choice), CHOICES))

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.n_bits + self._graded

    @property
    def _graded(self) -> int:
        return (len(NAMES) if self.choice == "morgan+descriptors" else 0) + len(self.extra)

    def fit(self, table: Table, threads: int) -> tuple[Features, Matrix]:
        """The same choice with its fill learnt from ``table``, and that table's features."""
        own = Features(self.choice, self.radius, self.n_bits, tuple(table.feature_names))
        bits, graded, rows, status, reason = own._raw(table, threads)
        known = np.isfinite(graded)
        fill = np.zeros(own._graded, dtype=np.float32)
        for j in np.flatnonzero(known.any(axis=0)):
            fill[j] = np.median(graded[known[:, j], j])
        own = Features(self.choice, self.radius, self.n_bits, own.extra, fill)
        return own, Matrix(own._whole(bits, graded), rows, status, reason)

    def of(self, table: Table, threads: int) -> Matrix:
        """Features of ``table``, gaps filled as in training."""
        bits, graded, rows, status, reason = self._raw(table, threads)
        return Matrix(self._whole(bits, graded), rows, status, reason)

    def meta(self) -> dict[str, Any]:
        """JSON values that rebuild this, less ``fill``."""
        names = list(NAMES) if self.choice == "morgan+descriptors" else []
        return {
            "choice": self.choice,
            "radius": self.radius,
            "n_bits": self.n_bits,
            "extra": list(self.extra),
            "descriptors": names,
        }

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any], fill: np.ndarray) -> Features:
        """Rebuild from a file's values; raises ``ModelFileError`` where they are not ours."""
        try:
            own = cls(meta["choice"], int(meta["radius"]), int(meta["n_bits"]), tuple(meta["extra"]), fill)
            known = list(meta["descriptors"]) == own.meta()["descriptors"]
        except (KeyError, TypeError, ValueError, UsageError) as error:
            raise ModelFileError(f"the model's features are not whole: {error}", hint="fetch the file again") from error
        if not known:
            raise ModelFileError("the model uses other descriptors than this molgraph", hint="install its version")
        sane = 8 <= own.n_bits <= 2**20 and own.n_bits % 8 == 0 and 0 <= own.radius <= 16
        if not sane or fill.shape != (own._graded,) or not np.isfinite(fill).all():
            raise ModelFileError("the model's features are not whole", hint="fetch the file again")
        return own

    def _raw(self, table: Table, threads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        asked = np.flatnonzero(table.ok)
        smiles = list(table.smiles[asked])
        prints = morgan(smiles, self.radius, self.n_bits, threads=threads)
        bad = asked[~prints.ok]
        table = table.with_status(bad, UNREADABLE, prints.reasons[~prints.ok])
        rows = asked[prints.ok]
        parts = []
        if self.choice == "morgan+descriptors":
            kept = [text for text, ok in zip(smiles, prints.ok, strict=True) if ok]
            parts.append(rdkit_descriptors(kept, workers=threads).x)
        if self.extra:
            parts.append(self._extra(table)[rows].astype(np.float32))
        graded = np.concatenate(parts, axis=1) if parts else np.empty((len(rows), 0), dtype=np.float32)
        return prints.x[prints.ok], graded, rows, table.status, table.reason

    def _extra(self, table: Table) -> np.ndarray:
        have = list(table.feature_names)
        lacking = [name for name in self.extra if name not in have]
        if lacking or table.features is None:
            raise DataError(
                f"the model was trained with the feature columns {list(self.extra)}, the table lacks {lacking}",
                hint="give the same columns with features=",
            )
        with np.errstate(over="ignore"):
            return table.features[:, [have.index(name) for name in self.extra]]

    def _whole(self, bits: np.ndarray, graded: np.ndarray) -> np.ndarray:
        x = np.empty((len(bits), self.width), dtype=np.float32)
        x[:, : self.n_bits] = bits
        x[:, self.n_bits :] = np.where(np.isfinite(graded), graded, self.fill)
        return x
