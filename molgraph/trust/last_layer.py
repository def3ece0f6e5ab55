"""A Bayesian last layer: a Gaussian posterior over the last weights of a trained network, by variational inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.contracts import Method
from molgraph.base.errors import UnsupportedError
from molgraph.base.seeds import derive
from molgraph.data.table import Table
from molgraph.train.method import GraphMethod
from molgraph.train.runtime import torch_settings

STEPS, RATE, SAMPLES = 400, 0.02, 64  # of Adam; its rate; draws of a prediction


class LastLayer(nn.Module):
    """``h W + b`` with ``W ~ N(mean, sd^2)`` for each weight by itself, and the prior ``N(0, prior^2)``.

    Blundell et al. 2015, "Weight Uncertainty in Neural Networks"; outputs are sampled in place of weights (Kingma et
    al. 2015), which is the same for each row.

    Args:
        d: width of the states.
        width: outputs.
        prior: standard deviation of a weight, in units of states of variance 1.
    """

    def __init__(self, d: int, width: int, prior: float = 1.0) -> None:
        super().__init__()
        self.mean, self.bias = nn.Parameter(torch.zeros(d, width)), nn.Parameter(torch.zeros(width))
        self.log_sd = nn.Parameter(torch.full((d, width), -3.0))
        self.prior = prior

    def forward(self, h: Tensor) -> Tensor:
        """Outputs [n, width] of states [n, d], with weights that are drawn anew."""
        mean, variance = h @ self.mean + self.bias, h**2 @ (2 * self.log_sd).exp()
        return mean + variance.clamp_min(1e-12).sqrt() * torch.randn_like(mean)

    def divergence(self) -> Tensor:
        """A number: Kullback-Leibler divergence of the posterior from the prior, in nats."""
        ratio = ((2 * self.log_sd).exp() + self.mean**2) / self.prior**2
        return 0.5 * (ratio - 1 - 2 * self.log_sd + 2 * float(np.log(self.prior))).sum()


def fit_last_layer(
    h: np.ndarray, y: np.ndarray, *, classes: int = 0, noise: float = 1.0, steps: int = STEPS, seed: int = 0
) -> LastLayer:
    """Fit the posterior by maximising the evidence's lower bound over all rows.

    Args:
        h: [n, d] states of variance 1.
        y: [n] numbers of classes, or values.
        classes: how many; 0 for values.
        noise: standard deviation of values about the layer's output.
        steps: of Adam.
        seed: of the draws.
    """
    with torch_settings(1, derive(seed, "last layer")):
        x, layer = torch.from_numpy(h).float(), LastLayer(h.shape[1], max(classes, 1))
        goal = torch.from_numpy(y).long() if classes else torch.from_numpy(y).float()
        adam = torch.optim.Adam(layer.parameters(), RATE)
        for _ in range(steps):
            out = layer(x)
            loss = F.cross_entropy(out, goal, reduction="sum") if classes else _square(out[:, 0], goal, noise)
            adam.zero_grad()
            ((loss + layer.divergence()) / len(x)).backward()
            adam.step()
        return layer.eval()


def _square(out: Tensor, goal: Tensor, noise: float) -> Tensor:
    return ((out - goal) ** 2).sum() / (2 * noise**2)


@torch.no_grad()
def draw(layer: LastLayer, h: np.ndarray, *, n: int = SAMPLES, seed: int = 0) -> np.ndarray:
    """float64 [n, rows, width]: outputs for n draws of the weights."""
    with torch_settings(1, derive(seed, "draws")):
        x = torch.from_numpy(h).float()
        return np.stack([layer(x).double().numpy() for _ in range(n)])


def last_states(method: Method, table: Table) -> np.ndarray:
    """float64 [n, d]: what the last linear layer of a fitted network's head reads; NaN in rows without a prediction.

    Raises:
        UnsupportedError: no graph network, or a head of another kind.
    """
    head: Any = method.ready().network.head if isinstance(method, GraphMethod) else None
    linear = [layer for layer in head.modules() if isinstance(layer, nn.Linear)] if isinstance(head, nn.Module) else []
    if not linear:
        raise UnsupportedError(f"{method.title} has no last linear layer", hint="name a graph model, such as dmpnn")
    seen: list[Tensor] = []
    hook = linear[-1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
    try:
        prediction = method.predict(table)
    finally:
        hook.remove()
    states = torch.cat(seen).double().numpy()
    out = np.full((len(table), states.shape[1]), np.nan)
    if prediction.ok.sum() != len(states):
        raise UnsupportedError(f"{method.title} has no state for each row", hint="leave the last layer out")
    out[prediction.ok] = states
    return out
