"""Tell whether generated molecules differ from a reference in their parts or in how parts are combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from molgraph.base.seeds import generator
from molgraph.chem.fingerprints import morgan
from molgraph.chem.scaffold import scaffolds
from molgraph.evaluate.generation.sample import Sample

PARTS = {
    "scaffold": "scaffolds",
    "decoration": "decorations",
    "properties": "properties",
    "combination": "the combination of parts",
}
WIDTH = 8  # principal components of a part
FOLDS = 3  # a molecule is judged by classifiers that have not seen it
FURTHEST = 5.0  # standard deviations at which a property is cut off
LEAST = 30  # molecules of either side, below which nothing is estimated
PENALTY = 0.1  # inverse penalty of a classifier's squared weights


class Ratios(NamedTuple):
    """Logarithms of density ratios of m rows, reference over sample, in nats.

    Args:
        parts: float64 [m, K], ``log p(x_i) / q(x_i)`` of each part.
        combination: float64 [m], ``log p(x) / prod_i p(x_i) - log q(x) / prod_i q(x_i)``.
    """

    parts: np.ndarray
    combination: np.ndarray

    def of(self, name: str) -> np.ndarray:
        """float64 [m], of one of ``PARTS``."""
        place = [*PARTS].index(name)
        return np.asarray(self.combination if name == "combination" else self.parts[:, place])

    @property
    def joint(self) -> np.ndarray:
        """float64 [m], ``log p(x) / q(x)``, the sum of all."""
        return np.asarray(self.parts.sum(axis=1) + self.combination)


def factorised_ratios(p: Sequence[np.ndarray], q: Sequence[np.ndarray], seed: int = 0) -> Ratios:
    """The log density ratio of each row of q, split into those of its parts and that of their combination.

    Stoller, Ewert and Dixon 2020, "Training Generative Adversarial Networks from Partial Observations using Factorised
    Discriminators", ICLR: ``log p(x)/q(x) = sum_i log p(x_i)/q(x_i) + log p(x)/prod p(x_i) - log q(x)/prod q(x_i)``,
    each term the logit of a classifier; the last two tell rows from rows whose parts were shuffled. The classifiers
    are logistic with quadratic features, and a row is judged by those that were fitted without it.

    Args:
        p: float [n, d_i] of each of K parts, of the reference.
        q: float [m, d_i], of the sample.
        seed: of the folds and of the shuffled parts.
    """
    rng = generator(seed, "factorised")
    folds = [rng.permutation(len(parts[0])) % FOLDS for parts in (p, q)]
    joint = [_Rows(np.concatenate(parts, axis=1), fold) for parts, fold in zip((p, q), folds, strict=True)]
    apart = [
        _Rows(np.concatenate([part[rng.permutation(len(part))] for part in parts], axis=1), fold)
        for parts, fold in zip((p, q), folds, strict=True)
    ]
    pairs = [(_Rows(one, folds[0]), _Rows(other, folds[1])) for one, other in zip(p, q, strict=True)]
    marginals = [_log_ratio(one, other, other) for one, other in pairs]
    combined = _log_ratio(joint[0], apart[0], joint[1]) - _log_ratio(joint[1], apart[1], joint[1])
    return Ratios(np.stack(marginals, axis=1), combined)


class _Rows(NamedTuple):
    """Rows, and the fold of each."""

    x: np.ndarray
    fold: np.ndarray


def _log_ratio(one: _Rows, other: _Rows, at: _Rows) -> np.ndarray:
    """float64, ``log one(x) / other(x)`` at rows, each by a classifier of the other folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    found = np.empty(len(at.x))
    for k in range(FOLDS):
        a, b = (each.x[each.fold != k] for each in (one, other))
        quadratic = PolynomialFeatures(2, include_bias=False)
        logistic = LogisticRegression(C=PENALTY, max_iter=300)
        classifier = make_pipeline(StandardScaler(), quadratic, StandardScaler(), logistic)
        classifier.fit(np.concatenate([a, b]), np.repeat([1, 0], [len(a), len(b)]))
        rows = at.fold == k
        found[rows] = classifier.decision_function(at.x[rows]) - np.log(len(a) / len(b))
    return found


def molecule_ratios(reference: Sample, sample: Sample, seed: int = 0) -> Ratios:
    """The same of the valid molecules of a sample: their scaffolds, decorations and properties; NaN of few molecules.

    A scaffold has the counts of its Morgan environments (radius 2), a decoration those of the molecule that its
    scaffold has not, each brought to eight principal components of both sides; properties are those of
    ``chem.drawn_molecules``, standardised.
    """
    n, m = len(reference.readable), len(sample.readable)
    if min(n, m) < LEAST:
        return Ratios(np.full((m, len(PARTS) - 1), np.nan), np.full(m, np.nan))
    p, q = [], []
    for both in molecule_parts([*reference.canonical, *sample.canonical], [reference, sample]):
        p.append(both[:n])
        q.append(both[n:])
    return factorised_ratios(p, q, seed)


def molecule_parts(smiles: Sequence[str], samples: Sequence[Sample]) -> list[np.ndarray]:
    """float64 [n, d_i] of the scaffold, the decoration and the properties of molecules of several samples in order."""
    whole = morgan(list(smiles), counts=True).x.astype(np.float64)
    cores = [str(each) for each in scaffolds(list(smiles)).values]
    core = np.zeros_like(whole)
    ringed = [i for i, text in enumerate(cores) if text]
    if ringed:
        core[ringed] = morgan([cores[i] for i in ringed], counts=True).x
    properties = np.nan_to_num(np.concatenate([each.properties for each in samples]))
    scaled = (properties - properties.mean(axis=0)) / np.maximum(properties.std(axis=0), 1e-9)
    parts = (np.log1p(core), np.log1p(np.maximum(whole - core, 0.0)), np.clip(scaled, -FURTHEST, FURTHEST))
    return [components(part) for part in parts]


def components(x: np.ndarray) -> np.ndarray:
    """float64 [n, 8], the first principal components; fewer where there are no more columns."""
    from sklearn.decomposition import PCA

    return np.asarray(PCA(min(WIDTH, *x.shape), random_state=0).fit_transform(x))
