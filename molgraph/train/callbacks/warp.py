"""Warped fine-tuning: train a model between warp layers that were learned on other assays and stay as they are."""

from __future__ import annotations

from typing import Any

from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import register
from molgraph.nn.warp import Warps, widths_of
from molgraph.train.callback import Callback
from molgraph.train.callbacks.lp_ft import of_rows
from molgraph.train.objectives.warpgrad import WARPS


@register(
    "callback",
    "warp",
    summary="trains all weights between warp layers that were learned on other assays, and stay",
    paper="Flennerhag et al. 2020, ICLR",
    command="molgraph pretrain dataset:tox21 --objective warpgrad --epochs 3 -o warp.mgm && "
    "molgraph finetune warp.mgm dataset:tox21 --callback warp -o model.mgm",
)
class Warp(Callback):
    """The warps of ``pretrain --objective warpgrad`` stand in the network and precondition its gradients.

    Flennerhag et al. 2020, "Meta-Learning with Warped Gradient Descent": tasks train all but the warps.
    """

    needs_start = True
    starts_from = "warpgrad"

    def begin(self, network: Any) -> None:
        """Put the warps into the network; they are not trained.

        Raises:
            UnsupportedError: the file has no warps, or those of another head.
        """
        if not of_rows(network):
            raise UnsupportedError("warps stand in a head of rows", hint="choose a head such as params.head=perceptron")
        warps = Warps(widths_of(network.head, network.d_state))
        if network.started:
            if WARPS not in network.start_parts:
                hint = "pretrain with it: molgraph pretrain assays.csv -t 'SR-*' --objective warpgrad -o start.mgm"
                raise UnsupportedError(
                    "warp goes on with the warps of --objective warpgrad; the file has none", hint=hint
                )
            theirs = network.start_parts[WARPS].state_dict()
            if {k: v.shape for k, v in theirs.items()} != {k: v.shape for k, v in warps.state_dict().items()}:
                words = "the head of the file has other widths than this model's, so that its warps do not fit"
                raise UnsupportedError(words, hint="leave params.head_width and params.head_layers out")
            warps.load_state_dict(theirs)
        network.parts[WARPS] = warps.requires_grad_(False)
        network.parts[WARPS].attach(network.head)

    def end(self, network: Any) -> None:
        """Let the warps be trained again, by whoever goes on from here."""
        network.parts[WARPS].requires_grad_(True)
