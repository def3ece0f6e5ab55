"""SNIP: prune weights before training, by what the loss of one batch says of each connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import ConflictError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.callback import Compute
from molgraph.train.masks import Masked, masks_of, matrices
from molgraph.train.objective import Loss, StepState

STEPS, RATE = 200, 0.05  # of the descent towards isometry, stable for singular values of 1


@register(
    "callback",
    "snip",
    summary="sets weights to zero before training, by the sensitivity of the loss to each",
    paper="Lee, Ajanthan and Torr 2019, ICLR; isometry: Lee et al. 2020, ICLR",
    systems=(
        SystemCard(
            "snip",
            left_out="weights drawn by variance scaling; images",
            off="--callback none",
            beside=("random weights, as many in each layer",),
            command="molgraph train dataset:chembl2321810 -m dmpnn --callback 'snip(fraction=0.9)'",
            modules=("molgraph.train.masks",),
        ),
    ),
)
class SNIP(Masked):
    """Keep the connections whose removal would change the loss of the first batch most, then train them alone.

    Lee, Ajanthan and Torr 2019, "SNIP: Single-shot Network Pruning based on Connection Sensitivity", equations 4 to 6:
    with a factor ``c_j = 1`` on each weight, ``s_j = |dL / dc_j| / sum_k |dL / dc_k| = |w_j dL / dw_j| / sum``. The
    matrices of encoder and head are pruned together; what is zero stays zero (``train.masks``).

    With ``isometry``, after Lee et al. 2020, "A Signal Propagation Perspective for Pruning Neural Networks at
    Initialization", section 4: matrices are drawn orthogonal, so that signals and sensitivities keep their size from
    layer to layer, and once they are pruned the weights that are left minimise ``|(C W)^T (C W) - I|_F`` (equation 10)
    without data.

    Dense matrices are neither faster nor smaller for their zeros; a compressed copy of the file is. A batch of classes
    should have each of them.

    Args:
        fraction: of the weights that are removed.
        isometry: whether matrices are drawn orthogonal, and brought back towards it.
    """

    def __init__(
        self, fraction: Annotated[float, Range(0, 1, above=True, below=True)] = 0.9, *, isometry: bool = False
    ) -> None:
        super().__init__()
        self.fraction, self.isometry = fraction, isometry

    def begin(self, network: Any) -> None:
        """Masks that keep everything, until the first batch comes."""
        if self.isometry and network.started:
            words = "isometry draws new weights, and this training starts from a file"
            raise ConflictError(words, hint="leave isometry out, or train from scratch")
        for number, value in enumerate(matrices(network).values()):
            self.register_buffer(f"mask_{number}", torch.ones_like(value, dtype=torch.bool))

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss; before the first step the network is pruned."""
        if state.training and not (state.step or state.turn):
            self.prune(objective, network, batch, state)
        return objective(network, batch, state)

    def prune(self, objective: Compute, network: Any, batch: Any, state: StepState) -> None:
        """Take the masks from one batch, and set what they leave out to zero."""
        values = matrices(network)
        if self.isometry:
            for value in values.values():
                make_orthogonal(value)
        scores = sensitivity(objective(network, batch, state).total, [*values.values()])
        masks = masks_of(dict(zip(values, scores, strict=True)), self.fraction)
        for number, (name, value) in enumerate(values.items()):
            getattr(self, f"mask_{number}").copy_(masks[name])
            if self.isometry:
                restore_isometry(value, masks[name])
        self.apply_masks(network)

    def notes(self, network: Any) -> Sequence[str]:
        """How much of each matrix is left."""
        shares = [float(mask.float().mean()) for mask in self.buffers()]
        words = (
            f"snip: {1 - self.fraction:.1%} of the weights left, from {min(shares):.1%} to {max(shares):.1%} a matrix"
        )
        return [words]


def sensitivity(loss: Tensor, values: Sequence[Tensor]) -> list[Tensor]:
    """Each weight's share of ``|w dL / dw|``; 0 for weights that the loss does not read."""
    gradients = torch.autograd.grad(loss, values, allow_unused=True)
    scores = [
        torch.zeros_like(value) if gradient is None else (value * gradient).detach().abs()
        for value, gradient in zip(values, gradients, strict=True)
    ]
    total = torch.stack([score.sum() for score in scores]).sum().clamp(min=torch.finfo(scores[0].dtype).tiny)
    return [score / total for score in scores]


@torch.no_grad()
def make_orthogonal(value: Tensor) -> None:
    """Draw a matrix, or each of a stack of them, with all singular values 1."""
    for weight in _each(value):
        nn.init.orthogonal_(weight)


def _each(value: Tensor) -> Iterator[Tensor]:
    yield from value.view(-1, *value.shape[-2:])


def isometry_gap(value: Tensor) -> Tensor:
    """``|W^T W - I|_F^2`` of each matrix, or of ``W W^T`` where that is smaller: 0 where all singular values are 1."""
    wide = value if value.shape[-2] <= value.shape[-1] else value.mT
    return (wide @ wide.mT - torch.eye(wide.shape[-2], device=wide.device)).square().sum((-2, -1))


@torch.no_grad()
def restore_isometry(value: Tensor, mask: Tensor) -> None:
    """Move the weights that are left so that the pruned matrix is nearly orthogonal: a descent without data."""
    value *= mask
    wide, kept = (value, mask) if value.shape[-2] <= value.shape[-1] else (value.mT, mask.mT)
    eye = torch.eye(wide.shape[-2], device=wide.device)
    for _ in range(STEPS):
        wide -= RATE * 4 * ((wide @ wide.mT - eye) @ wide) * kept
