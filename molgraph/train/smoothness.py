"""Measure how smooth the loss is along the training, and set the limit of the gradient's norm by its first epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, StepState

USUAL, SHARE, KEPT = 10.0, 0.9, 4096  # the limit of the first epoch; the share of its norms below the next; norms kept
AUTO = "auto"


class AutoClip(Callback):
    """``gradient_clip=auto``: the limit is the 90th percentile of the gradient's norms in the first epoch.

    Zhang et al. 2020, "Why Gradient Clipping Accelerates Training": where the loss is ``(L0, L1)``-smooth,
    ``|Hessian| <= L0 + L1 |gradient|``, clipped steps reach a flat place in a number of them that does not depend
    on the largest gradient. Once an epoch the probe takes ``|g(x+) - g(x)| / |x+ - x|`` of the same batch before and
    after a step (section 5.1), the curves' column ``smoothness``; at the end ``L0`` and ``L1`` are fitted to it by
    least squares.
    """

    limit: Tensor
    norms: Tensor
    points: Tensor
    probed: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("limit", torch.tensor(USUAL))
        self.register_buffer("norms", torch.full((KEPT,), torch.nan))
        self.register_buffer("points", torch.full((2, KEPT), torch.nan))  # gradient norm and smoothness
        self.register_buffer("probed", torch.tensor(-1))  # the epoch of the last probe
        self.pending: tuple[Any, ...] | None = None

    def note(self, norm: Tensor, state: StepState) -> None:
        """Take a step's norm, before it is clipped, of the first epoch."""
        if state.epoch == 0 and state.turn == 0 and state.step < KEPT:
            self.norms[state.step] = norm.detach()

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's; before the first step of an epoch the batch and the weights are kept for the probe."""
        if state.training and state.turn == 0 and state.epoch < KEPT and state.epoch != int(self.probed):
            self.probed.fill_(state.epoch)
            weights = [value.detach().clone() for value in network.parameters()]
            self.pending = (objective, batch, state, weights, torch.random.get_rng_state())
        return objective(network, batch, state)

    def after_step(self, network: Any, state: StepState) -> None:
        """The probe, where a batch is kept: gradients before and after the step, by the same random numbers."""
        if self.pending is None:
            return
        (objective, batch, then, before, random), self.pending = self.pending, None
        values = [*network.parameters()]
        with _as_it_was(network), torch.random.fork_rng(devices=[]):
            moved = torch.cat([(new.detach() - old).flatten() for new, old in zip(values, before, strict=True)]).norm()
            gradients = []
            for weights in (None, before):  # those of now, then those of before the step
                if weights is not None:
                    for value, weight in zip(values, weights, strict=True):
                        value.data.copy_(weight)
                torch.random.set_rng_state(random)
                gradients.append(_gradient(objective(network, batch, then), values))
            if moved > 0:
                change = (gradients[0] - gradients[1]).norm() / moved
                self.points[:, then.epoch] = torch.stack([gradients[1].norm(), change]).to(self.points)

    def after_epoch(self, network: Any) -> Mapping[str, float]:
        """The columns ``smoothness`` and ``gradient_clip``; after the first epoch the limit is set."""
        norms = self.norms[self.norms.isfinite() & (self.norms > 0)]
        used = float(self.limit)
        if len(norms) and used == USUAL:
            self.limit.fill_(float(torch.quantile(norms, SHARE)))
        return {"smoothness": float(self.points[1, max(int(self.probed), 0)]), "gradient_clip": used}

    def notes(self, network: Any) -> Sequence[str]:
        """The limit, and the fitted smoothness."""
        words = f"gradients are clipped at a norm of {float(self.limit):.3g}, the 90th percentile of the first epoch"
        fit = self.fitted()
        return (words,) if fit is None else (f"{words}; smoothness {fit[0]:.3g} + {fit[1]:.3g} |gradient|",)

    def fitted(self) -> tuple[float, float] | None:
        """``L0`` and ``L1`` by least squares over the probes; None of fewer than three."""
        x = self.points[:, self.points.isfinite().all(0)].double()
        if x.shape[1] < 3:
            return None
        g, smooth = x
        slope = ((g - g.mean()) * (smooth - smooth.mean())).sum() / (g - g.mean()).square().sum().clamp(min=1e-30)
        return float(smooth.mean() - slope * g.mean()), float(slope)


def auto_clip(limit: float | str | None) -> list[AutoClip]:
    """The callback of ``gradient_clip=auto``; none of another limit."""
    return [AutoClip()] if limit == AUTO else []


def clip_gradients(fabric: Any, learner: Any, optimizer: Any, limit: float | str | None, state: StepState) -> None:
    """Shorten the gradient to the limit, or to that of the learner's ``AutoClip``, which notes its norm."""
    if limit is None:
        return
    auto = next((callback for callback in learner.module.callbacks if isinstance(callback, AutoClip)), None)
    norm = fabric.clip_gradients(
        learner, optimizer, max_norm=float(auto.limit if auto else limit), error_if_nonfinite=False
    )
    if auto and norm is not None:
        auto.note(norm, state)


def _gradient(loss: Loss, values: Sequence[nn.Parameter]) -> Tensor:
    with torch.enable_grad():
        learns = [value for value in values if value.requires_grad]
        grads = torch.autograd.grad(loss.total / max(loss.count, 1), learns, allow_unused=True)
        return torch.cat(
            [torch.zeros_like(v).flatten() if g is None else g.flatten() for v, g in zip(learns, grads, strict=True)]
        )


@contextmanager
def _as_it_was(network: nn.Module) -> Iterator[None]:
    """Leave weights and running statistics as they are before the block."""
    kept = [value.detach().clone() for value in (*network.parameters(), *network.buffers())]
    try:
        yield
    finally:
        for value, backup in zip((*network.parameters(), *network.buffers()), kept, strict=True):
            value.data.copy_(backup)
