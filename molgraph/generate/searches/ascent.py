"""Climb the gradient of a property head that is fitted on the points scored so far."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated

import numpy as np
import torch

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.generate.searches.head import Head, fit_head
from molgraph.generate.searches.latent import LatentSearch, Points

DECODED = 10  # points of a path that are proposed, evenly


@register(
    "search", "ascent", summary="gradient ascent on a property head fitted to the scores", paper="Jin et al. 2018"
)
class GradientAscent(LatentSearch):
    """``z <- z + rate * dF/dz`` from the best points so far, ``F`` fitted again after every batch.

    Some heads are fitted, each to a resample of the scores; a path climbs one of them, and its promise is the mean of
    all less their deviation, so that a point which one head alone likes does not lead.

    Args:
        initial: points that are scored before a head is fitted; half the places around starts, or of the prior.
        steps: steps of a path.
        rate: length of a step, the gradient's direction being kept.
        paths: number of paths, which begin at the best points and at others near them.
        heads: number of heads.
        memory: of the points told, those with the highest scores and the latest ones that heads are fitted on.
    """

    name = "ascent"
    small = MappingProxyType({"initial": 20, "steps": 10, "paths": 8, "heads": 2})

    def __init__(
        self,
        *,
        initial: Annotated[int, Range(4, 100_000)] = 100,
        steps: Annotated[int, Range(1, 10_000)] = 40,
        rate: Annotated[float, Range(1e-6, 100.0)] = 0.1,
        paths: Annotated[int, Range(1, 10_000)] = 20,
        heads: Annotated[int, Range(1, 20)] = 2,
        memory: Annotated[int, Range(10, 1_000_000)] = 2_000,
    ) -> None:
        self.initial, self.steps, self.rate, self.paths = initial, steps, rate, paths
        self.heads, self.memory = heads, memory

    def propose(self, n: int, step: int) -> Points:
        """Points along the paths."""
        if not self.informed:
            return self.first(n, step)
        rng = generator(self.seed, "ascent", step)
        heads = self._fit(step)
        tops = self.best(max(self.paths // 2, 1))
        z = np.vstack([tops, tops[rng.integers(len(tops), size=max(self.paths - len(tops), 1))]])
        z[len(tops) :] += 0.3 * rng.standard_normal(z[len(tops) :].shape)
        parts = []
        for i, head in enumerate(heads):
            path = climb([head], z[i :: len(heads)], self.steps, self.rate)
            at = np.linspace(0, self.steps - 1, DECODED).astype(np.int64)
            parts.append(path.reshape(self.steps, -1, self.d_latent)[at].reshape(-1, self.d_latent))
        z = self.within(np.vstack(parts))
        with torch.no_grad():
            scores = torch.stack([head.scores(torch.from_numpy(z).float()) for head in heads]).double().numpy()
        return Points(z, scores.mean(axis=0) - scores.std(axis=0))

    def _fit(self, step: int) -> list[Head]:
        order = np.argsort(-self.score, kind="stable")
        kept = np.unique(np.concatenate([order[: self.memory // 2], np.arange(len(self.z))[-self.memory // 2 :]]))
        heads = []
        for i in range(self.heads):
            rows = generator(self.seed, "resample", step, i).choice(kept, len(kept)) if self.heads > 1 else kept
            heads.append(fit_head(self.z[rows], self.target[rows], seed=derive(self.seed, "head", step, i)))
        return heads


def climb(heads: Sequence[Head], z: np.ndarray, steps: int, rate: float) -> np.ndarray:
    """The points of paths that climb the mean of some heads, each step of length ``rate``.

    Args:
        heads: fitted.
        z: float [n, d], where the paths begin; that is no point of the result.
        steps: of each path.
        rate: length of a step.

    Returns:
        float64 [steps * n, d]: the first points of all paths, then the second, ...
    """
    at, path = torch.from_numpy(z).float(), []
    for _ in range(steps):
        at = at.detach().requires_grad_()
        mean = torch.stack([head.scores(at) for head in heads]).mean(dim=0)
        (gradient,) = torch.autograd.grad(mean.sum(), at)
        at = at.detach() + rate * gradient / gradient.norm(dim=1, keepdim=True).clamp(min=1e-12)
        path.append(at.double().numpy())
    return np.vstack(path)
