"""LP-FT: train the head alone first, then all weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Positive, Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.head import Head
from molgraph.train.callback import Callback, Compute, Phase
from molgraph.train.objective import Loss, StepState
from molgraph.train.ridge_probe import RidgeProbe

STILL = 1e-6  # of the learning rate, while a ridge regression is the probe


@register(
    "callback",
    "lp-ft",
    summary="trains the head alone first, then all weights",
    paper="Kumar et al. 2022, ICLR",
    systems=(SystemCard("lp-ft", off="--callback none", beside=("all weights at once", "the head alone")),),
    command="molgraph pretrain dataset:nci --epochs 2 -o encoder.mgm && "
    "molgraph finetune encoder.mgm dataset:chembl2321810 --callback lp-ft -o model.mgm",
)
class LPFT(Callback):
    """Linear probing, then fine-tuning: a head that fits leaves the pretrained weights less to distort.

    Kumar et al. 2022, "Fine-tuning can distort pretrained features and underperform out-of-distribution", section 3.4.
    With ``probe="ridge"`` the last layer of the head is set by ridge regression on what it is given, its penalty by
    generalised cross-validation, after one pass over the rows; for ``head_layers=1`` that is the linear probe of the
    paper. With ``gradient`` it learns by steps.

    In the first phase the head and whatever else is new learn, and the pretrained encoder, its batch norm's statistics
    and its dropout stay as they are; then all learn. The epoch with the lowest validation loss is kept, of either
    phase: where no epoch of the second is better than the probe, the probe is kept. Patience counts from the second on.

    Use it for few labels, and for molecules unlike those with labels. Known limits: the share is one of the epochs at
    most, so that early stopping shortens the second phase alone.

    ``mix`` keeps a weighted mean of the weights after the probe and of those after fine-tuning (WiSE-FT: Wortsman et
    al. 2022, "Robust fine-tuning of zero-shot models", equation 1), for molecules unlike those with labels.

    Args:
        share: of the epochs, rounded to whole ones, that the head learns alone; 1 is a linear probe.
        rate: learning rate of the second phase, as a multiple of the first's.
        probe: how the head learns alone: ``gradient``, or ``ridge`` for its last layer, which takes two epochs;
            ``auto`` is ``ridge`` where the head is of rows, else ``gradient`` for half of the epochs at least.
        mix: weight of the fine-tuned weights in that mean; 1 keeps them alone.
    """

    needs_start = True
    solved: Tensor
    probed: Tensor

    def __init__(
        self,
        *,
        share: Share = 0.5,
        rate: Positive = 1.0,
        probe: Literal["gradient", "ridge", "auto"] = "gradient",
        mix: Share = 1.0,
    ) -> None:
        super().__init__()
        self.share, self.rate, self.probe, self.mix = share, rate, probe, mix
        self.ridge: RidgeProbe | None = None
        if probe != "gradient":
            self.register_buffer("solved", torch.zeros((), dtype=torch.bool))

    def begin(self, network: Any) -> None:
        """Make room for the weights after the probe, which a checkpoint keeps."""
        if self.mix < 1:
            self.register_buffer("probed", torch.zeros((), dtype=torch.bool))
            for name, value in _values(network).items():
                self.register_buffer(_probed(name), value.detach().clone())

    def phases(self, network: Any) -> list[Phase]:
        """The head, then everything."""
        if self.probe == "auto":
            self.probe = "ridge" if of_rows(network) else "gradient"
            self.share = self.share if self.probe == "ridge" else max(self.share, 0.5)
        still = STILL if self.probe == "ridge" else 1.0
        return [Phase(self.share, new_parameters(network, "lp-ft"), still), Phase(1 - self.share, rate=self.rate)]

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss; in the first epoch the rows are kept for the ridge regression."""
        if self.probe == "gradient" or self.solved or not state.training:
            return objective(network, batch, state)
        if self.ridge is None:
            if not of_rows(network):
                raise UnsupportedError("a ridge probe is of a head of rows", hint="lp-ft(probe=gradient)")
            self.ridge = RidgeProbe(network.head)
        loss = objective(network, batch, state)
        self.ridge.add(batch.y, batch.weights)
        return loss

    def after_epoch(self, network: Any) -> Mapping[str, float]:
        """Set the last layer of the head after the first epoch."""
        if self.ridge is not None:
            self.ridge.close()
            self.ridge.solve()
            self.ridge = None
            self.solved.fill_(True)
        if self.mix < 1 and not all(value.requires_grad for value in network.parameters()):
            self.probed.fill_(True)
            for name, value in _values(network).items():
                self.get_buffer(_probed(name)).copy_(value.detach())
        return {}

    @torch.no_grad()
    def end(self, network: Any) -> None:
        """Take the mean of the weights after the probe and of those of the best epoch."""
        if self.mix == 1 or self.probed.is_meta or not self.probed:  # on meta: a file is read
            return
        for name, value in _values(network).items():
            value.lerp_(self.get_buffer(_probed(name)).to(value), 1 - self.mix)


def of_rows(network: Any) -> bool:
    """Whether a network's head is of rows, and ends in a linear layer."""
    return isinstance(network.head, Head) and not network.reads_atoms


def _values(network: Any) -> dict[str, Tensor]:
    """Parameters, and statistics such as those of batch norm."""
    return {name: value for name, value in network.state_dict().items() if value.is_floating_point()}


def _probed(name: str) -> str:
    return "probed_" + name.replace(".", "__")


def new_parameters(network: Any, name: str) -> frozenset[str]:
    """Names of a network's parameters that are new, and those of its head.

    Raises:
        UnsupportedError: there are none, for the callback of that name.
    """
    names = [key for key, _ in network.named_parameters()]
    new = frozenset(key for key in names if key not in network.started or key.startswith("head."))
    if not new:
        words = f"{name} trains the head alone, and there is none"
        raise UnsupportedError(words, hint=f"leave --callback {name} out")
    return new
