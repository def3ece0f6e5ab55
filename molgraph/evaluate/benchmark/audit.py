"""Measure how often a split ranks two methods in the other order than another split does (robust sign error)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm

from molgraph.base.errors import BadValueError, EmptyError, nearest
from molgraph.base.paths import missing_file
from molgraph.evaluate.benchmark.run_folder import SCORES
from molgraph.evaluate.benchmark.scoring import read_scores

WORDS = ["dataset", "target", "metric"]


class SignErrors(NamedTuple):
    """Pairs of methods.

    Args:
        error: float64 [pairs], 0 where both order the pair alike, 1 where not, 0.5 where one has a tie.
        weight: float64 [pairs], 0 to 1, how sure the true order is.
    """

    error: np.ndarray
    weight: np.ndarray

    @property
    def mean(self) -> float:
        """The weighted mean; NaN where no order is sure at all."""
        return float(np.average(self.error, weights=self.weight)) if self.weight.sum() > 0 else np.nan


def sign_errors(criterion: np.ndarray, truth: np.ndarray) -> SignErrors:
    """``1/2 |1 - sgn(C_1 - C_2) sgn(G_1 - G_2)|`` of all pairs of methods.

    Dziugaite et al. 2020, "In search of robust measures of generalization", equation 3: pairs count by the confidence
    that G differs, here ``2 Phi(|mean difference| / standard error) - 1`` over the folds, so that near ties have no
    weight.

    Args:
        criterion: float [m], by which methods are ranked.
        truth: float [m, k], k folds of what is to be ranked; a single one has weight 1 wherever it differs.

    Example:
        >>> sign_errors(np.array([3.0, 1.0]), np.array([[1.0], [2.0]]))
        SignErrors(error=array([1.]), weight=array([1.]))
    """
    i, j = np.triu_indices(len(criterion), 1)
    difference = truth[i] - truth[j]
    mean, k = difference.mean(axis=1), truth.shape[1]
    error = difference.std(axis=1, ddof=1) / np.sqrt(k) if k > 1 else np.zeros(len(mean))
    z = np.divide(np.abs(mean), error, out=np.where(mean != 0, np.inf, 0.0), where=error > 0)
    return SignErrors(0.5 * np.abs(1 - np.sign(criterion[i] - criterion[j]) * np.sign(mean)), 2 * norm.cdf(z) - 1)


def recorded_scores(folder: Path) -> pd.DataFrame:
    """The scores that a run's folder or a record of it holds.

    Raises:
        CannotReadError: the folder holds none.
    """
    for name in (SCORES, f"{SCORES}.gz"):
        if (folder / name).is_file():
            return read_scores(folder / name)
    raise missing_file(folder / SCORES)


def audit_scores(scores: pd.DataFrame, truth: str = "") -> pd.DataFrame:
    """A row for each split and dataset: how often the split orders two methods otherwise than the true split does.

    Args:
        scores: of a run, as ``scores.csv`` has them.
        truth: the label of the split whose order is wanted; the last of the run if empty.

    Returns:
        Columns criterion, truth, dataset, target, metric, pairs, sure_pairs (the sum of the weights), sign_error. Rows
        of the dataset ``mean`` and ``worst`` have the mean and the largest of the datasets.

    Raises:
        BadValueError: no such split.
        EmptyError: one split alone, or none with two methods that have all folds.
    """
    done = scores[(scores["status"] == "ok") & scores["value"].notna()]
    leading = done.groupby(WORDS[:2], sort=False)["metric"].transform("first")
    done, labels = done[done["metric"] == leading], [*dict.fromkeys(done["split"])]
    truth = truth or (labels[-1] if labels else "")
    if len(labels) < 2:
        raise EmptyError(f"the run has {len(labels)} split(s) with scores", hint="an audit compares two splits or more")
    if truth not in labels:
        raise BadValueError(f"no split is labelled {truth!r}", hint=nearest(truth, labels))
    rows = []
    for names, own in done.groupby(WORDS, sort=False):
        higher = own["higher_is_better"].astype(str).iloc[0] == "True"
        tables = {label: _folds(part, higher) for label, part in own.groupby("split", sort=False)}
        for label in labels:
            if label == truth or label not in tables or truth not in tables:
                continue
            both = tables[label].index.intersection(tables[truth].index)
            if len(both) < 2:
                continue
            criterion = tables[label].loc[both].mean(axis=1).to_numpy()
            found = sign_errors(criterion, tables[truth].loc[both].to_numpy())
            rows.append((label, truth, *names, len(found.error), found.weight.sum(), found.mean))
    frame = pd.DataFrame(rows, columns=["criterion", "truth", *WORDS, "pairs", "sure_pairs", "sign_error"])
    if frame.empty:
        raise EmptyError("no two methods have scores on two splits", hint="run the same methods on both splits")
    whole = []
    for label, own in frame.groupby("criterion", sort=False):
        for word, value in (("mean", own["sign_error"].mean()), ("worst", own["sign_error"].max())):
            whole.append((label, truth, word, "", "", own["pairs"].sum(), own["sure_pairs"].sum(), value))
    return pd.concat([frame, pd.DataFrame(whole, columns=frame.columns)], ignore_index=True)


def _folds(part: pd.DataFrame, higher: bool) -> pd.DataFrame:
    """A row for each method that has all folds, a column for each fold (its seeds' mean); more is better."""
    values = part.assign(value=part["value"] * (1 if higher else -1))
    return values.pivot_table(index="method", columns=["repeat", "fold"], values="value").dropna()
