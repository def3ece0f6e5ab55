"""Batch norms for small and uneven batches: batch renormalisation, and moving averages in both passes (MABN)."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import INNER_LIMIT, LARGEST, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.norms import CountedBatchNorm, Norm
from molgraph.nn.relation import Relation

COMMAND = "molgraph train dataset:chembl2321810 -m gin -s 'params.norm={}'"


@register(
    "norm",
    "batch_renorm",
    systems=(
        SystemCard(
            "batch-renormalization",
            off="-s params.norm=batch",
            beside=("batch",),
            command=COMMAND.format("batch_renorm(warmup=1)"),
        ),
    ),
    summary="over all rows of the batch, corrected towards the running statistics: it predicts as it trains",
    paper="Ioffe 2017, NeurIPS 30",
)
class BatchRenorm(Norm):
    """``gamma ((h - mean_B) / std_B r + d) + beta``, Ioffe 2017, algorithm 1.

    ``r = clip(std_B / std)`` to [1 / r_max, r_max] and ``d = clip((mean_B - mean) / std)`` to [-d_max, d_max], by the
    running statistics before this batch, and constant in the gradient. Where nothing is clipped, training computes what
    prediction does. For the first ``warmup`` batches it is batch norm, and both limits are reached after as many more.

    Use it where batches are small, or their molecules alike (episodes of one assay, sorted scaffolds).

    Args:
        d: width of the rows.
        r_max, d_max: the limits of the correction, in the paper 3 and 5.
        warmup: batches.
        momentum: the share of a batch in the running statistics.
    """

    by_row = True

    def __init__(
        self,
        d: int,
        r_max: Annotated[float, Range(1)] = 3.0,
        d_max: Annotated[float, Range(0)] = 5.0,
        warmup: Annotated[int, Range(0, LARGEST)] = 200,
        momentum: Annotated[float, Range(0, 1, above=True)] = 0.05,
    ) -> None:
        super().__init__(d)
        self.r_max, self.d_max, self.warmup = r_max, d_max, warmup
        self.norm = RunningBatchNorm(d, momentum=momentum)

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        norm = self.norm
        if not self.training or len(h) < 2:
            return norm(h, members)
        mean, variance, seen = norm.statistics()
        relaxed = min(max((seen - self.warmup) / max(self.warmup, 1), 0.0), 1.0) if self.warmup else 1.0
        wide = h.to(mean.dtype)
        batch_mean, spread = wide.mean(0), (wide.var(0, correction=0) + norm.eps).sqrt()
        std = (variance + norm.eps).sqrt()
        with torch.no_grad():
            r_max = 1 + relaxed * (self.r_max - 1)
            r = (spread / std).clamp(1 / r_max, r_max)
            d = ((batch_mean - mean) / std).clamp(-relaxed * self.d_max, relaxed * self.d_max)
        norm.move(batch_mean, wide.var(0))
        return (((wide - batch_mean) / spread * r + d) * norm.weight + norm.bias).to(h.dtype)


class RunningBatchNorm(CountedBatchNorm):
    """``BatchNorm1d`` whose running statistics another module moves in training."""

    def statistics(self) -> tuple[Float[Tensor, " d"], Float[Tensor, " d"], int]:
        """Copies of the running mean and variance, and the number of batches that moved them."""
        assert self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None
        return self.running_mean.clone(), self.running_var.clone(), int(self.num_batches_tracked)

    def move(self, mean: Float[Tensor, " d"], variance: Float[Tensor, " d"]) -> None:
        """Take a batch into the running statistics."""
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        assert self.num_batches_tracked is not None
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean), self.momentum)
            self.running_var.lerp_(variance.to(self.running_var), self.momentum)
            self.num_batches_tracked += 1


@register(
    "norm",
    "mabn",
    systems=(
        SystemCard(
            "mabn",
            left_out="weights that are centralised before the norm: the mean is not taken off here",
            off="-s params.norm=batch",
            beside=("batch", "layer"),
            command=COMMAND.format("mabn(memory=4)"),
        ),
    ),
    summary="over moving averages of many batches, in the gradient too: for batches of a few graphs",
    paper="Yan et al. 2020, ICLR",
)
class MABN(Norm):
    """``gamma h / chi + beta`` with ``chi^2`` a moving average of ``mean(h^2)``, Yan et al. 2020, section 4.

    The gradient is ``dL/dh = (dL/dy - y Psi) / chi``, where ``Psi`` is the mean of ``mean(y dL/dy)`` of the last
    ``memory`` batches (equations 8 and 9): batch norm takes both of the batch, which a few graphs do not tell. For the
    first ``memory`` batches both are the batch's own. Gradients of gradients are not to be had.

    Use it for batches of one to four large graphs that are to have batch statistics; ``layer`` and ``graph`` need none.

    Args:
        d: width of the rows.
        memory: batches whose ``Psi`` is averaged.
        momentum: the share of a batch in ``chi^2``.
    """

    by_row = True
    psi: Float[Tensor, "memory d"]

    def __init__(
        self,
        d: int,
        memory: Annotated[int, Range(1, INNER_LIMIT)] = 16,
        momentum: Annotated[float, Range(0, 1, above=True)] = 0.05,
    ) -> None:
        super().__init__(d)
        self.norm = RunningBatchNorm(d, momentum=momentum)  # whose mean stays 0, and whose variance is chi^2
        self.register_buffer("psi", torch.zeros(memory, d))

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        norm = self.norm
        if not self.training or not len(h):
            return norm(h, members) if len(h) else h
        _, running, seen = norm.statistics()
        wide = h.to(running.dtype)
        batch_square = wide.detach().square().mean(0)
        norm.move(torch.zeros_like(batch_square), batch_square)
        chi = ((batch_square if seen < len(self.psi) else running) + norm.eps).sqrt()
        return (_SecondMoment.apply(wide, chi, self.psi, seen) * norm.weight + norm.bias).to(h.dtype)


class _SecondMoment(torch.autograd.Function):
    """``y = h / chi``, whose gradient takes ``Psi`` of the last batches."""

    @staticmethod
    def forward(
        ctx: Any, h: Float[Tensor, "n d"], chi: Float[Tensor, " d"], psi: Float[Tensor, "memory d"], seen: int
    ) -> Float[Tensor, "n d"]:
        y = h / chi
        ctx.save_for_backward(y, chi)
        ctx.psi, ctx.seen = psi, seen
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        y, chi = ctx.saved_tensors
        (grad,), psi, seen = grads, ctx.psi, ctx.seen
        batch_mean = (grad * y).mean(0)
        psi[seen % len(psi)] = batch_mean.to(psi.dtype)
        mean = batch_mean if seen < len(psi) else psi.mean(0).to(batch_mean.dtype)
        return (grad - y * mean) / chi, None, None, None
