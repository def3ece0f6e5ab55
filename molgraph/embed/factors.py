"""Fit a volume-preserving normalizing flow to vectors with class labels, and sort its outputs by variance."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.base.seeds import derive, generator
from molgraph.nn.incompressible_flow import IncompressibleFlow
from molgraph.train.runtime import torch_settings

BATCH, RATE, DECAY, BLOCKS = 1000, 1e-2, 0.5, 4  # rows of a step; AdamW's settings; pairs of couplings
LARGE, BETWEEN = 0.1, 0.1  # of the largest deviation; of the variance of a factor that lies between classes
PRIOR = 5.0  # rows of the deviation of all classes that are added to each class
TRAIN, CHECK = 0.7, 25  # share of the rows to train on; steps between two looks at the rows for stopping


class Factors(NamedTuple):
    """Factors of rows in the order of their deviation, the largest first.

    Args:
        z: float64 [n, d].
        sd: float64 [d]: the deviation of each within classes and between them together.
        between: float64 [d]: the share of the variance of held-out rows that the means of their classes explain.
        gain: nats of log density for each held-out row above those of the vectors themselves.
        steps: of training.
    """

    z: np.ndarray
    sd: np.ndarray
    between: np.ndarray
    gain: float
    steps: int

    @property
    def differing(self) -> int:
        """Factors with a tenth of the largest deviation, a tenth of whose variance lies between classes."""
        return int(((self.sd >= LARGE * self.sd[0]) & (self.between >= BETWEEN)).sum())


def class_moments(z: Tensor, of: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance of each of k classes [k, d], and its share of the rows [k, 1], of float [n, d] and int [n].

    Five rows of the variance within all classes are added to each class, so that a class of a few rows cannot shrink.
    """
    member = nn.functional.one_hot(of, k).to(z.dtype)
    counts = member.sum(dim=0)[:, None]
    mean = member.T @ z / counts.clamp(min=1)
    square = (z - member @ mean) ** 2
    variance = (member.T @ square + PRIOR * square.mean(dim=0)) / (counts + PRIOR)
    return mean, variance.clamp(min=1e-8), counts / len(z)


def fit_factors(
    x: np.ndarray, classes: np.ndarray, *, steps: int, d_hidden: int = 48, seed: int = 0, seconds: float = 120.0,
    incompressible: bool = True, unit: bool | None = None,
) -> Factors:  # fmt: skip
    """Train a flow on ``-log p(f(x) | class)``, and sort its factors.

    ``p(z | class)`` is a Gaussian with the mean and the deviations of the class in the batch, as in the authors' code,
    so that the loss is the mean log deviation. Factors can trade scale with each other at no cost; decay of the
    weights, which the paper does not have, keeps them near the scale of the vectors. The state is kept that describes
    rows for stopping best.

    Args:
        x: float [n, d], of one scale.
        classes: int [n].
        steps: of AdamW, in batches of 1,000 rows; the rate is 0.01, and a tenth of it after 60% of them.
        d_hidden, incompressible: of the flow.
        seed: of held-out rows, permutations, weights and batches.
        seconds: of CPU time.
        unit: whether the Gaussians have a deviation of 1, as they usually have where the volume is free, the default.
    """
    end, n, d = time.process_time() + seconds, *x.shape
    unit = not incompressible if unit is None else unit
    order, cut = held_out(n, seed)
    k = int(classes.max()) + 1
    rows, of = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(classes.astype(np.int64))
    rows, of = rows[order], of[order]
    valid, test = slice(cut, (cut + n) // 2), slice((cut + n) // 2, n)
    with torch_settings(1, derive(seed, "gin-flow")):
        flow = IncompressibleFlow(d, BLOCKS, d_hidden, incompressible=incompressible)
        optimiser = torch.optim.AdamW(flow.parameters(), RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [int(0.6 * steps)])
        done, best, kept = 0, -float("inf"), flow.state_dict()
        while done < steps and time.process_time() < end:
            chosen = torch.randperm(cut)[:BATCH]
            if done % CHECK == 0 and (value := _density(flow, rows, of, cut, valid, k, unit)) > best:
                best, kept = value, {name: tensor.clone() for name, tensor in flow.state_dict().items()}
            z, volume = flow(rows[chosen])
            _, variance, share = class_moments(z, of[chosen], k)
            loss = (share * (variance if unit else variance.log())).sum() / 2 - volume.mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimiser.step()
            schedule.step()
            done += 1
        if _density(flow, rows, of, cut, valid, k, unit) <= best:
            flow.load_state_dict(kept)
        gain = _density(flow, rows, of, cut, test, k, unit) - _density(None, rows, of, cut, test, k, False)
        with torch.no_grad():
            z = flow(torch.from_numpy(x.astype(np.float32)))[0]
    factors = z.double().numpy()
    sd, between = factors.std(axis=0), explained(factors[order], classes[order], cut)
    rank = np.argsort(-sd, kind="stable")
    return Factors(factors[:, rank], sd[rank], between[rank], gain, done)


def held_out(n: int, seed: int) -> tuple[np.ndarray, int]:
    """Rows in random order, and where those end that are for training; half of the others say when to stop."""
    return generator(seed, "held-out rows").permutation(n), round(TRAIN * n)


@torch.no_grad()
def _density(flow: nn.Module | None, x: Tensor, of: Tensor, cut: int, rows: slice, k: int, unit: bool) -> float:
    """Mean log density of some rows, by the classes of rows before the cut, without its constant."""
    z, volume = (x, x.new_zeros(len(x))) if flow is None else flow(x)
    mean, variance, _ = class_moments(z[:cut], of[:cut], k)
    variance = torch.ones_like(variance) if unit else variance
    mean, variance = mean[of[rows]], variance[of[rows]]
    return float((volume[rows] - 0.5 * (variance.log() + (z[rows] - mean) ** 2 / variance).sum(dim=1)).mean())


def explained(z: np.ndarray, of: np.ndarray, cut: int) -> np.ndarray:
    """float64 [d]: R2 of the later half of the rows after the cut, predicted by means of classes before it."""
    test = (cut + len(z)) // 2
    first, last, center = z[:cut], z[test:], z[:cut].mean(axis=0)
    means = {c: first[of[:cut] == c].mean(axis=0) for c in np.unique(of[:cut])}
    guess = np.stack([means.get(c, center) for c in of[test:]])
    return 1 - ((last - guess) ** 2).mean(axis=0) / np.maximum(((last - center) ** 2).mean(axis=0), 1e-12)
