"""Find the mask of fragments of the least cost: by enumeration, or by learning probabilities of independent draws."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import torch

from molgraph.base.seeds import generator

STEPS, SAMPLES, RATE = 40, 16, 0.3  # of learning: steps, masks of a step, Adam's rate
Cost = Callable[[np.ndarray], np.ndarray]  # bool [k, n] to float64 [k]


def enumerate_masks(cost: Cost, n: int) -> np.ndarray:
    """bool [n]: the mask of the least cost; of several the one of the fewest fragments."""
    masks = np.array([*product([False, True], repeat=n)], dtype=bool)
    masks = masks[np.argsort(masks.sum(1), kind="stable")]
    return np.asarray(masks[int(np.nanargmin(np.round(cost(masks), 9)))])


def learn_masks(cost: Cost, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Drop probabilities of least expected cost, float64 [n], and the mask that they round to, bool [n].

    ``min over theta of E[cost(z)]`` with independent ``z_i ~ Bernoulli(theta_i)``: Chang et al. 2019, equations 3 and
    4. The gradient is that of the score function, less the mean cost of the step's other masks. One fragment of the
    rounded mask, or one in it for one outside, is then changed as long as that lowers the cost.
    """
    rng, logits = generator(seed, "masks"), torch.zeros(n, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([logits], RATE)
    for _ in range(STEPS):
        theta = logits.detach().sigmoid().numpy()
        z = rng.random((SAMPLES, n)) < theta
        value = cost(z)
        value = np.where(np.isfinite(value), value, np.nanmax(value, initial=0.0))
        rest = (value.sum() - value) / (SAMPLES - 1)
        logits.grad = torch.from_numpy(((value - rest)[:, None] * (z - theta)).mean(0))
        adam.step()
    theta = logits.detach().sigmoid().numpy()
    mask = theta > 0.5
    for _ in range(2 * n):
        one = np.eye(n, dtype=bool)
        swaps = [mask ^ one[i] ^ one[j] for i in np.flatnonzero(mask) for j in np.flatnonzero(~mask)]
        near = np.array([mask, *(mask ^ one), *swaps])
        best = int(np.nanargmin(np.round(cost(near), 9)))
        if best == 0:
            break
        mask = near[best]
    return theta, mask
