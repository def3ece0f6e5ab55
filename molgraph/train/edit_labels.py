"""Labels for pretraining on matched molecular pairs: each molecule's cuts as numbers, and the pairs of each edit."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from molgraph.base.errors import LabelError
from molgraph.base.seeds import generator
from molgraph.chem.matched_pairs import cuts
from molgraph.train.row_groups import RowGroups
from molgraph.train.row_labels import RowLabels
from molgraph.train.samples import Samples

CUTS = 12  # of a molecule that are kept
CODES = 1 << 24  # whole numbers that float32 holds
SERIES = 32  # molecules of one context that are paired with each other


class EditLabels(RowLabels):
    """Context and group of up to 12 cuts of each molecule (``chem.matched_pairs``), as numbers; NaN past the last."""

    name, width = "edits", 2 * CUTS

    def fit(self, texts: Sequence[str], workers: int) -> None:
        """Nothing is fitted."""

    def make(self, texts: Sequence[str], workers: int) -> np.ndarray:
        """float32 [n, 24]: context, group, context, group and so on."""
        out = np.full((len(texts), self.width), np.nan, np.float32)
        for row, row_cuts in zip(out, cuts(texts, workers), strict=True):
            codes = [zlib.crc32(part.encode()) % CODES for cut in row_cuts[:CUTS] for part in cut]
            row[: len(codes)] = codes
        return out


class EditPairs(RowGroups):
    """The edits that occur in two contexts or more; a group is two pairs, rows before, after, before, after.

    An edit replaces one group by another one in one context: a matched molecular pair. Each is taken in the direction
    in which the group's number grows, for the way back is its negative.

    Args:
        samples: rows with ``EditLabels``.
        n_groups: edits of a batch.
        required: whether to refuse rows without an edit that occurs twice.

    Raises:
        LabelError: there is none.
    """

    def __init__(self, samples: Samples, n_groups: int, required: bool = True) -> None:
        super().__init__(samples, n_groups)
        assert samples.y is not None
        self.pairs = repeated_edits(samples.y[np.arange(len(samples))])
        if required and len(self.pairs) < 2:
            words = "no two edits occur in two series of the molecules"
            raise LabelError(words, hint="give more molecules, such as series of analogues")

    @property
    def count(self) -> int:
        """How many edits there are."""
        return len(self.pairs)

    def rows(self, group: int, rng: np.random.Generator) -> np.ndarray:
        """int64 [4]: the rows of two pairs of different contexts."""
        pairs = self.pairs[group]
        first, second = rng.choice(len(pairs), 2, replace=False)
        rows: np.ndarray = np.concatenate([pairs[first], pairs[second]])
        return rows


def repeated_edits(labels: np.ndarray) -> list[np.ndarray]:
    """For each edit that occurs in two contexts or more, int64 [k, 2]: one pair of rows of each context.

    Args:
        labels: float32 [n, 24].
    """
    series = defaultdict[int, dict[int, int]](dict)  # context -> group -> row, the first of those that are the same
    rows, places = np.nonzero(np.isfinite(labels[:, ::2]))
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        series[int(labels[row, 2 * place])].setdefault(int(labels[row, 2 * place + 1]), row)
    edits = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
    for context, row_of in sorted(series.items()):
        groups = sorted(row_of)
        if len(groups) > SERIES:
            groups = sorted(generator(0, "edits", context).choice(groups, SERIES, replace=False).tolist())
        for one, other in combinations(groups, 2):
            edits[one, other].append((row_of[one], row_of[other]))
    return [np.array(pairs) for _, pairs in sorted(edits.items()) if len(pairs) > 1]
