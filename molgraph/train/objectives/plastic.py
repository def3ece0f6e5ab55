"""Differentiable plasticity (few-shot learning): a head with Hebbian weights that a few labelled molecules write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.plastic import PlasticLayer
from molgraph.train.network import Network
from molgraph.train.objectives.closed_form import SupportHead


@register(
    "objective",
    "plastic",
    summary="a head whose Hebbian weights a few labelled molecules write, without gradient",
    paper="Miconi et al. 2018, ICML",
    systems=(
        SystemCard(
            "differentiable-plasticity",
            left_out="recurrent networks, and Oja's rule; the last layer alone is plastic",
            off="ridge",
            beside=("without plasticity", "prototypes"),
            command="molgraph pretrain dataset:tox21 --objective plastic --epochs 3 -o plastic.mgm",
            modules=("molgraph.nn.plastic", "molgraph.train.objectives.closed_form"),
        ),
    ),
)
class Plastic(SupportHead):
    """A linear head with fixed and Hebbian weights (``nn.plastic``), trained through the queries of many tasks.

    Miconi et al. 2018, "Differentiable plasticity: training plastic neural networks with backpropagation": each task's
    support is read one molecule after the other, its labels clamped to the head's output, and writes the Hebbian part.
    ``molgraph finetune plastic.mgm assay.csv`` writes the head of a new assay so (``--callback plastic``).

    Known limits: a prototypical network (``prototypes``) does nearly the same, and later examples weigh more.

    Args:
        network: an encoder without a head.
        inputs: what it reads.
        outputs: the tasks: targets of rows, all numbers or all of two classes.
        shots: rows of a task's support, at most half of those that it has.
        queries: rows of its query, at most.
        n_tasks: tasks of a batch; ``batch_size`` says how many steps an epoch has.
    """

    name = "plastic"
    adapts_by = "plastic"

    @classmethod
    def network_parts(cls, network: Network, **_: Any) -> Mapping[str, nn.Module]:
        """The layer."""
        return {cls.name: PlasticLayer(network.d_state)}
