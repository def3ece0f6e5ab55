"""Mix a molecule's own statistics into those of batch norm at prediction, by a share tuned on the validation part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.norms import Batch, CountedBatchNorm, group_moments
from molgraph.nn.relation import Relation
from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, StepState

SHARES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.4)  # of a molecule's own statistics, that are tried


class WeighedBatchNorm(CountedBatchNorm):
    """Batch norm that predicts with ``a`` of the statistics of each graph's own rows.

    Summers and Dinneen 2020, section 3.1: ``mean = a E[x] + (1 - a) m`` and ``E[x^2] = a E[x^2] + (1 - a) m2`` with the
    running means m and m2, and the variance of both. With a = 0 it is batch norm, with a = 1 instance norm.
    """

    share: Tensor  # float []

    def __init__(self, norm: nn.BatchNorm1d) -> None:
        super().__init__(norm.num_features, eps=norm.eps, momentum=norm.momentum)
        self.load_state_dict(norm.state_dict())
        self.train(norm.training).to(norm.weight)
        self.register_buffer("share", torch.zeros(()))

    def forward(self, h: Tensor, members: Relation) -> Tensor:  # type: ignore[override]
        """float [n, d] to [n, d]."""
        a, mean, variance = float(self.share), self.running_mean, self.running_var
        if self.training or a == 0 or len(h) == 0:
            return super().forward(h, members)
        assert mean is not None and variance is not None
        batch_mean, spread, _ = group_moments(h.to(mean.dtype), members.target, members.n_target)
        mixed = a * batch_mean + (1 - a) * mean
        square = a * (spread + batch_mean.square()) + (1 - a) * (variance + mean.square())
        scale = ((square - mixed.square()).clamp(min=0) + self.eps).rsqrt()
        graph = members.target
        out = (h - mixed.index_select(0, graph)) * scale.index_select(0, graph) * self.weight + self.bias
        return out.to(h.dtype)


@register(
    "callback",
    "calibrate-norm",
    summary="mixes a molecule's own statistics into batch norm's at prediction, tuned on the validation part",
    paper="Summers and Dinneen 2020, ICLR",
    systems=(
        SystemCard(
            "batchnorm-four-fixes",
            left_out="batch and group statistics together, which group_graph has; decay of scale and shift",
            off="--callback none",
            beside=("the running statistics alone",),
            modules=("molgraph.nn.norms",),
        ),
    ),
    command="molgraph train dataset:chembl2321810 -m gin --callback calibrate-norm",
)
class CalibrateNorm(Callback):
    """After each epoch the validation loss of several shares ``a`` is taken, and the lowest one's is kept.

    Inference example weighing of Summers and Dinneen 2020: no weight is trained otherwise than without it, and a = 0,
    plain batch norm, is among the shares, so that the validation loss never rises. The curves have the share and its
    loss. It asks for a validation part; each epoch's validation takes six times as long, and rows that look alike are
    not computed once.
    """

    totals: Tensor  # float64 [shares, 2]: sums of losses, and of their counts
    needs_layers = True  # an encoder with batch norm: gin in trials

    def __init__(self) -> None:
        super().__init__()
        self.norms: list[Any] = []
        self.register_buffer("totals", torch.zeros(len(SHARES), 2, dtype=torch.float64))

    def begin(self, network: Any) -> None:
        """Put the norms in the place of batch norms of the network's layers.

        Raises:
            UnsupportedError: a network without any.
        """
        self.norms = []
        for module in network.modules():
            if isinstance(module, Batch) and type(module.norm) is not WeighedBatchNorm:
                module.norm = WeighedBatchNorm(module.norm)
                module.by_row = False
            if isinstance(module, Batch):
                self.norms.append(module.norm)
        if not self.norms:
            words = "calibrate-norm mixes the statistics of batch norm, and this network has none"
            raise UnsupportedError(words, hint="choose an encoder with params.norm=batch, such as gin")

    def set_share(self, a: float) -> None:
        """Predict with this share of a molecule's own statistics."""
        for norm in self.norms:
            norm.share.fill_(a)

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's; of a batch of the validation part, that of each share too."""
        if state.training:
            return objective(network, batch, state)
        losses = []
        for number, a in enumerate(SHARES):
            self.set_share(a)
            losses.append(objective(network, batch, state))
            sums = torch.tensor([float(losses[-1].total.detach()), float(losses[-1].count)], dtype=torch.float64)
            self.totals[number] += sums.to(self.totals)
        return losses[0]

    def after_epoch(self, network: Any) -> Mapping[str, float]:
        """Keep the best share; columns ``norm_share`` and ``norm_loss``."""
        means = self.totals[:, 0] / self.totals[:, 1].clamp(min=1)
        best = int(means.argmin()) if self.totals[:, 1].any() else 0
        self.set_share(SHARES[best])
        self.totals.zero_()
        return {"norm_share": SHARES[best], "norm_loss": float(means[best])}

    def notes(self, network: Any) -> Sequence[str]:
        """The share of the best epoch."""
        return (f"batch norm predicts with {float(self.norms[0].share):g} of each molecule's own statistics",)
