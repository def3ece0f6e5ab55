"""A Gaussian process on the Tanimoto kernel: a value, and how sure of it the training molecules make one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from molgraph.auxiliary import parts
from molgraph.auxiliary.features import Features
from molgraph.auxiliary.parts import Fitted, Lesson, Said
from molgraph.auxiliary.reference import Reference
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.errors import UsageError
from molgraph.base.optional import need
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.size import Shapes, Size
from molgraph.base.space import Float, Int, Space
from molgraph.data.table import Table

JITTER = 1e-6
MacKay = np.pi / 8


@dataclass(frozen=True)
class _Process:
    """What the rows say of a function, one for numbers and one a class: its mean and its variance.

    Args:
        alpha: float64 [m, k]: ``(s K + noise)^-1 (y - mean)``.
        noise: float64 [m, k]: variance of each row's label about the function.
        mean: float64 [k]; ``signal``: float64 [k], the functions' own variance s.
        unit: mean and deviation that numbers were standardised with.
    """

    target: Target
    reference: Reference
    rows: np.ndarray
    alpha: np.ndarray
    noise: np.ndarray
    mean: np.ndarray
    signal: np.ndarray
    unit: np.ndarray

    def predict(self, x: np.ndarray) -> Said:
        like = x[:, self.rows].astype(np.float64)
        f = self.mean + self.signal * (like @ self.alpha)
        variance = self._variance(like)
        if not parts.classes_of(self.target):
            spread = np.sqrt(variance + self.noise.mean(axis=0)) * self.unit[1]
            return parts.inside(self.target, f * self.unit[1] + self.unit[0]), spread
        if self.target.kind == "binary":
            gap = (f[:, 1] - f[:, 0]) / np.sqrt(1 + MacKay * variance.sum(axis=1))
            return 0.5 * (1.0 + np.tanh(0.5 * gap))[:, None], None
        f = f / np.sqrt(1 + MacKay * variance)
        p = np.exp(f - f.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True), None

    def _variance(self, like: np.ndarray) -> np.ndarray:
        """float64 [n, k]: ``s - s k (s K + noise)^-1 s k`` of each row; the factor is made anew, too large to keep."""
        kernel = self.reference.among(self.rows)
        out = np.empty((len(like), len(self.signal)))
        for c, s in enumerate(self.signal):
            if c and s == self.signal[c - 1] and (self.noise[:, c] == self.noise[:, c - 1]).all():
                out[:, c] = out[:, c - 1]
                continue
            factor = _factor(kernel, s, self.noise[:, c])
            out[:, c] = np.maximum(s - _whiten(factor, s * like.T), 0.0)
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        names = ("rows", "alpha", "noise", "mean", "signal", "unit")
        return {name: getattr(self, name) for name in names}


@register(
    "method",
    "gp",
    summary="Gaussian process on the Tanimoto kernel, with its own uncertainty",
    paper="Rasmussen and Williams 2006, MIT Press; Milios et al. 2018, NeurIPS; Griffiths et al. 2023, NeurIPS",
)
class GaussianProcess(Method):
    """Exact Gaussian process (Rasmussen and Williams 2006) with a Tanimoto kernel, as molecules have it in GAUCHE.

    ``f ~ GP(m, s K)``, ``y = f(x) + noise``; m, s and the noise maximise the marginal likelihood (gpytorch) of at most
    ``tune_rows`` rows, drawn by the seed. ``spread`` is the standard deviation of a new measurement. Classes are
    learned as Milios et al. 2018 have it: each class a process of the logarithm of its Dirichlet pseudo-count, whose
    noise is known; probabilities are the softmax of the means, shrunk by the variances (MacKay 1992).

    Rows beyond ``max_rows`` are left out by a draw of the seed (some of each class stay): the cost grows with the cube
    of the rows, a second for each 4,000 and a target, and memory with their square.

    Args:
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        max_rows: the most training rows.
        tune_rows: the most rows by which m, s and noise are chosen.
        steps: of that choice (Adam).
        pseudo_count: what a class that a row does not have counts for it (the paper's alpha epsilon).
        seed: of the draws.
        threads: cores that make fingerprints; None for all. The linear algebra stays on one, so that it adds up the
            same for any number.
        store: a folder that keeps fingerprints, so that they are made once for all splits and methods; auto for one in
            molgraph's cache; None keeps none.

    Example:
        >>> GaussianProcess(max_rows=2000).get_params()["radius"]
        2
    """

    name = "gp"
    needs = ("gpytorch",)

    def __init__(
        self,
        radius: int = 2,
        n_bits: int = 2048,
        max_rows: int = 5_000,
        tune_rows: int = 500,
        steps: int = 50,
        pseudo_count: float = 0.01,
        seed: int = 0,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        self.radius, self.n_bits, self.max_rows, self.tune_rows = radius, n_bits, max_rows, tune_rows
        self.steps, self.pseudo_count, self.seed = steps, pseudo_count, seed
        self.threads, self.store = threads, store

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Choose the process by ``table``; ``valid`` and ``workdir`` are not used."""
        if not 0 < self.pseudo_count < 1 or not self.max_rows >= 2 or not self.tune_rows >= 2:
            raise UsageError(
                f"pseudo_count is {self.pseudo_count!r}, max_rows {self.max_rows!r}, tune_rows {self.tune_rows!r}",
                hint="expected a number between 0 and 1, and row counts from 2",
            )
        features = Features("morgan", self.radius, self.n_bits)
        self._fitted = parts.learn(self, table, features, self._grow, compare=True, limit=self.max_rows)
        return self

    def predict(self, table: Table) -> Prediction:
        """Values and their ``spread``, P(class 1), or one probability a class."""
        return parts.predict(self, table)

    def state(self) -> State:
        """The fingerprints, and what each row says."""
        return parts.state(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; raises ``ModelFileError`` where the state is not whole."""
        return parts.restore(cls, state, _load, compare=True)

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the stored state needs to predict."""
        return parts.size_of(meta, shapes, _size)

    def space(self) -> Space:
        """The fingerprint and the classes' pseudo-count; the rest is chosen by the marginal likelihood."""
        return {"radius": Int(1, 3), "pseudo_count": Float(0.001, 0.1, log=True)}

    def _grow(self, lesson: Lesson) -> _Process:
        assert lesson.reference is not None
        need("gpytorch")
        n = parts.classes_of(lesson.target)
        unit = np.array([0.0, 1.0])
        weights = np.ones(len(lesson.y)) if lesson.weights is None else lesson.weights / lesson.weights.mean()
        if n:
            count = self.pseudo_count + (lesson.y[:, None] == np.arange(n))
            known = np.log1p(1 / count)  # Milios et al. 2018, equation 4: variance, and below the mean, of log-gamma
            y, known = np.log(count) - known / 2, known / weights[:, None]
        else:
            unit = np.array([np.average(lesson.y, weights=weights), max(float(lesson.y.std()), 1e-12)])
            y, known = ((lesson.y - unit[0]) / unit[1])[:, None], None
        few = np.sort(generator(self.seed, "tune").permutation(len(y))[: self.tune_rows])
        kernel = lesson.reference.among(lesson.rows)
        small = kernel[np.ix_(few, few)]
        mean, signal, noise = [], [], np.empty_like(y)
        for c in range(y.shape[1]):
            fixed = None if known is None else known[:, c]
            m, s, e = tune(small, y[few, c], None if fixed is None else fixed[few], self.steps)
            mean.append(m)
            signal.append(s)
            noise[:, c] = e / weights if fixed is None else fixed
        alpha = np.empty_like(y)
        for c in range(y.shape[1]):
            alpha[:, c] = _solve(_factor(kernel, signal[c], noise[:, c]), y[:, c] - mean[c])
        return _Process(
            lesson.target, lesson.reference, lesson.rows, alpha, noise, np.array(mean), np.array(signal), unit
        )


def tune(kernel: np.ndarray, y: np.ndarray, noise: np.ndarray | None, steps: int) -> tuple[float, float, float]:
    """The mean, the signal's variance and the noise's that make the labels most likely.

    Args:
        kernel: float64 [n, n].
        y: float64 [n].
        noise: float64 [n], where the rows' noise is known; None where one number for all is to be found.
        steps: of Adam.

    Returns:
        mean, signal, noise (0 where it was known).
    """
    import gpytorch
    import torch

    from molgraph.train.runtime import torch_settings

    class Known(gpytorch.kernels.Kernel):  # rows are asked for by number
        def forward(self, a: Any, b: Any, diag: bool = False, **_: Any) -> Any:
            i, j = a[..., 0].long(), b[..., 0].long()
            return k[i, j] if diag else k[i][:, j]

    class Process(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(x, t, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(Known())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    with torch_settings(1, 0), gpytorch.settings.fast_computations(False, False, False):
        k = torch.from_numpy(kernel + JITTER * np.eye(len(kernel)))
        x, t = torch.arange(len(y), dtype=torch.float64)[:, None], torch.from_numpy(y)
        if noise is None:
            likelihood = gpytorch.likelihoods.GaussianLikelihood()
        else:
            likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.from_numpy(noise))
        model = Process().double()
        model.mean_module.initialize(constant=float(y.mean()))
        model.covar_module.initialize(outputscale=max(float(y.var()), 1e-3))
        if noise is None:
            likelihood.initialize(noise=max(0.1 * float(y.var()), 1e-3))
        marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        model.train()
        for _ in range(steps):
            optimiser.zero_grad()
            loss = -marginal(model(x), t)
            loss.backward()
            optimiser.step()
        found = 0.0 if noise is not None else float(likelihood.noise.detach()[0])
        return float(model.mean_module.constant.detach()), float(model.covar_module.outputscale.detach()), found


def _factor(kernel: np.ndarray, signal: float, noise: np.ndarray) -> Any:
    """The lower Cholesky factor of ``signal * kernel + diag(noise)``, a tensor, on one thread."""
    import torch

    from molgraph.train.runtime import torch_settings

    with torch_settings(1):
        whole = torch.from_numpy(kernel) * signal
        whole.diagonal().add_(torch.from_numpy(noise + JITTER * signal))
        return torch.linalg.cholesky(whole)


def _solve(factor: Any, y: np.ndarray) -> np.ndarray:
    import torch

    from molgraph.train.runtime import torch_settings

    with torch_settings(1):
        return torch.cholesky_solve(torch.from_numpy(y)[:, None], factor)[:, 0].numpy()


def _whiten(factor: Any, columns: np.ndarray) -> np.ndarray:
    """Squared length of ``factor^-1 column`` for each column."""
    import torch

    from molgraph.train.runtime import torch_settings

    with torch_settings(1):
        solved = torch.linalg.solve_triangular(factor, torch.from_numpy(np.ascontiguousarray(columns)), upper=False)
        return solved.square_().sum(dim=0).numpy()


def _size(shapes: Shapes, width: int) -> Size:
    n, k = shapes["alpha"]  # the kernel, its factor, and room to make one of the other
    return Size(bytes=24 * n * n, operations=k * n**3 // 3 + n * n * width, row_operations=2 * k * n * n)


def _load(arrays: Mapping[str, np.ndarray], target: Target, base: Fitted) -> _Process:
    rows = parts.rows_of(arrays, base)
    assert base.reference is not None
    k = parts.classes_of(target) or 1
    alpha, noise = parts.array(arrays, "alpha", len(rows), k), parts.array(arrays, "noise", len(rows), k)
    mean, signal = parts.array(arrays, "mean", k), parts.array(arrays, "signal", k)
    unit = parts.array(arrays, "unit", 2)
    if not ((noise > 0).all() and (signal > 0).all()):
        raise ValueError("variances that are not above 0")
    return _Process(target, base.reference, rows, alpha, noise, mean, signal, unit)
