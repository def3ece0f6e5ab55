"""Wrapper that takes class probabilities to 1/M far from the training molecules, with a certified bound (CCU)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, logsumexp
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from molgraph.base.contracts import Prediction
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import Range
from molgraph.base.systems import SystemCard
from molgraph.chem.descriptors import rdkit_descriptors
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.trust.wrapper import Wrapper, register_wrapper

CLASSES = ("binary", "multiclass")
FEW = 20  # molecules, at least, inside and outside
WIDER = 1.1  # of the outer mixture's narrowest component, beside the inner one's widest


class Mixture(NamedTuple):
    """Spherical Gaussians: their shares [k], centres [k, d] and widths [k]."""

    share: np.ndarray
    centre: np.ndarray
    width: np.ndarray

    def log_density(self, z: np.ndarray, nearer: float = 0.0) -> np.ndarray:
        """float64 [n], of float64 [n, d]; with ``nearer``, the most or (below 0) the least within that distance."""
        square = np.maximum((z**2).sum(1)[:, None] - 2 * z @ self.centre.T + (self.centre**2).sum(1), 0)
        far = np.maximum(np.sqrt(square) - nearer, 0)
        d = z.shape[1]
        return np.asarray(
            logsumexp(np.log(self.share) - d * np.log(self.width) - (far / self.width) ** 2 / 2, axis=1)
            - d / 2 * np.log(2 * np.pi)
        )


@register_wrapper(
    "ccu",
    tags=("uncertainty", "applicability domain"),
    summary="class probabilities that go to 1/M far from the training molecules, with a bound that can be certified",
    paper="Meinke and Hein 2020, ICLR, arXiv:1909.12180",
    systems=(
        SystemCard(
            "ccu",
            left_out="training of classifier and mixtures together: mixtures are fitted to the molecules alone; the "
            "bound holds for balls of descriptors, not of molecular graphs",
            off="random_forest",
            beside=("the classifier alone",),
            command="molgraph train dataset:tox21 -m 'ccu(random_forest)' -o model.mgm",
        ),
    ),
)
class CCU(Wrapper):
    """``p(y|z) = (p(y|x) p(z|in) + p(z|out) / M) / (p(z|in) + p(z|out))`` with mixtures of whitened descriptors z.

    Meinke and Hein 2020, equation 4, with as much chance inside as outside. Both densities are mixtures of spherical
    Gaussians, of the training molecules and of ``outside``; those of ``outside`` are the wider ones, so that far from
    all molecules every class has the probability 1/M. The most probable class of a molecule stays the same.
    ``log_ratio`` beside a prediction is ``log p(z|in) - log p(z|out)``.

    Use it where a confident wrong class costs more than an open answer.
    Known limits: predictions of numbers stay as they are; what the descriptors do not see is not far.

    Args:
        method: a classifier.
        outside: a table of molecules at large; NCI's by default.
        k: components of each mixture.
        width: descriptors after whitening, the first principal components.
        seed: of what is wrapped and of the mixtures.
        params: hyper-parameters of what is wrapped.
        threads, store: of what is wrapped, where it knows them.

    Example:
        >>> CCU("random_forest").title
        'ccu of random_forest'
    """

    name = "ccu"
    learns = ("mean", "axes", *(f"{side}_{part}" for side in ("in", "out") for part in Mixture._fields))
    small = MappingProxyType({"method": "linear", "k": 2, "width": 4})

    def __init__(
        self,
        method: str = "dmpnn",
        outside: str = "builtin:nci",
        k: Annotated[int, Range(1, 1000)] = 10,
        width: Annotated[int, Range(1, 100)] = 16,
        seed: int = 0,
        params: Mapping[str, Any] | None = None,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        super().__init__(method, params, seed, threads, store)
        self.outside, self.k, self.width = outside, k, width

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Fit the classifier, then the whitening and both mixtures."""
        x, _ = described(table)
        outer, _ = described(read_table(self.outside, on_error="keep"))
        if min(len(x), len(outer)) < FEW:
            words = f"{len(x)} molecules to learn from and {len(outer)} outside are too few for mixtures"
            raise EmptyError(words, hint="name a larger table, outside=FILE, or leave the wrapper out")
        super().fit(table, valid, workdir=workdir)
        scale = np.maximum(x.std(axis=0), 1e-6)
        pca = PCA(min(self.width, *x.shape), random_state=self.seed % 2**32).fit((x - x.mean(axis=0)) / scale)
        axes = pca.components_ / np.sqrt(np.maximum(pca.explained_variance_, 1e-9))[:, None] / scale
        self.learned |= {"mean": x.mean(axis=0), "axes": axes}
        inner = self._mixture(self.whitened(x))
        wide = self._mixture(self.whitened(outer))
        wide = wide._replace(width=np.maximum(wide.width, WIDER * inner.width.max()))
        self.learned |= {f"in_{name}": value for name, value in inner._asdict().items()}
        self.learned |= {f"out_{name}": value for name, value in wide._asdict().items()}
        if numbers := [target.name for target in table.targets if target.kind not in CLASSES]:
            self.notes += (f"ccu changes probabilities of classes: {', '.join(numbers)} stay as they are",)
        return self

    def whitened(self, x: np.ndarray) -> np.ndarray:
        """float64 [n, width], of descriptors [n, d]."""
        return (x - self.learned["mean"]) @ self.learned["axes"].T

    def log_ratio(self, z: np.ndarray, radius: float = 0.0) -> np.ndarray:
        """float64 [n], ``log p(z|in) - log p(z|out)``; with a radius, at most so much in a ball of it around z."""
        inner, outer = (Mixture(*(self.learned[f"{s}_{part}"] for part in Mixture._fields)) for s in ("in", "out"))
        return inner.log_density(z, radius) - outer.log_density(z, -radius)

    def certify(self, z: np.ndarray, radius: float, classes: int = 2) -> np.ndarray:
        """float64 [n], above which no class's probability is in the ball of that radius around z (theorem 3.2)."""
        share = expit(self.log_ratio(z, radius))
        return share + (1 - share) / classes

    def predict_graphs(self, table: Table, graphs: Sequence[CachedGraphs] | None) -> Prediction:
        """The classifier's probabilities, mixed with 1/M by how much a molecule is one from outside."""
        prediction = super().predict_graphs(table, graphs)
        x, rows = described(table)
        ratio = np.full(len(table), np.nan)
        ratio[rows] = self.log_ratio(self.whitened(x))
        share = expit(ratio)[:, None]
        value, column = prediction.value.copy(), 0
        for target in prediction.targets:
            n = len(target.columns) if target.level == "row" else 0
            if n and target.kind in CLASSES:
                block = value[:, column : column + n]
                block[:] = share * block + (1 - share) / max(n, 2)
            column += n
        return replace(prediction, value=value, extra={**prediction.extra, "log_ratio": ratio})

    def _mixture(self, z: np.ndarray) -> Mixture:
        mixture = GaussianMixture(
            min(self.k, len(z) // 5), covariance_type="spherical", random_state=self.seed % 2**32
        ).fit(z)
        return Mixture(mixture.weights_, mixture.means_, np.sqrt(mixture.covariances_))


def described(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """float64 [n, d], RDKit's cheap descriptors of the readable molecules, and their rows; 0 where one has no value."""
    if not any(column.kind == "molecule" for column in table.entities):
        words = f"descriptors are those of molecules, and the table has {table.entities[0].kind}s"
        raise UnsupportedError(words, hint="leave the wrapper out")
    descriptors = rdkit_descriptors([str(text) for text in table.smiles])
    read = table.ok & descriptors.ok
    return np.nan_to_num(descriptors.x[read].astype(np.float64)), np.flatnonzero(read)
