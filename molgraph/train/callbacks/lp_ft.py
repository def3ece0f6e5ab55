"""LP-FT: train the head alone first, then all weights."""

from __future__ import annotations

from typing import Any

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Positive, Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.callback import Callback, Phase


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
    In the first phase the head and whatever else is new learn, and the pretrained encoder, its batch norm's statistics
    and its dropout stay as they are; then all learn. The epoch with the lowest validation loss is kept, of either
    phase: where no epoch of the second is better than the probe, the probe is kept. Patience counts from the second on.

    Use it for few labels, and for molecules unlike those with labels. Known limits: the share is one of the epochs at
    most, so that early stopping shortens the second phase alone.

    Args:
        share: of the epochs, rounded to whole ones, that the head learns alone; 1 is a linear probe.
        rate: learning rate of the second phase, as a multiple of the first's.
    """

    needs_start = True

    def __init__(self, *, share: Share = 0.5, rate: Positive = 1.0) -> None:
        super().__init__()
        self.share, self.rate = share, rate

    def phases(self, network: Any) -> list[Phase]:
        """The head, then everything."""
        return [Phase(self.share, new_parameters(network, "lp-ft")), Phase(1 - self.share, rate=self.rate)]


def new_parameters(network: Any, name: str) -> frozenset[str]:
    """Names of a network's parameters that are new, and those of its head.

    Raises:
        UnsupportedError: there are none, for the callback of that name.
    """
    names = [each for each, _ in network.named_parameters()]
    new = frozenset(each for each in names if each not in network.started or each.startswith("head."))
    if not new:
        words = f"{name} trains the head alone, and there is none"
        raise UnsupportedError(words, hint=f"leave --callback {name} out")
    return new
