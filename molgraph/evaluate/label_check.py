"""Detect test predictions that are copies of the labels, or nearer to them than the labels' noise allows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from scipy.stats import rankdata

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError, MolgraphError
from molgraph.data.cards import card

LEAST = 20  # measured values of a fold from which labels in the place of predictions are looked for
EQUAL = 0.5  # share of the rows that are equal to the labels
SURE = 0.98  # mean probability of the measured class, in the rows of each class
NEAR = 1 / 3  # of the labels' noise
TIGHT = 1e-4  # of the labels' variance, or of their ranks'


def label_noise(dataset: str) -> float:
    """The standard deviation of a dataset's labels by its card; 0 where nothing is known."""
    with suppress(MolgraphError):  # a table of one's own has no card
        return card(dataset).noise.sd or 0.0
    return 0.0


def refuse_labels(
    targets: Sequence[Target], measured: np.ndarray | None, value: np.ndarray, noise: float, where: str
) -> None:
    """Raise ``DataError`` where the columns of a target, float [rows, columns], are its labels, or nearly so.

    Args:
        targets: those of the tested rows.
        measured: their labels, float [rows, targets].
        value: columns of the table's targets in order, NaN where nothing was predicted.
        noise: standard deviation of the labels; 0 where it is not known.
        where: names the fold, or the method.
    """
    assert measured is not None
    ends = np.cumsum([len(target.columns) for target in targets])
    for target, labels, columns in zip(targets, measured.T, np.split(value, ends[:-1], axis=1), strict=True):
        p, y = columns.astype(np.float32), labels.astype(np.float32)
        there = np.isfinite(y) & np.isfinite(p).all(axis=1)
        if there.sum() < LEAST:
            continue
        scores = p[there] if target.kind == "multiclass" else p[there, 0]
        if words := perfect(scores, y[there], target.kind == "binary", noise):
            raise DataError(
                f"{where}: the predictions of {target.name!r} {words}",
                hint="these look like labels: predict the test rows from the training rows",
            )


def perfect(p: np.ndarray, y: np.ndarray, binary: bool, noise: float) -> str:
    """Why predictions cannot have been made without the labels; empty where they can.

    ``p``: float [n], or of several classes their probabilities, float [n, classes].

    Example:
        >>> y = np.arange(30.0)
        >>> perfect(y, y, False, 0.0), perfect(2.0 - 3.0 * y, y, False, 0.0), perfect(np.roll(y, 1), y, False, 0.0)
        ('are the measured values themselves in 100% of the rows', 'follow the labels with R² above 0.9999', '')
    """
    if len(np.unique(y)) == 1:
        return ""
    if binary or p.ndim > 1:
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < LEAST // 2:
            return ""
        right = p if p.ndim > 1 else np.stack([1 - p, p], axis=1)
        share = min(float(right[y == k, int(k)].mean()) for k in classes)
        if share >= SURE:
            return f"give the measured class {share:.0%} in the rows of each class, or more"
        apart = binary and p[y == 1].min() > p[y == 0].max()
        return "put every molecule of class 1 above all of class 0" if apart else ""
    same, error = float((p == y).mean()), float((p - y).std())
    if same >= EQUAL:
        return f"are the measured values themselves in {same:.0%} of the rows"
    if error < NEAR * noise:
        return f"are nearer to the labels ({error:.2g}) than repeats of the measurement ({noise:.2g})"
    for name, a, b in (("R²", p, y), ("R² of ranks", rankdata(p), rankdata(y))):  # whatever their unit or sign
        if a.std() > 0 and 1 - np.corrcoef(a, b)[0, 1] ** 2 < TIGHT:
            return f"follow the labels with {name} above 0.9999"
    return ""
