"""Measure by H-divergence whether training and test rows of a split ask for different regressions of a target."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from molgraph.base.errors import LabelError
from molgraph.base.seeds import generator
from molgraph.chem.fingerprints import morgan
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.evaluate.h_divergence import PERMUTATIONS, Divergence, h_divergence

Decision = Literal["ridge", "mean"]
MOST = 20_000  # rows that are read, drawn by the seed


class DecisionRows(NamedTuple):
    """What a decision about a target reads, of the rows that have a label and a fingerprint.

    Args:
        rows: int64 [n], row numbers of the table.
        x: float64 [n, d], principal components of Morgan fingerprints, of variance 1; d is 0 for means.
        y: float64 [n, k], the labels with a variance of 1 in sum; classes as indicators.
        target: its name.
    """

    rows: np.ndarray
    x: np.ndarray
    y: np.ndarray
    target: str

    def compare(
        self, first: np.ndarray, second: np.ndarray, *, seed: int = 0, permutations: int = PERMUTATIONS
    ) -> Divergence | None:
        """The divergence between two sets of row numbers of the table; None where one has fewer than two of them."""
        one, other = (np.flatnonzero(np.isin(self.rows, rows)) for rows in (first, second))
        if min(len(one), len(other)) < 2:
            return None
        sets = [(self.x[rows], self.y[rows]) for rows in (one, other)]
        return h_divergence(*sets, seed=seed, permutations=permutations)

    def of_split(self, split: Split, *, seed: int = 0) -> Divergence | None:
        """The divergence of the test rows from the training rows of a split."""
        return self.compare(split.train, split.test, seed=seed)


def decision_rows(table: Table, by: Decision = "ridge", components: int = 16, *, seed: int = 0) -> DecisionRows:
    """The rows that a ridge regression, or a mean, of the first target reads.

    Args:
        table: of molecules.
        by: ``ridge``, or ``mean``, which reads no molecule.
        components: principal components, at most.
        seed: of the rows, where there are more than 20,000, and of the components.

    Raises:
        LabelError: no target of rows, or one without two different labels among ten readable rows.
    """
    if table.y is None or not table.row_targets:
        raise LabelError("the table has no target of its rows, whose shift could matter", hint="name it: -t COLUMN")
    target, prints = table.row_targets[0], morgan(list(table.smiles))
    column = table.y[:, 0].astype(np.float64)
    rows = np.flatnonzero(np.isfinite(column) & prints.ok)
    if len(rows) > MOST:
        rows = np.sort(generator(seed, "decisions").permutation(rows)[:MOST])
    labels = column[rows]
    if len(rows) < 10 or np.ptp(labels) == 0:
        words = f"{len(rows):,} rows have a molecule and a value of {target.name}, {len(np.unique(labels))} different"
        raise LabelError(words, hint="a shift of what decides needs ten rows and labels that vary")
    y = labels[:, None]
    if target.kind == "multiclass":
        y = np.equal.outer(labels, np.unique(labels)).astype(np.float64)
    y = (y - y.mean(axis=0)) / np.sqrt(y.var(axis=0).sum())
    x = np.zeros((len(rows), 0))
    if by == "ridge":
        x = _components(prints.x[rows].astype(np.float32), components, seed)
    return DecisionRows(rows, x, y, target.name)


def _components(bits: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Float64 [n, d]: principal components that vary, divided by their deviation."""
    from sklearn.decomposition import PCA

    k = max(min(most, len(bits) // 5), 1)
    pca = PCA(k, svd_solver="randomized", random_state=generator(seed, "components").integers(2**31))
    x = np.asarray(pca.fit_transform(bits), dtype=np.float64)
    spread = x.std(axis=0)
    return x[:, spread > 1e-4] / spread[spread > 1e-4]
