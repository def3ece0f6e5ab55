"""Support FiLM (few-shot learning): a set network reads an assay's first measurements and writes the head at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from molgraph.base.ranges import Count, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.set_film import SetFilm
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objectives.closed_form import SupportHead
from molgraph.train.outputs import Outputs


@register(
    "objective",
    "support-film",
    summary="a network that reads a few labelled molecules and writes scale and shift of the head",
    paper="Zakharov et al. 2019, ICCV",
    systems=(
        SystemCard(
            "few-shot-adain-talking-heads",
            left_out="images: landmarks, discriminator and perceptual losses; the conditioned head alone",
            off="ridge",
            beside=("the support's embedding set to zero", "ridge regression on each task"),
            command="molgraph pretrain dataset:tox21 --objective support-film --epochs 3 -o film.mgm",
            modules=("molgraph.nn.set_film", "molgraph.train.objectives.closed_form"),
        ),
    ),
)
class SupportFilm(SupportHead):
    """A head whose input is scaled and shifted (FiLM) by the mean embedding of the support's molecules and labels.

    Zakharov et al. 2019, "Few-Shot Adversarial Learning of Realistic Neural Talking Head Models", section 3.2: the
    parameters of adaptive normalisation are a projection of the mean embedding of K examples (``nn.set_film``), learned
    over many tasks; nothing is learned by gradient within one. ``molgraph finetune film.mgm assay.csv`` writes the head
    of a new assay in one pass (``--callback film``), from which ``film(share=0.1)`` goes on to train all weights.

    Use it where many assays are at hand, and a prediction is wanted at once. Known limits: with few assays the set
    network learns those assays, and ridge regression on the support is better.

    Args:
        network: an encoder without a head.
        inputs: what it reads.
        outputs: the tasks: targets of rows, all numbers or all of two classes.
        width: of the support's embedding.
        shots: rows of a task's support, at most half of those that it has.
        queries: rows of its query, at most.
        n_tasks: tasks of a batch; ``batch_size`` says how many steps an epoch has.
    """

    name = "support-film"
    adapts_by = "film"

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        width: Width = 128,
        shots: Count = 16,
        queries: Count = 32,
        n_tasks: Count = 4,
    ) -> None:
        super().__init__(network, inputs, outputs, shots=shots, queries=queries, n_tasks=n_tasks)

    @classmethod
    def network_parts(cls, network: Network, *, width: int = 128, **_: Any) -> Mapping[str, nn.Module]:
        """The set network, and the head that all tasks share."""
        return {cls.name: SetFilm(network.d_state, width)}
