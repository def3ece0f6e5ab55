"""Compute the classical features of a table: fingerprint, descriptors and the table's own columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from molgraph.auxiliary.kept import Rows, kept
from molgraph.base.errors import DataError, ModelFileError, UsageError, nearest
from molgraph.base.paths import store_folder
from molgraph.chem.descriptors import NAMES, rdkit_descriptors
from molgraph.chem.descriptors200 import NAMES_200, descriptors_200
from molgraph.chem.fingerprints import ERG_WIDTH, Fingerprints, avalon_counts, erg, morgan
from molgraph.data.table import UNREADABLE, Table

Choice = Literal["morgan", "morgan+descriptors", "maplight"]
CHOICES = ("morgan", "morgan+descriptors", "maplight")
DESCRIPTORS: dict[str, tuple[str, ...]] = {"morgan+descriptors": NAMES, "maplight": NAMES_200}


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
        choice: ``morgan`` (bits); ``morgan+descriptors``; or ``maplight``: counts of Morgan and Avalon environments,
            ErG and 200 descriptors (Notwell and Wood 2023, arXiv:2310.00174).
        radius: of the Morgan fingerprint.
        n_bits: of the Morgan fingerprint, and of Avalon's.
        extra: names of the table's own feature columns.
        fill: float32 [columns that are no bits or counts]: the training part's median of each descriptor and column,
            put where a value is missing or not finite.
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
        return self.printed + self._graded

    @property
    def printed(self) -> int:
        """Number of columns that are fingerprints, which come first."""
        return self.n_bits * (2 if self.choice == "maplight" else 1)

    @property
    def _graded(self) -> int:
        reduced = ERG_WIDTH if self.choice == "maplight" else 0
        return reduced + len(DESCRIPTORS.get(self.choice, ())) + len(self.extra)

    def fit(self, table: Table, threads: int, store: str | None = None) -> tuple[Features, Matrix]:
        """The same choice with its fill learnt from ``table``, and that table's features.

        Args:
            table: the training rows.
            threads: threads and processes.
            store: a folder that keeps what is computed, as ``GraphMethod`` has it.
        """
        own = Features(self.choice, self.radius, self.n_bits, tuple(table.feature_names))
        prints, graded, rows, status, reason = own._raw(table, threads, store)
        known = np.isfinite(graded)
        fill = np.zeros(own._graded, dtype=np.float32)
        for j in np.flatnonzero(known.any(axis=0)):
            fill[j] = np.median(graded[known[:, j], j])
        own = Features(self.choice, self.radius, self.n_bits, own.extra, fill)
        return own, Matrix(own._whole(prints, graded), rows, status, reason)

    def of(self, table: Table, threads: int, store: str | None = None) -> Matrix:
        """Features of ``table``, gaps filled as in training."""
        prints, graded, rows, status, reason = self._raw(table, threads, store)
        return Matrix(self._whole(prints, graded), rows, status, reason)

    def meta(self) -> dict[str, Any]:
        """JSON values that rebuild this, less ``fill``."""
        return {
            "choice": self.choice,
            "radius": self.radius,
            "n_bits": self.n_bits,
            "extra": list(self.extra),
            "descriptors": list(DESCRIPTORS.get(self.choice, ())),
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

    def _raw(
        self, table: Table, threads: int, store: str | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        asked = np.flatnonzero(table.ok)
        smiles = list(table.smiles[asked])
        folder = None if store is None else store_folder(store)
        kinds = self._kinds(threads)
        rows, parts = asked, list[np.ndarray]()
        for name, make, width in kinds:
            found = kept(name, smiles, make, width, folder)
            if not found.ok.all():  # not read; or another kind of features takes too long
                table = table.with_status(rows[~found.ok], UNREADABLE, found.reasons[~found.ok])
                rows, parts = rows[found.ok], [part[found.ok] for part in parts]
                smiles = [text for text, ok in zip(smiles, found.ok, strict=True) if ok]
            parts.append(found.x[found.ok])
        bits = [part for part in parts if part.dtype == np.uint8]
        graded = [part for part in parts if part.dtype != np.uint8]
        if self.extra:
            graded.append(self._extra(table)[rows].astype(np.float32))
        empty = np.empty((len(rows), 0), dtype=np.float32)
        return np.concatenate(bits, axis=1), np.concatenate([empty, *graded], axis=1), rows, table.status, table.reason

    def _kinds(self, threads: int) -> list[_Kind]:
        """What the choice is made of: fingerprints (uint8) first."""
        counts = self.choice == "maplight"
        make = partial(morgan, radius=self.radius, n_bits=self.n_bits, counts=counts, threads=threads)
        name = f"morgan{'-counts' * counts}-{self.radius}-{self.n_bits}"
        kinds: list[_Kind] = [(name, _of_prints(make), self.n_bits)]
        if counts:
            kinds += [
                (f"avalon-counts-{self.n_bits}", _of_prints(partial(avalon_counts, n_bits=self.n_bits)), self.n_bits),
                ("erg", _of_prints(erg), ERG_WIDTH),
                ("rdkit200", partial(_described, descriptors_200, workers=threads), len(NAMES_200)),
            ]
        elif self.choice == "morgan+descriptors":
            kinds.append(("descriptors", partial(_described, rdkit_descriptors, workers=threads), len(NAMES)))
        return kinds

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

    def _whole(self, prints: np.ndarray, graded: np.ndarray) -> np.ndarray:
        x = np.empty((len(prints), self.width), dtype=np.float32)
        x[:, : self.printed] = prints
        x[:, self.printed :] = np.where(np.isfinite(graded), graded, self.fill)
        return x


_Kind = tuple[str, Callable[[list[str]], Rows], int]


def _of_prints(make: Callable[[list[str]], Fingerprints]) -> Callable[[list[str]], Rows]:
    def compute(smiles: list[str]) -> Rows:
        found = make(smiles)
        return Rows(found.x, found.ok, found.reasons)

    return compute


def _described(make: Callable[..., Any], smiles: list[str], workers: int) -> Rows:
    found = make(smiles, workers=workers)
    return Rows(found.x, found.ok, found.reasons)
