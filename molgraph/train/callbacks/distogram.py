"""Learn the distances of atoms beside the labels: the distogram as an auxiliary loss."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Positive, Width
from molgraph.base.registry import register
from molgraph.data.position_labels import POSITION
from molgraph.nn.encoder import Encoded
from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, StepState
from molgraph.train.objectives.distogram import HEAD, Bins, make_head, pair_losses


@register(
    "callback",
    "distogram",
    summary="the distances of atoms in a conformer, beside the objective",
    paper="Senior et al. 2020, Nature 577:706",
)
class DistogramLoss(Callback):
    """``loss + weight CE``, where CE is the mean cross-entropy of the distances of the batch's pairs of atoms.

    The distogram of ``objectives.distogram`` as an auxiliary loss around any objective of one column of molecules, as
    Senior et al. 2020 have theirs beside secondary structure and accessibility; its head is kept with the model, so
    that ``molgraph conformers`` reads it. Validation judges the objective alone. The encoder runs once a step.

    Args:
        weight: of the cross-entropy, added for each label.
        n_bins, first, last, d_pair: as for the objective.

    Raises:
        UnsupportedError: several columns, or an encoder that gives no states of atoms.
    """

    arrays = (POSITION,)

    def __init__(
        self,
        *,
        weight: NotNegative = 0.1,
        n_bins: Bins = 64,
        first: Positive = 1.0,
        last: Positive = 11.0,
        d_pair: Width = 128,
    ) -> None:
        super().__init__()
        self.weight = weight
        self.sizes: dict[str, Any] = {"n_bins": n_bins, "first": first, "last": last, "d_pair": d_pair}

    def begin(self, network: Any) -> None:
        """Put the head beside the network's other parts."""
        if len(network.encoders) > 1 or not network.encoder.d_rows:
            hint = "choose one encoder of atoms, such as gin or dmpnn, or leave the callback out"
            raise UnsupportedError("distances are learned of the atoms of one column of molecules", hint=hint)
        network.parts[HEAD] = make_head(network.encoder, **self.sizes)

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss, and that of the distances while training."""
        if not state.training or not self.weight or POSITION not in batch.parts[0].batch["atom"].arrays:
            return objective(network, batch, state)
        with states_of(network.encoder) as seen:
            loss = objective(network, batch, state)
        encoded, graphs = (seen or [network.encoder(batch.parts[0].batch, rows=True)])[0], batch.parts[0].batch
        (h,) = (states.h for states in encoded.rows if states.level == "atom")
        total, count = pair_losses(network.parts[HEAD], h, graphs)
        return loss.with_penalties({HEAD: total / count}, {HEAD: self.weight})


@contextmanager
def states_of(encoder: nn.Module) -> Iterator[list[Encoded]]:
    """Ask an encoder for the states of its rows in every call of the block, and collect what it gives."""
    seen: list[Encoded] = []
    hooks = [
        encoder.register_forward_pre_hook(lambda _, args, kwargs: (args, kwargs | {"rows": True}), with_kwargs=True),
        encoder.register_forward_hook(lambda _, args, encoded: seen.append(encoded)),
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
