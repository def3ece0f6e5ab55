"""Estimate the likelihood of molecules under a sequence VAE without bias, by SUMO."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from molgraph.base.errors import EmptyError
from molgraph.base.progress import bar
from molgraph.base.seeds import generator
from molgraph.data.table import Table
from molgraph.generate.vae_objective import text_nats
from molgraph.generate.vae_texts import vae_texts
from molgraph.nn.bottleneck import LatentState

ALPHA, DECAY = 80, 0.9  # of the number of terms: P(K >= k) = 1/k for k < 80, then falling by 0.9 for each
REPEATS = 8  # estimates of a molecule
TOGETHER = 512  # texts that are scored at once


def sumo(log_weight: Callable[[Tensor], Tensor], n: int, repeats: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Unbiased estimates of ``log p(x)`` of n rows, and the lower bounds ``IWAE_1`` of the same points.

    Luo et al. 2020, "SUMO: Unbiased Estimation of Log Marginal Probability for Latent Variable Models", ICLR:
    ``IWAE_1 + sum_(k=1)^K (IWAE_(k+1) - IWAE_k) / P(K >= k)`` with ``IWAE_k = log (1/k) sum_(j<=k) w_j``, of K + 1
    points. K has the tail ``P(K >= k) = 1/k`` for k < 80, and ``0.9^(k-80) / 80`` from there on.

    Args:
        log_weight: int64 [m], rows -> ``log w = log p(x, z) - log q(z|x)`` of each at a fresh point of its posterior.
        n: rows.
        repeats: estimates of each.
        seed: of K.

    Returns:
        Two float64 [n, repeats].

    Example:
        >>> estimate, bound = sumo(lambda rows: torch.full((len(rows),), -2.0), 3, 2)
        >>> estimate.shape, round(float(estimate.mean()), 6), round(float(bound.mean()), 6)
        (torch.Size([3, 2]), -2.0, -2.0)
    """
    count = torch.from_numpy(terms(generator(seed, "sumo").random(n * repeats)))
    rows = torch.arange(n).repeat_interleave(repeats).repeat_interleave(count + 1)
    longest = int(count.max()) + 1
    place = torch.arange(longest)[None, :] <= count[:, None]
    weights = torch.full((n * repeats, longest), -torch.inf, dtype=torch.float64)
    weights[place] = torch.cat([log_weight(part).double().cpu() for part in rows.split(TOGETHER)])
    k = torch.arange(1, longest + 1, dtype=torch.float64)
    bounds = torch.logcumsumexp(weights, dim=1) - k.log()
    differences = bounds.diff(dim=1) / torch.from_numpy(tail(k[:-1].numpy()))
    estimate = bounds[:, 0] + torch.where(place[:, 1:], differences, 0.0).sum(dim=1)
    return estimate.reshape(n, repeats), bounds[:, 0].reshape(n, repeats)


def tail(k: np.ndarray) -> np.ndarray:
    """``P(K >= k)``.

    Example:
        >>> tail(np.array([1, 2, 80, 81])).round(5).tolist()
        [1.0, 0.5, 0.0125, 0.01125]
    """
    return np.asarray(np.where(k < ALPHA, 1 / k, DECAY ** np.maximum(k - ALPHA, 0) / ALPHA))


def terms(uniform: np.ndarray) -> np.ndarray:
    """int64 [n], the largest k with ``P(K >= k) >= u`` of each u: K.

    Example:
        >>> terms(np.array([0.9, 0.4, 0.012])).tolist()
        [1, 2, 80]
    """
    u = np.maximum(uniform, 1e-12)
    late = ALPHA + np.floor(np.log(np.minimum(u * ALPHA, 1.0)) / math.log(DECAY))
    return np.where(u > 1 / ALPHA, np.floor(1 / u), late).astype(np.int64)


def text_likelihoods(made: Any, table: Table, repeats: int = REPEATS, seed: int = 0) -> np.ndarray:
    """float64 [m, 2 repeats], of each of the molecules that have tokens: SUMO estimates of ``log p(x)``, then as many
    lower bounds, in nats; x is the canonical text.

    Raises:
        UnsupportedError: a generator that has no such likelihood.
        EmptyError: no molecule can be written with its tokens.
    """
    texts = vae_texts(made, table)
    if not len(texts.rows):
        hint = "give molecules like those it learned from"
        raise EmptyError("no molecule can be written with the generator's tokens", hint=hint)
    noise = torch.Generator().manual_seed(seed)
    with made.at_work() as (network, _), bar("likelihoods", len(texts.rows)):
        states = texts.states(network)

        def log_weight(rows: Tensor) -> Tensor:
            points = torch.randn((len(rows), network.bottleneck.d), generator=noise).to(states.device)
            z, ratio = network.bottleneck.weighed(states[rows], LatentState(points))
            return -text_nats(network.decoder, z, texts.given[rows], texts.target[rows]) - ratio

        found = sumo(log_weight, len(texts.rows), repeats, seed)
    return torch.cat(found, dim=1).numpy()
