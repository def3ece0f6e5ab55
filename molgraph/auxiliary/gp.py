"""Gaussian process on the Tanimoto kernel, which predicts values with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np

from molgraph.auxiliary.censored_gp import laplace
from molgraph.auxiliary.tabular import StoredTarget, TabularMethod, TargetData, TargetModel, TargetPrediction
from molgraph.auxiliary.tabular.tanimoto_index import TanimotoIndex
from molgraph.auxiliary.tabular.target_model import n_classes, values_of_scores
from molgraph.base.contracts import State, Target
from molgraph.base.errors import ModelFileError
from molgraph.base.optional import need
from molgraph.base.ranges import LARGEST, Bits, Radius, Range
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Int, Space
from molgraph.base.seeds import generator

JITTER = 1e-6
MacKay = np.pi / 8
MOST_ROWS = 13_000  # of a model file: prediction takes 24 bytes for each pair of them, 4 GB


@dataclass(frozen=True)
class Posterior(TargetModel):
    """The posterior of a function of molecules, one for numbers and one a class."""

    target: Target
    index: TanimotoIndex  # the training rows
    rows: np.ndarray  # int64 [m], rows of the index that have the target
    alpha: np.ndarray  # float64 [m, k]: ``(s K + noise)^-1 (y - mean)``
    noise: np.ndarray  # float64 [m, k]: variance of each row's label about the function
    mean: np.ndarray  # float64 [k], the functions' own mean
    signal: np.ndarray  # float64 [k], the functions' own variance s
    unit: np.ndarray  # mean and deviation that numbers were standardised with
    measured: np.ndarray  # float64 [k], the mean variance of a new measurement about the function

    def predict(self, x: np.ndarray) -> TargetPrediction:
        like = x[:, self.rows].astype(np.float64)
        f = self.mean + self.signal * (like @ self.alpha)
        variance = self._variance(like)
        if not n_classes(self.target):
            spread = np.sqrt(variance + self.measured) * self.unit[1]
            return TargetPrediction(values_of_scores(self.target, f * self.unit[1] + self.unit[0]), spread)
        if self.target.kind == "binary":
            score = ((f[:, 1] - f[:, 0]) / np.sqrt(1 + MacKay * variance.sum(axis=1)))[:, None]
        else:
            score = f / np.sqrt(1 + MacKay * variance)
        return TargetPrediction(values_of_scores(self.target, score))

    def _variance(self, like: np.ndarray) -> np.ndarray:
        """float64 [n, k]: ``s - s k (s K + noise)^-1 s k`` of each row; the factor is made anew, too large to keep."""
        import torch

        from molgraph.train.runtime import torch_settings

        kernel, out = self.index.among(self.rows), np.empty((len(like), len(self.signal)))
        with torch_settings(1):
            for c, s in enumerate(self.signal):
                columns = torch.from_numpy(np.ascontiguousarray(s * like.T))
                solved = torch.linalg.solve_triangular(_factor(kernel, s, self.noise[:, c]), columns, upper=False)
                out[:, c] = np.maximum(s - solved.square_().sum(dim=0).numpy(), 0.0)
        return out

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        rows = stored.rows()
        assert stored.index is not None
        if (m := len(rows)) > MOST_ROWS:
            raise ValueError(f"{m:,} rows, at most {MOST_ROWS:,} may be")
        k = n_classes(stored.target) or 1
        shapes = {"alpha": (m, k), "noise": (m, k), "mean": (k,), "signal": (k,), "unit": (2,)}
        parts = {name: stored.array(name, *shape) for name, shape in shapes.items()}
        var = stored.array("measured", k) if "measured" in stored.arrays else parts["noise"].mean(axis=0)  # older files
        parts["measured"] = var
        if not ((parts["noise"] > 0).all() and (parts["signal"] > 0).all()):
            raise ValueError("variances that are not above 0")
        return cls(stored.target, stored.index, rows, **parts)


@register(
    "method",
    "gp",
    tags=("fingerprints", "uncertainty"),
    summary="Gaussian process on the Tanimoto kernel: with its own uncertainty",
    paper="Rasmussen and Williams 2006, MIT Press; Milios et al. 2018, NeurIPS; Griffiths et al. 2023, NeurIPS",
)
@dataclass(eq=False)
class GaussianProcess(TabularMethod):
    """Exact Gaussian process (Rasmussen and Williams 2006) with a Tanimoto kernel, as molecules have it in GAUCHE.

    ``f ~ GP(m, s K)``, ``y = f(x) + noise``; m, s and the noise maximise the marginal likelihood (gpytorch) of at most
    ``tune_rows`` rows, drawn by the seed. ``spread`` is the standard deviation of a new measurement. Classes are
    learned as Milios et al. 2018 have it: each class a process of the logarithm of its Dirichlet pseudo-count, whose
    noise is known; probabilities are the softmax of the means, shrunk by the variances (MacKay 1992).

    Labels that are limits, such as >8, have the likelihood of a censored normal, and the posterior is Laplace's about
    its mode (Rasmussen and Williams 2006, algorithm 3.1); m, s and the noise are then chosen by the measured values.

    Rows beyond ``max_rows`` are left out by a draw of the seed (some of each class stay): the cost grows with the cube
    of the rows, a second for each 4,000 and a target, and memory with their square.

    Use it where a few hundred rows are known and the next ones are to be chosen: its spread grows with the distance to
    them. Known limits: it reads bits alone, and falls behind the forest where descriptors such as logP tell much.

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
        store: a folder that keeps fingerprints for all splits and methods; auto for molgraph's cache; None keeps none.

    Example:
        >>> GaussianProcess(max_rows=2000).get_params()["radius"]
        2
    """

    name = "gp"
    small = MappingProxyType({"n_bits": 256})
    target_model = Posterior
    compares = True
    needs = ("gpytorch",)
    learns_limits = True

    radius: Radius = 2
    n_bits: Bits = 2048
    max_rows: Annotated[int, Range(2, LARGEST)] = 5_000
    tune_rows: Annotated[int, Range(2, LARGEST)] = 500
    steps: Annotated[int, Range(0, LARGEST)] = 50
    pseudo_count: Annotated[float, Range(0, 1, above=True, below=True)] = 0.01
    seed: int = 0
    threads: int | None = None
    store: str | None = None

    def fit_target(self, data: TargetData) -> Posterior:
        import torch

        from molgraph.train.runtime import torch_settings

        need("gpytorch")
        assert data.index is not None
        n, unit = data.n_classes, np.array([0.0, 1.0])
        weights = np.ones(len(data.y)) if data.scaled_weights is None else data.scaled_weights
        if n:
            count = self.pseudo_count + (data.y[:, None] == np.arange(n))
            known = np.log1p(1 / count)  # Milios et al. 2018, equation 4: variance, and below the mean, of log-gamma
            y, known = np.log(count) - known / 2, known / weights[:, None]
        else:
            unit = np.array([np.average(data.y, weights=weights), max(float(data.y.std()), 1e-12)])
            y, known = ((data.y - unit[0]) / unit[1])[:, None], None
        exact = data.exact
        few = np.sort(generator(self.seed, "tune").permutation(np.flatnonzero(exact))[: self.tune_rows])
        kernel = data.kernel()
        small = kernel[np.ix_(few, few)]
        k = y.shape[1]
        mean, signal, noise, alpha = np.empty(k), np.empty(k), np.empty_like(y), np.empty_like(y)
        with torch_settings(1):
            for c in range(k):
                fixed = None if known is None else known[few, c]
                mean[c], signal[c], free = tune(small, y[few, c], fixed, self.steps)
                noise[:, c] = free / weights if known is None else known[:, c]
                rest = torch.from_numpy(y[:, c] - mean[c])[:, None]
                alpha[:, c] = torch.cholesky_solve(rest, _factor(kernel, signal[c], noise[:, c]))[:, 0].numpy()
            measured = noise[exact].mean(axis=0)
            if not exact.all():
                process = float(mean[0]), float(signal[0]), noise[:, 0].copy()
                alpha[:, 0], noise[:, 0] = laplace(kernel, *process, *data.ends(*unit))
        return Posterior(data.target, data.index, data.rows, alpha, noise, mean, signal, unit, measured)

    def state(self) -> State:
        """The models' arrays; raises ``ModelFileError`` where they are of more rows than ``load`` takes."""
        if (m := len(self.fitted.index or ())) > MOST_ROWS:
            raise ModelFileError(f"a file holds at most {MOST_ROWS:,} rows of a process, this one has {m:,}")
        return super().state()

    def space(self) -> Space:
        """The fingerprint and the classes' pseudo-count; the rest is chosen by the marginal likelihood."""
        return {"radius": Int(1, 3), "pseudo_count": Float(0.001, 0.1, log=True)}


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
        noise_level = 0.0 if noise is not None else float(likelihood.noise.detach()[0])
        return float(model.mean_module.constant.detach()), float(model.covar_module.outputscale.detach()), noise_level


def _factor(kernel: np.ndarray, signal: float, noise: np.ndarray) -> Any:
    """The lower Cholesky factor of ``signal * kernel + diag(noise)``, a tensor."""
    import torch

    whole = torch.from_numpy(kernel) * signal
    whole.diagonal().add_(torch.from_numpy(noise + JITTER * signal))
    return torch.linalg.cholesky(whole)
