"""Compute the features of a table's rows: those of its molecules, and the table's own feature columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from molgraph.auxiliary.tabular.feature_cache import cached_features
from molgraph.auxiliary.tabular.table_featuriser import DESCRIPTORS, Choice, TableFeaturiser, featurisers_of
from molgraph.base.errors import BadValueError, DamagedModelError, MissingColumnError, ModelFileError, UsageError
from molgraph.base.paths import store_folder
from molgraph.data.table import UNREADABLE, Table
from molgraph.embed.landmarks import VectorSource, restore_vectors


@dataclass(frozen=True)
class Matrix:
    """Features of a table.

    Args:
        x: float32 [usable rows, width], finite.
        rows: int64 [usable rows], their row numbers in the table.
        status: object array [n], that of the table with unreadable rows marked.
        reason: object array [n].
    """

    x: np.ndarray
    rows: np.ndarray
    status: np.ndarray
    reason: np.ndarray


@dataclass(frozen=True)
class Features:
    """The features that a method uses, and the values that fill their gaps.

    Args:
        choice: ``morgan`` (bits); ``morgan-counts``; ``morgan+descriptors``; ``maplight``: counts of Morgan and Avalon
            environments, ErG and 200 descriptors (Notwell and Wood 2023, arXiv:2310.00174); or ``vectors``, those of
            the encoder and the table's own columns alone.
        radius: of the Morgan fingerprint.
        n_bits: of the Morgan fingerprint, and of Avalon's.
        extra: names of the table's own feature columns.
        fill: float32 [columns that are not bits or counts]: the training rows' median of each, put where a value is
            missing or not finite.
        encoder: or landmarks; gives each molecule a vector, whose columns stand behind those of the choice.

    Raises:
        UnknownNameError: an unknown choice.
    """

    choice: Choice
    radius: int
    n_bits: int
    extra: tuple[str, ...] = ()
    fill: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    encoder: VectorSource | None = None

    def __post_init__(self) -> None:
        featurisers_of(self.choice, self.radius, self.n_bits)

    @property
    def featurisers(self) -> tuple[TableFeaturiser, ...]:
        """What computes the columns, in order, except for those of the table itself."""
        known = featurisers_of(self.choice, self.radius, self.n_bits)
        if self.encoder is None:
            return known
        return *known, TableFeaturiser(self.encoder.name, self.encoder.width, self.encoder.vectors)

    @property
    def n_counts(self) -> int:
        """Number of columns of bits and counts, which come first."""
        return sum(featuriser.width for featuriser in self.featurisers if featuriser.counts)

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(featuriser.width for featuriser in self.featurisers) + len(self.extra)

    def fit(self, table: Table, threads: int, store: str | None = None) -> tuple[Features, Matrix]:
        """These features with the fill values of a training table, and the features of that table.

        Args:
            table: the training rows.
            threads: threads and processes.
            store: a folder that keeps what is computed, as ``GraphMethod`` has it.
        """
        features = replace(self, extra=tuple(table.feature_names))
        if not features.width:
            hint = "name an encoder's file (--descriptors encoder.mgm) or columns (--feature NAME)"
            raise BadValueError("features=vectors leaves no column to learn from", hint=hint)
        counts, other, rows, status, reason = features._raw(table, threads, store)
        fill = np.zeros(other.shape[1], dtype=np.float32)
        for j, known in enumerate(np.isfinite(other).T):
            fill[j] = np.median(other[known, j]) if known.any() else 0
        features = replace(features, fill=fill)
        return features, Matrix(features._filled(counts, other), rows, status, reason)

    def of(self, table: Table, threads: int, store: str | None = None) -> Matrix:
        """Features of ``table``, gaps filled as in training."""
        counts, other, rows, status, reason = self._raw(table, threads, store)
        return Matrix(self._filled(counts, other), rows, status, reason)

    def reference(self) -> np.ndarray:
        """float32 [width]: no bits and counts, and the training rows' median of each other column."""
        return np.concatenate([np.zeros(self.n_counts, dtype=np.float32), self.fill])

    def names(self) -> tuple[str, ...]:
        """The name of each column: its number in a fingerprint, a descriptor's own, or that of the table's column."""
        known = {"descriptors": DESCRIPTORS.get(self.choice, ()), "rdkit200": DESCRIPTORS.get(self.choice, ())}
        parts = ((known.get(item.name) or [f"{item.name} {i}" for i in range(item.width)]) for item in self.featurisers)
        return (*(name for part in parts for name in part), *self.extra)

    def meta(self) -> dict[str, Any]:
        """JSON values that rebuild these features, without ``fill``."""
        return {
            "choice": self.choice,
            "radius": self.radius,
            "n_bits": self.n_bits,
            "extra": list(self.extra),
            "descriptors": list(DESCRIPTORS.get(self.choice, ())),
            **({} if self.encoder is None else {"encoder": dict(self.encoder.state().meta)}),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that rebuild these features, by name."""
        kept = {} if self.encoder is None else self.encoder.state().arrays
        return {"fill": self.fill, **{f"encoder.{name}": value for name, value in kept.items()}}

    @classmethod
    def from_meta(
        cls, meta: Mapping[str, Any], fill: np.ndarray, encoder: Mapping[str, np.ndarray] | None = None
    ) -> Features:
        """Rebuild from the values of a model file; raises ``ModelFileError`` where they are not whole."""
        try:
            features = cls(meta["choice"], int(meta["radius"]), int(meta["n_bits"]), tuple(meta["extra"]), fill)
            if "encoder" in meta:
                features = replace(features, encoder=restore_vectors(encoder or {}, meta["encoder"]))
            known = list(meta["descriptors"]) == features.meta()["descriptors"]
        except (KeyError, TypeError, ValueError, UsageError) as error:
            words = f"the model's features are not whole: {error}"
            raise DamagedModelError(words, hint="fetch the file again") from error
        if not known:
            raise ModelFileError("the model uses other descriptors than this molgraph", hint="install its version")
        sane = 8 <= features.n_bits <= 2**20 and features.n_bits % 8 == 0 and 0 <= features.radius <= 16
        if not sane or fill.shape != (features.width - features.n_counts,) or not np.isfinite(fill).all():
            raise DamagedModelError("the model's features are not whole", hint="fetch the file again")
        return features

    def _raw(
        self, table: Table, threads: int, store: str | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Bits and counts, the other columns with gaps, their rows, and the table's status and reasons."""
        rows, folder = np.flatnonzero(table.ok), None if store is None else store_folder(store)
        parts: list[np.ndarray] = []
        for featuriser in self.featurisers:
            texts = list(table.entity(featuriser.entity).values[rows])
            result = cached_features(featuriser, texts, threads, folder)
            if not result.ok.all():  # unreadable; or another featuriser takes too long
                table = table.with_status(rows[~result.ok], UNREADABLE, result.reasons[~result.ok])
                rows, parts = rows[result.ok], [part[result.ok] for part in parts]
            parts.append(result.x[result.ok])
        if self.extra:
            parts.append(self._extra(table)[rows].astype(np.float32))
        n = sum(featuriser.counts for featuriser in self.featurisers)  # those of bits and counts come first
        counts = np.concatenate([np.empty((len(rows), 0), np.float32), *parts[:n]], axis=1)
        other = np.concatenate([np.empty((len(rows), 0), np.float32), *parts[n:]], axis=1)
        return counts, other, rows, table.status, table.reason

    def _extra(self, table: Table) -> np.ndarray:
        have = list(table.feature_names)
        lacking = [name for name in self.extra if name not in have]
        if lacking or table.features is None:
            raise MissingColumnError(
                f"the model was trained with the feature columns {list(self.extra)}, the table lacks {lacking}",
                hint="give the same columns with features=",
            )
        with np.errstate(over="ignore"):
            return table.features[:, [have.index(name) for name in self.extra]]

    def _filled(self, counts: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.hstack([counts, np.where(np.isfinite(other), other, self.fill)], dtype=np.float32)
