"""Conformal prediction: intervals that contain the measured value at a chosen rate, for any regressor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.errors import LabelError, MolgraphError, UnsupportedError
from molgraph.base.ranges import Range
from molgraph.data.splits import split_table
from molgraph.data.table import Table
from molgraph.trust.wrapper import Wrapper, register_wrapper

RANDOM = "random"
NUMBERS = ("regression", "bounded")  # kinds of target that have an interval


@register_wrapper(
    "conformal",
    tags=("uncertainty",),
    summary="an interval for each number, of the coverage that is asked for, from rows that are held out",
    paper="Papadopoulos et al. 2002, ECML; Lei et al. 2018, J. Am. Stat. Assoc. 113:1094",
)
class Conformal(Wrapper):
    """Hold rows out, and let their errors say how wide an interval has to be (split conformal prediction).

    With scores ``s_i = |y_i - f(x_i)| / u(x_i)`` of the m rows that were held out, the interval of a new row is
    ``f(x) -+ q u(x)``, ``q`` being the ``ceil((m + 1) coverage)``-th smallest score. It covers the value with at least
    that probability where new rows are drawn as the held-out ones were. ``u`` is 1, or, where the method has a spread,
    the spread plus its median, so that intervals are wider where members disagree.

    Use it where a decision hangs on how wrong a number may be.
    Known limits: rows that are held out are not learned from; classes have no interval; a library that is unlike the
    training set is not covered as promised, which new scaffolds (``split``) soften.

    Args:
        method: what is wrapped, such as ``dmpnn``, ``random_forest`` or ``ensemble(dmpnn, n=5)``.
        coverage: share of values that intervals should hold.
        share: of the training rows that are held out.
        split: by which splitter they are; random ones where that cannot divide the rows.
        seed: of what is wrapped and of which rows are held out.
        params: hyper-parameters of what is wrapped.
        threads, store: of what is wrapped, where it knows them.

    Example:
        >>> Conformal("random_forest", coverage=0.8).title
        'conformal of random_forest'
    """

    name = "conformal"
    learns: tuple[str, ...] = ("width", "median")
    small = MappingProxyType({"method": "linear", "share": 0.3, "split": RANDOM})

    def __init__(
        self,
        method: str = "dmpnn",
        coverage: Annotated[float, Range(0.01, 0.999)] = 0.9,
        share: Annotated[float, Range(0.01, 0.9)] = 0.2,
        split: str = "scaffold/balanced",
        seed: int = 0,
        params: Mapping[str, Any] | None = None,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        super().__init__(method, params, seed, threads, store)
        self.coverage, self.share, self.split = coverage, share, split

    def hold_out(self, table: Table) -> tuple[Table, Table | None]:
        """A share of the rows, such as those of other scaffolds."""
        if not any(target.kind in NUMBERS for target in table.row_targets):
            raise UnsupportedError("conformal gives intervals of numbers, and no target is one", hint="leave it out")
        fractions = (1 - self.share, 0.0, self.share)
        try:
            split = split_table(table, self.split, fractions=fractions, seed=self.seed, quiet=True)
        except MolgraphError:  # too few scaffolds, or no molecules
            split = split_table(table, RANDOM, fractions=fractions, seed=self.seed, quiet=True)
        return table.take(split.train), table.take(split.test)

    def learn(self, prediction: Prediction, table: Table) -> dict[str, np.ndarray]:
        """The half-width of each column's interval in units of ``u``, below 0 for classes; the median of its spread."""
        assert table.y is not None
        n = prediction.value.shape[1]
        median = self._medians(prediction)
        unit, width, column = self._unit(prediction, median), np.full(n, -1.0), 0
        for j, target in enumerate(table.row_targets):
            if target.kind in NUMBERS:
                scores = np.abs(table.y[:, j] - prediction.value[:, column]) / unit[:, column]
                width[column] = self._quantile(np.sort(scores[np.isfinite(scores)]))
            column += len(target.columns)
        return {"width": width, "median": median}

    def adjust(self, prediction: Prediction) -> Prediction:
        """The prediction with its interval."""
        width = np.where(self.learned["width"] < 0, np.nan, self.learned["width"])
        half = width * self._unit(prediction, self.learned["median"])
        return replace(prediction, interval=(prediction.value - half, prediction.value + half))

    @staticmethod
    def _medians(prediction: Prediction) -> np.ndarray:
        """float64 [columns]: of the spread, 0 where there is none, as of classes."""
        if prediction.spread is None:
            return np.zeros(prediction.value.shape[1])
        known = [column[np.isfinite(column)] for column in prediction.spread.T]
        return np.array([np.median(column) if len(column) else 0.0 for column in known])

    @staticmethod
    def _unit(prediction: Prediction, median: np.ndarray) -> np.ndarray:
        if prediction.spread is None:
            return np.ones_like(prediction.value)
        return np.where(prediction.spread + median > 0, prediction.spread + median, 1.0)

    def _quantile(self, scores: np.ndarray) -> float:
        rank = math.ceil((len(scores) + 1) * self.coverage)
        if rank > len(scores):
            words = f"{len(scores)} labels are held out, too few for a coverage of {self.coverage:g}"
            raise LabelError(words, hint=f"set share higher than {self.share:g}, or coverage lower")
        return float(scores[rank - 1])
