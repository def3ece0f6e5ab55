"""Prototypical networks (few-shot learning): classify molecules by the distance to the mean embedding of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.ranges import Count, Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.closed_form import ClassSpread, prototype_head
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objectives.closed_form import LinearClosedForm
from molgraph.train.outputs import Outputs

SPREAD = "class_spread"  #: its place among the network's parts


@register(
    "objective",
    "prototypes",
    summary="states in which the means of a few actives and inactives tell others",
    paper="Snell et al. 2017, NeurIPS",
    systems=(
        SystemCard(
            "prototypical-networks",
            left_out="more than two classes a task; distances are divided by the support's spread",
            off="maml",
            beside=("random weights", "nearest neighbours by fingerprint", "a forest on fingerprints"),
            command="molgraph pretrain dataset:tox21 --objective prototypes --epochs 3 -o proto.mgm",
            modules=("molgraph.nn.closed_form", "molgraph.train.objectives.closed_form"),
        ),
    ),
)
class Prototypes(LinearClosedForm):
    """Prototypical networks over assays of two classes.

    Snell et al. 2017, "Prototypical Networks for Few-shot Learning", equations 1 and 2: the chance of a class falls
    with the squared distance of a molecule's state from the mean state of the support's molecules of that class, and a
    step minimises the negative log-likelihood of the queries. ``molgraph finetune proto.mgm assay.csv`` sets the
    head of a new assay to its prototypes, without a step of gradient descent (``--callback prototypes``).

    Use it for a new assay with ten to a hundred labels, where others are at hand to learn from. Known limits: forests
    and nearest neighbours on fingerprints are hard to beat (Stanley et al. 2021), and the report shows the forest.

    Args:
        network: an encoder without a head.
        inputs: what it reads.
        outputs: the tasks: targets of rows, of two classes.
        mahalanobis: share of the covariance within classes in the metric; 0 for Euclidean distances.
        shots: rows of a task's support, at most half of those that it has.
        queries: rows of its query, at most.
        n_tasks: tasks of a batch; ``batch_size`` says how many steps an epoch has.
    """

    name = "prototypes"
    classes_only = True
    adapts_by = "prototypes"

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        mahalanobis: Share = 0.0,
        shots: Count = 16,
        queries: Count = 32,
        n_tasks: Count = 4,
    ) -> None:
        super().__init__(network, inputs, outputs, shots=shots, queries=queries, n_tasks=n_tasks)
        self.mahalanobis = mahalanobis

    @classmethod
    def network_parts(cls, network: Network, **_: Any) -> Mapping[str, nn.Module]:
        """The covariances of states between and within classes, for ``finetune --callback 'prototypes(est=5)'``."""
        return {SPREAD: ClassSpread(network.d_state)}

    def solve(self, network: Any, h: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The difference of the two classes' distances."""
        one_hot = torch.stack([y < 0.5, y > 0.5], dim=1).to(h.dtype)
        if network.training:
            network.parts[SPREAD].add(h, one_hot)
        weight, bias = prototype_head(h, one_hot, self.mahalanobis)
        return weight[1:] - weight[:1], bias[1:] - bias[:1]
