"""Set the last layer of a head by ridge regression on what it is given: a linear probe in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.linear_model import RidgeCV
from torch import Tensor, nn

ALPHAS = np.logspace(1, 5, 9)  # penalties, chosen by generalised cross-validation
LEAST = 0.25  # of the median deviation: columns that hardly vary here may vary elsewhere
MOST, FEWEST = 20_000, 4  # rows that are kept, and labels of a column below which its weights stay
LOGIT = 2.0  # the raw output of a class that is sure, and minus that of one that is not
EDGE = 0.02  # of a bounded value, whose logit is finite


class RidgeProbe:
    """Collects the inputs of a head's last layer with the labels of a pass over the training rows, and solves for it.

    Args:
        head: a ``Head``, whose ``layers`` end in a linear one, and whose ``columns`` are the kinds of its targets.
    """

    def __init__(self, head: Any) -> None:
        self.head, self.layer = head, head.layers[-1]
        self.x, self.y, self.known = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        self._input: Tensor | None = None
        self._hook = self.layer.register_forward_pre_hook(self._see)

    def _see(self, layer: nn.Module, args: tuple[Tensor, ...]) -> None:
        self._input = args[0].detach()

    def add(self, y: Tensor, weights: Tensor) -> None:
        """Keep the rows of a batch, whose labels are [n, t], after the network's pass."""
        if self._input is not None and len(self._input) == len(y) and sum(map(len, self.x)) < MOST:
            self.x.append(self._input.float().cpu().numpy())
            self.y.append(y.float().cpu().numpy())
            self.known.append((weights > 0).cpu().numpy())
        self._input = None

    def close(self) -> None:
        """See no more of the network."""
        self._hook.remove()

    @torch.no_grad()
    def solve(self) -> None:
        """Set the layer's weights: each column standardised, the penalty by generalised cross-validation."""
        if not self.x:
            return
        x, y, known = (np.concatenate(parts) for parts in (self.x, self.y, self.known))
        mean, deviation = x.mean(axis=0), x.std(axis=0)
        scale = np.maximum(deviation, LEAST * np.median(deviation) + 1e-6)
        x = (x - mean) / scale
        for j, (kind, start, stop) in enumerate(self.head.columns):
            rows = known[:, j] if known.shape[1] > 1 else known[:, 0]
            if rows.sum() < FEWEST:
                continue
            for k in range(start, stop):
                ridge = RidgeCV(ALPHAS).fit(x[rows], _raw(kind, y[rows, j], k - start))
                slope = ridge.coef_ / scale
                self.layer.weight[k] = torch.as_tensor(slope, dtype=self.layer.weight.dtype)
                self.layer.bias[k] = float(ridge.intercept_ - slope @ mean)


def _raw(kind: str, y: np.ndarray, column: int) -> np.ndarray:
    """The raw outputs that give these labels.

    Example:
        >>> _raw("binary", np.array([0.0, 1.0]), 0).tolist(), _raw("multiclass", np.array([0.0, 2.0]), 2).tolist()
        ([-2.0, 2.0], [-2.0, 2.0])
    """
    if kind == "binary":
        return np.where(y > 0, LOGIT, -LOGIT)
    if kind == "multiclass":
        return np.where(y == column, LOGIT, -LOGIT)
    if kind == "bounded":
        p = np.clip(y, EDGE, 1 - EDGE)
        return np.asarray(np.log(p / (1 - p)))
    return y
