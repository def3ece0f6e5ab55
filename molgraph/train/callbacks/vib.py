"""Variational information bottleneck: the head learns from noisy states, whose information is penalised."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Probability
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.head import Head
from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, StepState

PLACE, COLUMN = "vib", "novelty_kl"  # its place among the network's parts, and the column of predictions
FIRST, LEAST, MOST = -2.0, -10.0, 4.0  # logarithms of variances: the first ones, and their bounds


class NoisyState(nn.Module):
    """``z = h + sigma(h) e`` while a pass is noisy, h otherwise; it keeps each row's divergence from N(0, 1).

    Args:
        d: width of h.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # the draws of plain training stay as they are
            self.log_variance = nn.Linear(d, d)
        nn.init.zeros_(self.log_variance.weight)
        nn.init.constant_(self.log_variance.bias, FIRST)
        self.noisy = False
        self.seen: Tensor | None = None

    def read(self, head: nn.Module, args: Any) -> Any:
        """Before the head's pass: the state with its noise, in the place of the encoder's own."""
        h = args[0]
        log_variance = self.log_variance(h).clamp(LEAST, MOST)
        self.seen = divergence(h, log_variance)
        if not self.noisy:
            return None
        return h + (0.5 * log_variance).exp() * torch.randn_like(h), *args[1:]

    def take_columns(self) -> dict[str, Tensor]:
        """The divergences of the last pass."""
        seen, self.seen = self.seen, None
        return {} if seen is None else {COLUMN: seen}


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """float [n], ``KL(N(mean, variance) || N(0, 1))`` in nats, summed over the dimensions of [n, d].

    Example:
        >>> divergence(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.zeros(2, 2))
        tensor([0.0000, 0.5000])
    """
    return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(dim=1)


@register(
    "callback",
    "vib",
    summary="noise on the head's states and a price on their information, and how unusual each molecule is",
    paper="Igl et al. 2019, NeurIPS 32 (SNI, IBAC); Alemi et al. 2017, ICLR",
    systems=(
        SystemCard(
            "sni-ibac",
            left_out="reinforcement learning: the policy, its critic and importance weights",
            off="--callback none",
            beside=("noise in every pass",),
            modules=("molgraph.train.row_columns",),
        ),
    ),
    command="molgraph train dataset:chembl2321810 -m dmpnn --callback vib -o model.mgm",
)
class VIB(Callback):
    """``lambda L(h) + (1 - lambda) L(h + sigma(h) e) + beta KL(N(h, sigma^2(h)) || N(0, 1))``, h the head's state.

    Igl et al. 2019, "Generalization in reinforcement learning with selective noise injection and information
    bottleneck", equations 6 and 11, for labels: half of the gradient is that of a pass without noise, as predictions
    are made, which keeps the noise from disturbing training. The divergence prices what a state tells of its molecule
    (Alemi et al. 2017). ``novelty_kl`` in predictions is a molecule's divergence, in nats.

    Use it on few hundred labels. Known limits: each step takes two passes; ``novelty_kl`` grows with the length of the
    state, and is no distance to the training part: see ``predict --domain``.

    Args:
        beta: price of a nat.
        sni_lambda: share of the pass without noise; with 1, and beta 0, training is plain to the bit.
    """

    def __init__(self, *, beta: NotNegative = 1e-3, sni_lambda: Probability = 0.5) -> None:
        super().__init__()
        self.beta, self.sni_lambda = beta, sni_lambda

    def begin(self, network: Any) -> None:
        """Put the noise between encoder and head.

        Raises:
            UnsupportedError: no head of rows.
        """
        if network.level != "row" or not isinstance(network.head, Head) or network.head.reads_atoms:
            words = "vib is a bottleneck between the states of molecules and a head"
            raise UnsupportedError(words, hint="choose params.head=perceptron, or leave the callback out")
        network.parts[PLACE] = NoisyState(network.d_state)
        network.head.register_forward_pre_hook(network.parts[PLACE].read)

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The mixed losses and the divergence while training; validation is judged without noise."""
        if not state.training or (self.sni_lambda == 1 and not self.beta):
            return objective(network, batch, state)
        part, share = network.parts[PLACE], self.sni_lambda
        passes = list[Loss]()
        for noisy, weight in ((False, share), (True, 1 - share)):
            if weight:
                part.noisy = noisy
                try:
                    passes.append(objective(network, batch, state))
                finally:
                    part.noisy = False
        kl = part.take_columns()[COLUMN].mean()
        return mean_of(passes, (share, 1 - share)).with_penalties({"kl": self.beta * kl})


def mean_of(losses: list[Loss], weights: tuple[float, float]) -> Loss:
    """The weighted mean of the losses of two passes over one batch; of one, itself."""
    if len(losses) == 1:
        return losses[0]
    (one, two), (a, b) = losses, weights
    parts = {name: a * one.parts[name] + b * two.parts[name] for name in one.parts}
    return one._replace(total=a * one.total + b * two.total, parts=parts)
