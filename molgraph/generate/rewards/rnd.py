"""Reward term: random network distillation, a bonus for molecules unlike those met so far."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import Count, NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.generate.rewards.reward import Reward
from molgraph.nn.random_distillation import RandomDistillation as RandomNetworks
from molgraph.nn.random_distillation import of_one_length

BITS = 2048


@register(
    "reward",
    "rnd",
    summary="a bonus for molecules whose random features cannot be predicted yet (random network distillation)",
    paper="Burda et al. 2019, ICLR (arXiv:1808.04355; arXiv:1810.12894)",
    systems=(
        SystemCard(
            "curiosity",
            left_out="the forward model of actions, which edits of molecules have no need of: the features of the "
            "molecule itself are predicted; inverse dynamics, pixels and autoencoders as features",
            off="''",
            beside=("no term",),
            command="molgraph optimise --search graph-ga --oracle qed --reward 'rnd(1)' -o found.csv",
            modules=("molgraph.nn.random_distillation",),
        ),
    ),
)
class RandomDistillation(Reward):
    """``S(x) + weight scale b(x)`` with ``b(x) = |g(x) - phi(x)|^2 / s``.

    ``phi`` is a frozen random network on Morgan fingerprints (the RF features of Burda et al. 2019, arXiv:1808.04355,
    section 2.1), and ``g`` is trained to predict it from the molecules met, each batch after its bonus was paid: the
    error of prediction as the bonus, without actions, is that of arXiv:1810.12894 (section 2.2). ``s`` is the running
    standard deviation of the errors, as there (section 2.4).

    Args:
        weight: of the bonus, in units of the oracle's scale.
        steps: of gradient descent on each batch.
        width: of the features and of the hidden layer.
        learning_rate: of the predictor, with Adam.
    """

    small = MappingProxyType({"width": 16})

    def __init__(
        self,
        weight: NotNegative = 0.1,
        *,
        steps: Annotated[int, Range(0, 1000)] = 8,
        width: Count = 128,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 5e-4,
    ) -> None:
        self.weight, self.steps, self.width, self.learning_rate = weight, steps, width, learning_rate

    def begin(self, *args: Any, **how: Any) -> None:
        """Draw both networks anew."""
        super().begin(*args, **how)
        self.networks = RandomNetworks(BITS, self.width, self.seed, self.learning_rate)
        self.n, self.mean, self.squares = 0, 0.0, 0.0

    def describe(self, smiles: Sequence[str]) -> Float[Tensor, "n 2048"]:
        """float [n, 2048], Morgan fingerprints of radius 2 as vectors of one length."""
        return of_one_length(morgan(smiles, n_bits=BITS).x)

    def adjust(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """The scores with their bonuses; then the predictor learns from the batch."""
        if not len(smiles):
            return score.copy()
        x = self.describe(smiles)
        with torch.no_grad():
            error = self.networks(x).double().numpy()
        for value in error.tolist():  # Welford 1962
            self.n += 1
            step = value - self.mean
            self.mean += step / self.n
            self.squares += step * (value - self.mean)
        deviation = (self.squares / self.n) ** 0.5 or 1.0
        self.learn(x)
        return score + self.weight * self.scale * error / deviation

    def learn(self, x: Float[Tensor, "n 2048"]) -> None:
        """Steps of gradient descent on the mean error."""
        for _ in range(self.steps):
            self.networks.learn(x)
