"""Mixout: fine-tune with random weights replaced by those of the start, anew in every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, StepState


@register(
    "callback",
    "mixout",
    summary="replaces random weights by those of the pretrained model in every step",
    paper="Lee et al. 2020, ICLR",
    systems=(
        SystemCard(
            "mixout",
            left_out="mixing the weights of the new head with their initial values",
            off="--callback none",
            beside=("all weights at once", "dropconnect"),
        ),
    ),
    command="molgraph pretrain dataset:nci --epochs 2 -o encoder.mgm && "
    "molgraph finetune encoder.mgm dataset:chembl2321810 --callback mixout -o model.mgm",
)
class Mixout(Callback):
    """``W_mix = (M W + (1 - M) U - p U) / (1 - p)``, where M keeps each weight with probability 1 - p.

    Lee, Cho and Kang 2020, "Mixout: Effective regularization to finetune large-scale pretrained language models",
    section 3: dropout whose dropped value is the weight U of the start. The mean over masks is W, and the mean of a
    strongly convex loss grows with ``p / (1 - p) |W - U|^2``, an adaptive pull towards U. Matrices of weights that come
    from the file are mixed, biases and norms are not; validation and predictions read W itself.

    Use it where results of fine-tuning on a few hundred molecules differ from seed to seed. Callbacks that are named
    before it see the mixed weights, those after it (``mixout+l2-sp``) the weights that learn.

    Args:
        p: probability that a weight is replaced in a step; with 0 training is plain to the bit.
    """

    needs_start = True

    def __init__(self, *, p: Annotated[float, Range(0, 1, below=True)] = 0.7) -> None:
        super().__init__()
        self.p = p

    def begin(self, network: Any) -> None:
        """Keep the matrices of the start."""
        self.names = [name for name, value in network.named_parameters() if name in network.started and value.ndim > 1]
        for number, name in enumerate(self.names):
            self.register_buffer(f"start_{number}", network.get_parameter(name).detach().clone())

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss of the mixed weights while training."""
        if not (state.training and self.p):
            return objective(network, batch, state)
        starts = [getattr(self, f"start_{number}") for number in range(len(self.names))]
        weights = {
            name: mixed(network.get_parameter(name), start, self.p)
            for name, start in zip(self.names, starts, strict=True)
            if network.get_parameter(name).requires_grad  # a phase may leave some as they are
        }
        with weights_replaced(network, weights):
            return objective(network, batch, state)


def mixed(weight: Tensor, start: Tensor, p: float) -> Tensor:
    """The weights of one step: each is that of the start with probability p, scaled so that the mean is ``weight``.

    All three have one shape.

    Example:
        >>> mixed(torch.ones(3), torch.ones(3), 0.5)
        tensor([1., 1., 1.])
    """
    keep = torch.rand_like(weight) >= p
    return start + keep * (weight - start) / (1 - p)


@contextmanager
def weights_replaced(network: nn.Module, values: Mapping[str, Tensor]) -> Iterator[None]:
    """Other tensors in the place of parameters of those names within the block, through which gradients flow back."""
    places = [(network.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in values]
    kept: list[Any] = [module._parameters[key] for module, key in places]
    try:
        for (module, key), value in zip(places, values.values(), strict=True):
            module._parameters[key] = value  # type: ignore[assignment] # in its place, so that the order stays
        yield
    finally:
        for (module, key), weight in zip(places, kept, strict=True):
            module._parameters[key] = weight
