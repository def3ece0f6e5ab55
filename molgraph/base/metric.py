"""Define ``Metric``, the base class of scores such as RMSE and ROC AUC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from molgraph.base.table import Kind


@dataclass(frozen=True)
class Metric:
    """What judges predictions.

    Args:
        name: the field's standard name, lower case: ``rmse``, ``roc_auc``.
        function: ``(y_true [n], y_predicted [n]) -> float``; sees finite values only. Predictions are values,
            probabilities of class 1, or, of several classes, probabilities [n, classes].
        higher_is_better: the direction.
        kinds: kinds of target that it can judge.
        label: what a reader of a table calls it; the name where empty.
        needs: what the rows and the prediction must have, in words.
        paper: where it is from.
    """

    name: str
    function: Callable[[np.ndarray, np.ndarray], float]
    higher_is_better: bool
    kinds: tuple[Kind, ...]
    label: str = ""
    needs: str = ""
    paper: str = ""
