"""Weighted conformal prediction: intervals that hold for a library that is unlike the training set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.errors import EmptyError, LabelError
from molgraph.base.ranges import Range
from molgraph.chem.properties import properties
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.trust.conformal import NUMBERS, RANDOM, Conformal
from molgraph.trust.wrapper import register_wrapper

LARGEST, FOLDS, FEWEST = 50.0, 5, 10  # of a weight, and 1 / 50 at least; of the classifier; held-out and library rows
MOST = 5_000  # molecules of the library that are read
MARGIN = 1e-9


@register_wrapper(
    "weighted_conformal",
    tags=("uncertainty",),
    summary="intervals that hold for a library unlike the training set, from weighted held-out rows",
    paper="Tibshirani et al. 2019, NeurIPS",
)
class WeightedConformal(Conformal):
    """Conformal intervals whose held-out rows count by how much they are like the molecules of a library.

    Tibshirani et al. 2019, equation 7: with ``w(x)``, the ratio of the densities of the library and of the held-out
    rows, the interval is ``f(x) -+ q u(x)``, q being the smallest score at which the rows up to it have the share
    ``coverage`` of all weights and that of x. The ratio is the odds of a logistic regression on eight properties
    (heavy atoms, logP, polar surface, donors, acceptors, rotatable bonds, rings, share of sp3 carbons), which learns to
    tell the two apart; that of held-out rows is out of fold. Weights are between 1/50 and 50.

    Use it where the molecules to predict are known and are, say, larger or more polar than those measured.
    Known limits: where a molecule is unlike all held-out rows there is no interval (NaN); a shift in structure that
    the eight properties do not show is not corrected; classes have no interval.

    Args:
        method: what is wrapped.
        toward: the library, a file or a table such as ``builtin:nci``; read while training alone.
        coverage, share, split, seed, params, threads, store: as ``conformal`` has them.

    Example:
        >>> WeightedConformal("random_forest", toward="builtin:nci").title
        'weighted_conformal of random_forest'
    """

    name = "weighted_conformal"
    learns = ("scores", "weights", "median", "coefficients", "centre", "scale")
    small = MappingProxyType({"method": "linear", "share": 0.4, "toward": "builtin:chembl2321810"})

    def __init__(
        self,
        method: str = "dmpnn",
        toward: str = "builtin:nci",
        coverage: Annotated[float, Range(0.01, 0.999)] = 0.9,
        share: Annotated[float, Range(0.01, 0.9)] = 0.2,
        split: str = RANDOM,
        seed: int = 0,
        params: Mapping[str, Any] | None = None,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        super().__init__(method, coverage, share, split, seed, params, threads, store)
        self.toward = toward

    def learn(self, prediction: Prediction, table: Table) -> dict[str, np.ndarray]:
        """Scores of the held-out rows, float64 [m, columns] and -1 where there is none, and their weights [m]."""
        assert table.y is not None
        median = self._medians(prediction)
        unit, scores, column = self._unit(prediction, median), np.full(prediction.value.shape, -1.0), 0
        for j, target in enumerate(table.row_targets):
            if target.kind in NUMBERS:
                residuals = np.abs(table.y[:, j] - prediction.value[:, column]) / unit[:, column]
                scores[:, column] = np.where(np.isfinite(residuals), residuals, -1.0)
            column += len(target.columns)
        here, there = properties(table.smiles), properties(read_table(self.toward).smiles[:MOST])
        use, there = np.isfinite(here).all(axis=1), there[np.isfinite(there).all(axis=1)]
        if use.sum() < FEWEST:
            words = f"{int(use.sum())} molecules are held out, too few for weights"
            raise LabelError(words, hint=f"set share higher than {self.share:g}")
        if len(there) < FEWEST:
            words = f"{self.toward} has {len(there)} molecules that can be read, expected {FEWEST} or more"
            raise EmptyError(words, hint="name a larger library: weighted_conformal(toward=FILE)")
        weights, learned = _density_ratio(here[use], there)
        return {"scores": scores[use], "weights": weights, "median": median, **learned}

    def predict_graphs(self, table: Table, graphs: Sequence[CachedGraphs] | None) -> Prediction:
        """The prediction with its interval; NaN where the held-out rows do not reach the coverage."""
        prediction = self._combined(table, graphs)
        x = (properties(table.smiles) - self.learned["centre"]) / self.learned["scale"]
        odds = x @ self.learned["coefficients"][1:] + self.learned["coefficients"][0]
        half = self.half_widths(np.exp(np.clip(odds, -np.log(LARGEST), np.log(LARGEST))))
        half *= self._unit(prediction, self.learned["median"])
        return replace(prediction, interval=(prediction.value - half, prediction.value + half))

    def half_widths(self, weight: np.ndarray) -> np.ndarray:
        """float64 [n, columns], in units of ``u``, of molecules of these weights [n]; NaN where there is none."""
        out = np.full((len(weight), self.learned["scores"].shape[1]), np.nan)
        for j, scores in enumerate(self.learned["scores"].T):
            order = np.argsort(scores)
            order = order[scores[order] >= 0]
            held = np.cumsum(self.learned["weights"][order])
            if len(held):
                place = np.searchsorted(held, self.coverage * (held[-1] + weight) - MARGIN)
                fine = (place < len(held)) & np.isfinite(weight)
                out[fine, j] = scores[order][place[fine]]
        return out


def _density_ratio(here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The weights of the held-out rows, out of fold, and the coefficients that give those of others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    x, label = np.concatenate([here, there]), np.repeat([0, 1], [len(here), len(there)])
    centre, scale = x.mean(axis=0), np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    x, prior = (x - centre) / scale, np.log(len(there) / len(here))
    model = LogisticRegression()
    odds = cross_val_predict(model, x, label, cv=FOLDS, method="decision_function")[: len(here)] - prior
    model.fit(x, label)
    coefficients = np.concatenate([model.intercept_ - prior, model.coef_[0]])
    weights = np.exp(np.clip(odds, -np.log(LARGEST), np.log(LARGEST)))
    return weights, {"coefficients": coefficients, "centre": centre, "scale": scale}
