"""S4L: learn labels and, on the same step, a self-supervised task on molecules with and without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch

from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import make_part, read_part
from molgraph.base.ranges import NotNegative
from molgraph.base.registry import get, names, register
from molgraph.base.systems import SystemCard
from molgraph.train.guesses import check_one_column
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.row_labels import RowLabels
from molgraph.train.samples import Sample


@register(
    "objective",
    "s4l",
    summary="labels of some rows; a pretraining task on all rows in the same step",
    paper="Zhai et al. 2019, ICCV",
    systems=(
        SystemCard(
            "s4l",
            left_out="images, rotations; exemplars, for which uda and contrast stand; the three stages of MOAM",
            off="-s params.objective.w=0",
            beside=("labels alone", "infograph-star"),
            command="molgraph train dataset:chembl2321810 -m gin --objective s4l "
            "-s params.objective.pretext=masked-atoms -s params.objective.w=0.5 --unlabelled dataset:nci -o m.mgm",
            modules=("molgraph.train.objectives.masked_atoms", "molgraph.train.draws"),
        ),
    ),
)
class S4L(Objective):
    """Self-supervised semi-supervised learning for few labels and many molecules.

    Zhai et al. 2019, "S4L: Self-Supervised Semi-Supervised Learning", equation 1: ``L_labels + w L_pretext``, where
    L_pretext is the mean loss of a registered pretraining objective over the labelled and the unlabelled molecules of
    a batch. Labels are learned from molecules as they are; the pretext hides what it hides in a copy. Validation judges
    the labels alone.

    Use it where few rows have labels and many like them have none, in the place of ``pretrain`` and ``finetune`` in
    two runs. Known limits: every step encodes labelled molecules twice; a pretext that has little to do with the
    target takes from the encoder what it gives.

    Args:
        network: its one encoder is trained by both.
        inputs: the one column that it reads.
        outputs: the targets, those of whole rows, on the scale of the labelled rows.
        pretext: a pretraining objective with its settings, such as ``masked-atoms`` or ``descriptors(bits=0)``.
        w: weight of its mean loss.
        penalties: the weights of the network's penalties by name; 1 if not given.

    Raises:
        UnsupportedError: targets of atoms or bonds, several columns, or an objective that is no pretext.
    """

    semi_supervised = True
    unused_parameters = True  # the pretext's where w is 0, and those of a readout
    plain = "labelled"

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        pretext: str = "masked-atoms",
        w: NotNegative = 0.5,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        check_one_column("s4l", inputs, outputs)
        name = read_part(pretext, "objective").name
        if not is_pretext(get("objective", name)):
            able = ", ".join(each for each in names("objective") if is_pretext(get("objective", each)))
            raise UnsupportedError(f"{name} is no task of molecules one by one", hint=f"choose one of {able}")
        get("objective", name).check_inputs(inputs)
        self.supervised, self.w = Supervised(outputs, penalties=penalties), w
        self.pretext: Objective = make_part("objective", pretext, network, inputs)
        if len(self.pretext.turns(network)) > 1:
            raise UnsupportedError(f"{pretext} needs several optimisers", hint="leave prior_weight out")
        self.least_rows, self.valid_parts = self.pretext.least_rows, self.supervised.valid_parts
        self.n_targets = len(outputs.targets)

    @classmethod
    def row_labels(cls, *, pretext: str = "masked-atoms", **_: Any) -> RowLabels | None:
        """The pretext's labels of molecules, such as descriptors; in a batch they stand behind the targets."""
        part = read_part(pretext, "objective")
        return get("objective", part.name).row_labels(**part.settings)

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch as the pretext sees it, in which each row counts once, and its plain copy with the targets."""
        assert batch.plain is not None and batch.plain.y is not None and batch.y is not None
        seen, plain = copy(batch), copy(batch.plain)
        plain.y, seen.y = batch.plain.y[:, : self.n_targets], batch.y[:, self.n_targets :]
        seen.weights = torch.ones(len(batch.y), 1)
        seen = self.pretext.corrupt(seen, rng)
        seen.plain = plain
        return seen

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the labels of a batch, to each of which the mean loss of the pretext is added."""
        loss = self.supervised(network, batch.plain, state)
        if not state.training or not self.w:
            return loss
        pretext = self.pretext(network, batch, state)
        return loss.with_penalties({"pretext": pretext.total / max(pretext.count, 1)}, {"pretext": self.w})

    def after_step(self, network: Any, state: StepState) -> None:
        """What the pretext does after a step."""
        self.pretext.after_step(network, state)


def is_pretext(make: type[Objective]) -> bool:
    """Whether a registered objective learns rows without labels by an encoder and modules of its own alone."""
    plain = all(
        getattr(make, name).__func__ is getattr(Objective, name).__func__ for name in ("parts", "network_parts")
    )
    rows = make.copies == 1 and not make.arrays and not make.needs and make.sampler is Objective.sampler
    return not make.labelled and not make.tasks and plain and rows
