"""Draw batches of groups of related rows, such as conformers of one molecule, for objectives that compare them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from molgraph.train.samples import Sample, Samples


class RowGroups(ABC):
    """Make batches of groups of rows; an objective returns one from ``Objective.sampler``.

    Args:
        samples: the rows.
        n_groups: groups of a batch.
    """

    def __init__(self, samples: Samples, n_groups: int) -> None:
        self.samples, self.n_groups = samples, n_groups

    @property
    @abstractmethod
    def count(self) -> int:
        """How many groups there are."""

    @abstractmethod
    def rows(self, group: int, rng: np.random.Generator) -> np.ndarray:
        """int64: rows of a group, in the order in which the batch has them."""

    def turns(self) -> list[np.ndarray]:
        """The groups of batches in which each of them comes once; the last one has no fewer than the others but one."""
        return np.array_split(np.arange(self.count), -(-self.count // self.n_groups)) if self.count else []

    def sample(
        self, rng: np.random.Generator, groups: np.ndarray | None = None, views: np.random.Generator | None = None
    ) -> Sample:
        """A batch of these groups, or of some drawn at random."""
        if groups is None:
            groups = rng.choice(self.count, min(self.n_groups, self.count), replace=False)
        return self.samples.sample(np.concatenate([self.rows(int(group), rng) for group in groups]), views)
