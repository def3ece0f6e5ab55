"""Matching networks with iterative refinement (one-shot learning): classify molecules by attention over a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from torch import Tensor, nn

from molgraph.base.ranges import Count, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.matching_network import MatchingNetwork
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objectives.closed_form import ClosedForm
from molgraph.train.outputs import Outputs

PART = "matching"  #: its place among the network's parts
Steps = Annotated[int, Range(0, 16)]


@register(
    "objective",
    PART,
    summary="a molecule's class from its similarity to a few actives and inactives, refined by attention LSTMs",
    paper="Altae-Tran et al. 2017, ACS Cent. Sci. 3:283",
    systems=(
        SystemCard(
            "iterreflstm",
            left_out="its graph convolution (any encoder); the attention LSTM that reads the support in an order",
            off="-s params.objective.steps=0",
            beside=("random weights", "the plain matching network", "nearest neighbours by fingerprint", "a forest"),
            command="molgraph pretrain dataset:tox21 --objective matching --epochs 3 -o matching.mgm",
            modules=("molgraph.nn.matching_network", "molgraph.train.objectives.closed_form"),
        ),
    ),
)
class Matching(ClosedForm):
    """A matching network over assays of two classes, with iterative refinement LSTMs (``nn.matching_network``).

    Altae-Tran et al. 2017, "Low Data Drug Discovery with One-Shot Learning": the chance of a class is the attention
    that a query pays to the support's molecules of that class, after query and support have changed each other's
    embeddings in a few steps. A step of training minimises the cross-entropy of the queries. ``molgraph finetune
    matching.mgm assay.csv`` keeps the labelled molecules of a new assay as its support (``--callback matching``).

    Use it for a new assay with fewer than some tens of labels. Known limits: the paper's own plain siamese network is
    level with it on Tox21, and its forest is ahead on MUV.

    Args:
        network: an encoder without a head.
        inputs: what it reads.
        outputs: the tasks: targets of rows, of two classes.
        steps: of refinement; 0 is the matching network of Vinyals et al. 2016.
        width: of the embeddings that are compared.
        shots: rows of a task's support, at most half of those that it has.
        queries: rows of its query, at most.
        n_tasks: tasks of a batch; ``batch_size`` says how many steps an epoch has.
    """

    name = PART
    classes_only = True
    adapts_by = PART

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        steps: Steps = 3,
        width: Width = 64,
        shots: Count = 16,
        queries: Count = 32,
        n_tasks: Count = 4,
    ) -> None:
        super().__init__(network, inputs, outputs, shots=shots, queries=queries, n_tasks=n_tasks)

    @classmethod
    def network_parts(cls, network: Network, *, steps: int = 3, width: int = 64, **_: Any) -> Mapping[str, nn.Module]:
        """The matching network."""
        return {PART: MatchingNetwork(network.d_state, steps, width)}

    def raw(self, network: Any, h: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """The logits of the query."""
        logits: Tensor = network.parts[PART](h, y, query)
        return logits
