"""Scale extra descriptor columns to mean 0 and standard deviation 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from molgraph.base.errors import DataError

LIMIT = 30.0  # standard deviations: further out, a descriptor says no more than that it is far out


@dataclass(frozen=True)
class DescriptorScale:
    """Mean and scale of each descriptor over the training part.

    Args:
        names: the columns, which prediction needs again.
        mean, scale: float64 [f].
    """

    names: tuple[str, ...]
    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(
        cls, features: np.ndarray | None, names: tuple[str, ...], row_weights: np.ndarray | None = None
    ) -> DescriptorScale:
        """Take the scale from these rows alone, weighted as the loss is.

        Example:
            >>> d = DescriptorScale.fit(np.array([[1.0], [3.0]]), ("logp",))
            >>> d.apply(np.array([[3.0], [2.0]]), ("logp",)).ravel().tolist()
            [1.0, 0.0]
        """
        if features is None or not features.shape[1]:
            return cls((), np.zeros(0), np.ones(0))
        mean = np.average(features, axis=0, weights=row_weights)
        scale = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=row_weights))
        return cls(tuple(names), mean, np.where(scale > 1e-12 * np.maximum(1.0, np.abs(mean)), scale, 1.0))

    def apply(self, features: np.ndarray | None, names: tuple[str, ...]) -> np.ndarray | None:
        """float32 [n, f] in the order of ``self.names``; a gap, which no row that is ``ok`` has, becomes 0.

        Raises:
            DataError: a column that was learned from is not there.
        """
        if not self.names:
            return None
        missing = [name for name in self.names if name not in names]
        if missing or features is None:
            raise DataError(
                f"the model was trained with the feature columns {list(self.names)}, the table has no {missing[0]!r}",
                hint="give the same columns as features",
            )
        order = [names.index(name) for name in self.names]
        scaled = (features[:, order] - self.mean) / self.scale
        return np.clip(np.nan_to_num(scaled, nan=0.0), -LIMIT, LIMIT).astype(np.float32)
