"""Judge vectors of molecules by a ridge regression of solubility (ESOL), on scaffolds that it has not seen."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.linear_model import RidgeCV

from molgraph.data.read import read_table
from molgraph.data.splits import split_table
from molgraph.data.table import Table


@cache
def esol() -> Table:
    """The readable rows."""
    table = read_table("dataset:esol", on_error="keep")
    return table.take(np.flatnonzero(table.ok))


@cache
def parts(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """int64: rows of the training part and of the test part."""
    split = split_table(esol(), "scaffold/balanced", fractions=(0.8, 0.0, 0.2), seed=seed, quiet=True)
    return split.train, split.test


def rmse(x: np.ndarray, seed: int) -> float:
    """Error of a ridge regression, in log mol/l, whose penalty the training part chooses.

    Args:
        x: float [n, d], a vector for each row.
        seed: of the split.
    """
    y, (train, test) = esol().y, parts(seed)
    assert y is not None
    x = np.asarray(x, dtype=np.float64)
    z = (x - x[train].mean(axis=0)) / (x[train].std(axis=0) + 1e-9)
    made = RidgeCV(np.logspace(-2, 4, 13)).fit(z[train], y[train, 0])
    return float(np.sqrt(np.mean((made.predict(z[test]) - y[test, 0]) ** 2)))


def counts(texts: list[list[str]]) -> np.ndarray:
    """float64 [n, words]: how often each text has each word."""
    words = {word: i for i, word in enumerate(sorted({word for text in texts for word in text}))}
    x = np.zeros((len(texts), len(words)))
    for row, text in enumerate(texts):
        np.add.at(x[row], [words[word] for word in text], 1)
    return x
