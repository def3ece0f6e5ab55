"""Detect test predictions that are copies of the labels, or nearer to them than the labels' noise allows."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from molgraph.base.errors import DataError, MolgraphError
from molgraph.data.cards import card
from molgraph.data.table import Table

LEAST = 20  # measured values of a fold from which labels in the place of predictions are looked for
EQUAL = 0.5  # share of the rows that are equal to the labels
NEAR = 1 / 3  # of the labels' noise
TIGHT = 1e-4  # of the labels' variance


def label_noise(dataset: str) -> float:
    """The standard deviation of a dataset's labels by its card; 0 where nothing is known."""
    with suppress(MolgraphError):  # a table of one's own has no card
        return card(dataset).noise.sd or 0.0
    return 0.0


def refuse_labels(test: Table, value: np.ndarray, noise: float, where: str) -> None:
    """Raise ``DataError`` where the columns of a target, float [rows, columns], are its labels, or nearly so.

    Args:
        test: the tested rows, with labels.
        value: columns of the table's targets in order, NaN where nothing was predicted.
        noise: standard deviation of the labels; 0 where it is not known.
        where: names the fold, or the method.
    """
    assert test.y is not None
    first = 0
    for target, labels in zip(test.row_targets, test.y.T, strict=True):
        p, y = value[:, first].astype(np.float32), labels.astype(np.float32)
        first += len(target.columns)
        there = np.isfinite(y) & np.isfinite(p)
        if target.kind == "multiclass" or there.sum() < LEAST:
            continue
        if words := perfect(p[there], y[there], target.kind == "binary", noise):
            raise DataError(
                f"{where}: the predictions of {target.name!r} {words}",
                hint="these look like labels: predict the test rows from the training rows",
            )


def perfect(p: np.ndarray, y: np.ndarray, binary: bool, noise: float) -> str:
    """Why predictions cannot have been made without the labels; empty where they can.

    Example:
        >>> y = np.arange(30.0)
        >>> perfect(y, y, False, 0.0), perfect(y + 1.0, y, False, 0.0), perfect(np.sqrt(y), y, False, 0.0)
        ('are the measured values themselves in 100% of the rows', 'follow the labels with R² above 0.9999', '')
    """
    if len(np.unique(y)) == 1:
        return ""
    if binary:
        apart = p[y == 1].min() > p[y == 0].max() and min((y == 1).sum(), (y == 0).sum()) >= LEAST // 2
        return "put every molecule of class 1 above all of class 0" if apart else ""
    same, error = float((p == y).mean()), float((p - y).std())
    if same >= EQUAL:
        return f"are the measured values themselves in {same:.0%} of the rows"
    if error < NEAR * noise:
        return f"are nearer to the labels ({error:.2g}) than repeats of the measurement ({noise:.2g})"
    return "follow the labels with R² above 0.9999" if error**2 < TIGHT * float(y.var()) else ""
