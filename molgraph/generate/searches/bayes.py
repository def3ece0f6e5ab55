"""Maximise an expected improvement under a Gaussian process in latent space."""

from __future__ import annotations

import warnings
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import torch

from molgraph.base.optional import need
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.generate.searches.latent import LatentSearch, Points
from molgraph.train.runtime import torch_settings


@register(
    "search", "bayes", summary="expected improvement under a Gaussian process (botorch)", paper="Ament et al. 2023"
)
class BayesianOptimisation(LatentSearch):
    """``argmax_z log E[max(f(z) - best, 0)]``, ``f`` an exact Gaussian process on the points scored so far.

    The process has a kernel with a length for each dimension and botorch's prior on them, which fits wide spaces. Many
    restarts climb the improvement at once: their ends are local maxima, from which a diverse batch is chosen.

    Args:
        initial: points that are scored before a process is fitted.
        restarts: points that climb; the ends of all of them are proposed.
        memory: points told that a process is fitted on, at most: the best half, and others drawn at random, those
            that it asked for before those that were known.
        steps: steps of the climb and of the fit, at most.
    """

    name = "bayes"
    needs = ("botorch",)
    small = MappingProxyType({"initial": 16, "restarts": 8, "steps": 8})

    def __init__(
        self,
        *,
        initial: Annotated[int, Range(4, 100_000)] = 100,
        restarts: Annotated[int, Range(1, 10_000)] = 64,
        memory: Annotated[int, Range(10, 5_000)] = 500,
        steps: Annotated[int, Range(1, 10_000)] = 60,
    ) -> None:
        self.initial, self.restarts, self.memory, self.steps = initial, restarts, memory, steps

    def propose(self, n: int, step: int) -> Points:
        """The ends of the climbs."""
        if not self.informed:
            return self.first(n, step)
        need("botorch", "the search 'bayes'")
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.optim.optimize import optimize_acqf

        rng = generator(self.seed, "bayes", step)
        order = np.argsort(-self.score, kind="stable")
        rest = rng.permutation(order[self.memory // 2 :])
        rest = rest[np.argsort(rest < self.n_known, kind="stable")]
        rows = np.append(order[: self.memory // 2], rest[: self.memory - self.memory // 2])
        z, score = self.z[rows], self.target[rows]
        tops = z[:8]
        begin = tops[rng.integers(len(tops), size=max(self.restarts, n))]
        begin = self.within(begin + 0.4 * rng.standard_normal(begin.shape))
        low, high = np.minimum(z.min(axis=0), begin.min(axis=0)), np.maximum(z.max(axis=0), begin.max(axis=0))
        with torch_settings(None, derive(self.seed, "bayes", step)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that ended early and jitter that was added: a search goes on
            process = self._fit(torch.from_numpy(z), torch.from_numpy(score)[:, None])
            improvement = LogExpectedImprovement(process, best_f=float(score.max()))
            points, promise = optimize_acqf(
                improvement,
                bounds=torch.from_numpy(np.stack([low, high])),
                q=1,
                num_restarts=len(begin),
                batch_initial_conditions=torch.from_numpy(begin)[:, None, :],
                options={"maxiter": self.steps, "batch_limit": len(begin)},
                return_best_only=False,
            )
        assert promise is not None
        return Points(points.squeeze(1).double().numpy(), promise.detach().double().numpy().reshape(-1))

    def _fit(self, z: Any, score: Any) -> Any:
        from botorch.exceptions.errors import ModelFittingError
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        process = SingleTaskGP(z, score, input_transform=Normalize(z.shape[1]), outcome_transform=Standardize(1))
        try:
            fit_gpytorch_mll(
                ExactMarginalLogLikelihood(process.likelihood, process),
                optimizer_kwargs={"options": {"maxiter": self.steps}},
            )
        except ModelFittingError:  # the prior's lengths do
            process.eval()
        return process
