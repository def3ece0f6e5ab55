"""Draw episodes for meta-learning: a few tasks, each with support rows to learn from and query rows to score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from molgraph.base.errors import LabelError
from molgraph.train.samples import Sample, Samples


class Episodes(NamedTuple):
    """What an objective asks of a batch.

    Args:
        n_tasks: tasks a batch.
        shots: rows of a task's support, at most half of those that have a label of it.
        queries: rows of its query, at most.
        classes: whether labels are of two classes: then support and query have both, where there are two rows of each.
    """

    n_tasks: int
    shots: int
    queries: int
    classes: bool = False

    def divide(
        self, y: np.ndarray, known: np.ndarray, tasks: Sequence[int] | np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw support and query of some tasks.

        Args:
            y: float [n, t], labels.
            known: bool [n, t], where there is one; two or more of each of the tasks.
            tasks: columns of y.
            rng: random numbers.

        Returns:
            int64 [rows], all of the batch, each once and in a random order; and bool [2, rows, t], those of each
            task's support, and of its query.
        """
        drawn = {task: self._draw(y[:, task], np.flatnonzero(known[:, task]), rng) for task in tasks}
        rows = rng.permutation(np.unique(np.concatenate([part for both in drawn.values() for part in both])))
        parts = np.zeros((2, len(rows), y.shape[1]), bool)
        for task, both in drawn.items():
            parts[:, :, task] = [np.isin(rows, part) for part in both]
        return rows, parts

    def _draw(self, y: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.permutation(rows)
        if self.classes:  # the first of each class in front, where the support begins, the second at the query's end
            high = y[rows] > 0.5
            place = np.where(high, high.cumsum(), (~high).cumsum())
            rows = rows[np.argsort(np.select([place == 1, place == 2], [0, 2], 1), kind="stable")]
        n_support = min(self.shots, len(rows) // 2)
        return rows[:n_support], rows[max(n_support, len(rows) - self.queries) :]


class EpisodeSampler:
    """Make batches of episodes from rows with labels of many tasks.

    Args:
        samples: the rows.
        episodes: what a batch has.

    Raises:
        LabelError: no task has two labels.
    """

    def __init__(self, samples: Samples, episodes: Episodes) -> None:
        assert samples.y is not None and samples.weights is not None
        self.samples, self.episodes, self.known = samples, episodes, samples.weights > 0
        enough = self.known.sum(axis=0) > 1
        if episodes.classes:
            high = (self.known & (samples.y > 0.5)).sum(axis=0)
            both = np.minimum(high, self.known.sum(axis=0) - high) > 1
            enough = both if both.any() else enough
        self.tasks = np.flatnonzero(enough)
        if not len(self.tasks):
            words = "no task has two labels in one part of the split, one to learn from and one to be judged by"
            raise LabelError(words, hint="give more rows, or larger parts (--fractions)")

    def turns(self) -> list[np.ndarray]:
        """The tasks of batches in which each of them comes once."""
        return np.array_split(self.tasks, -(-len(self.tasks) // self.episodes.n_tasks))

    def sample(
        self, rng: np.random.Generator, tasks: np.ndarray | None = None, views: np.random.Generator | None = None
    ) -> Sample:
        """A batch of these tasks, or of some drawn at random; its weights are float [2, rows, t], support and query.

        ``views``: random numbers of the views through which training sees its rows.
        """
        if tasks is None:
            tasks = rng.choice(self.tasks, min(self.episodes.n_tasks, len(self.tasks)), replace=False)
        assert self.samples.y is not None
        rows, parts = self.episodes.divide(self.samples.y, self.known, tasks, rng)
        sample = self.samples.sample(rows, views)
        assert sample.weights is not None
        sample.weights = sample.weights * torch.from_numpy(parts)
        return sample
