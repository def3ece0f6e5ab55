"""JEM: the head of a classifier learns, beside the classes, which states of molecules are usual."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, NotNegative, Probability
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.head import Head
from molgraph.nn.langevin import langevin
from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, StepState

PACE = 0.05  # of the moving mean and scale of states


def energy(head: Head, x: Tensor) -> Tensor:
    """float [n], ``-sum_t log sum_c exp f_tc`` of inputs [n, d] of the head; of two classes the logits are 0 and f."""
    raw = head.values(head(x))[0]
    parts = [
        F.softplus(raw[:, a]) if kind == "binary" else raw[:, a:b].logsumexp(dim=1)
        for kind, a, b in head.columns
        if kind in ("binary", "multiclass")
    ]
    return -torch.stack(parts).sum(dim=0)


@register(
    "callback",
    "jem",
    summary="the head learns which states are usual too, by samples of its own energy (JEM), for the score energy",
    paper="Grathwohl et al. 2020, ICLR, arXiv:1912.03263",
    systems=(
        SystemCard(
            "jem",
            left_out="a density of molecules: that of the encoder's states is learned, by the head alone",
            off="--callback none",
            beside=("the classifier alone", "energy", "Tanimoto distance", "heavy atoms"),
            command="molgraph train dataset:tox21 -m dmpnn --callback jem -o model.mgm",
            modules=("molgraph.nn.langevin", "molgraph.trust.domains.energy", "molgraph.trust.logits"),
        ),
    ),
    command="molgraph train dataset:bbbp -m dmpnn --callback jem -o model.mgm",
)
class JEM(Callback):
    """``loss - weight log p(z)`` with ``p(z) ~ sum_c exp f_c(z)``: a classifier as an energy-based model.

    Grathwohl et al. 2020, "Your classifier is secretly an energy based model and you should treat it like one". The
    gradient of ``log p(z)`` is that of ``E(z') - E(z)``, z the states that the head reads (with descriptors, as they
    are), and z' samples of the head's own density by Langevin dynamics that go on from a buffer. Molecules are
    discrete, so that z is the encoder's state, which this part of the loss does not train: else all molecules would
    have one usual state. ``-m 'domain(dmpnn, by=energy)' --callback jem`` writes the energy beside predictions.

    Use it where a classifier should say how unusual a molecule is. Known limits: a head of two classes can lower the
    energy of class 1 alone.

    Args:
        weight: of the energies; with 0 training is plain to the bit.
        steps: of Langevin dynamics for each step of training.
        step, noise: times half the gradient, and the deviation of its noise, in units of the states' deviation.
        buffer: samples that are kept; as many as a batch has rows go on in a step.
        restart: the probability that one begins anew.

    Raises:
        UnsupportedError: no target has classes, or the head reads atoms.
    """

    classes_only = True
    chains: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        *,
        weight: NotNegative = 0.3,
        steps: Count = 20,
        step: NotNegative = 1.0,
        noise: NotNegative = 0.01,
        buffer: Count = 10_000,
        restart: Probability = 0.05,
    ) -> None:
        super().__init__()
        self.weight, self.steps, self.step, self.noise = weight, steps, step, noise
        self.buffer, self.restart = buffer, restart

    def begin(self, network: Any) -> None:
        """Draw the first samples."""
        head = network.head
        known = isinstance(head, Head) and any(kind in ("binary", "multiclass") for kind, _, _ in head.columns)
        if not known or network.reads_atoms or network.level != "row":
            words = "jem learns the density of molecules' states by a head of classes"
            raise UnsupportedError(words, hint="leave the callback out, or name a target of classes: -t COLUMN:binary")
        width = next(module for module in head.modules() if isinstance(module, nn.Linear)).in_features
        self.register_buffer("chains", torch.randn(self.buffer, width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.zeros(width))

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss with the difference of energies."""
        if not state.training or not self.weight or state.turn:
            return objective(network, batch, state)
        seen = list[Tensor]()
        hook = network.head.register_forward_pre_hook(lambda _, args: seen.append(_joined(args).detach()))
        try:
            loss = objective(network, batch, state)
        finally:
            hook.remove()
        z = torch.cat(seen)
        self._measure(z)
        rows = torch.randint(self.buffer, (min(len(z), self.buffer),), device=z.device)
        start = self.chains[rows]
        anew = torch.rand(len(rows), 1, device=z.device) < self.restart
        start = torch.where(anew, torch.randn_like(start), start)
        samples = langevin(lambda u: energy(network.head, self._place(u)), start, self.steps, self.step, self.noise)
        self.chains[rows] = samples
        gap = energy(network.head, z).mean() - energy(network.head, self._place(samples)).mean()
        return loss.with_penalties({"jem": self.weight * gap})

    def _measure(self, z: Tensor) -> None:
        """Follow the mean and the deviation of the states."""
        pace = PACE if self.scale.any() else 1.0
        self.mean.lerp_(z.mean(dim=0), pace)
        self.scale.lerp_(z.std(dim=0, unbiased=False), pace)

    def _place(self, u: Tensor) -> Tensor:
        """Samples, which are in units of the states' deviation, as states."""
        return self.mean + self.scale * u


def _joined(args: Any) -> Tensor:
    """What the head reads: states, and descriptors behind them."""
    return torch.cat([part for part in args[:2] if part is not None], dim=1)
