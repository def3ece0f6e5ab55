"""Linear probe: train the head alone on a pretrained encoder that stays as it is."""

from __future__ import annotations

from typing import Any

from molgraph.base.registry import register
from molgraph.train.callback import Callback, Phase
from molgraph.train.callbacks.lp_ft import new_parameters


@register(
    "callback",
    "linear-probe",
    summary="trains the head alone; the pretrained encoder stays as it is",
    paper="Alain and Bengio 2016, arXiv:1610.01644",
    command="molgraph pretrain dataset:nci --epochs 2 -o encoder.mgm && "
    "molgraph finetune encoder.mgm dataset:chembl2321810 --callback linear-probe -o model.mgm",
)
class LinearProbe(Callback):
    """The head and whatever else is new learn; weights and batch norm's statistics of the start stay to the bit.

    Use it to see what a pretrained encoder knows, and where labels are so few that anything else overfits. With the
    usual head it is a perceptron on fixed features; ``-s params.head_layers=1`` makes it linear.
    """

    needs_start = True

    def phases(self, network: Any) -> list[Phase]:
        """One phase, of what is new."""
        return [Phase(1.0, new_parameters(network, "linear-probe"))]
