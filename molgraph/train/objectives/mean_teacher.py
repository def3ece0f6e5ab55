"""Mean teacher: semi-supervised training by consistency with a moving average of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Range, Share
from molgraph.base.registry import register
from molgraph.nn.encoder import Encoded
from molgraph.nn.penalties import add_penalties
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample

Decay = Annotated[float, Range(0, 1, below=True)]


@register(
    "objective",
    "mean-teacher",
    summary="labels of some rows; all rows agree with a moving average of the network",
    paper="Tarvainen and Valpola 2017, NeurIPS",
    command="molgraph train dataset:chembl2321810 -m gin --objective mean-teacher --unlabelled dataset:nci -o m.mgm",
)
class MeanTeacher(Objective):
    """Mean teacher for few labels and many graphs; the network is the teacher, which is kept and judged.

    Tarvainen and Valpola 2017, "Mean teachers are better role models", equations 1 and 2: the student's loss is the
    supervised one on rows with labels plus, on all rows, ``weight J(theta)``, the mean squared distance of its
    predictions from the teacher's, and after each step ``theta' <- alpha theta' + (1 - alpha) theta`` with
    ``alpha = min(decay, 1 - 1 / (step + 1))``. Both see the states of graphs, and their dropout, under noise of their
    own. The distance is that of scaled values, or of probabilities; its weight rises as
    ``exp(-5 (1 - t)^2)`` over the share ``ramp`` of the training.

    Use it where few rows have labels and many like them have none. Known limits: two networks are kept, and both run on
    every batch; without dropout or noise student and teacher agree from the start, and nothing is learned of the rest.

    Args:
        network: the teacher.
        inputs: what it reads.
        outputs: the targets, those of whole rows, on the scale of the labelled rows.
        weight: weight of the distance after the ramp.
        decay: the largest alpha.
        noise: standard deviation of what multiplies each value of a graph's state, about 1.
        ramp: share of the training over which the weight rises.
        penalties: the weights of the network's penalties by name; 1 if not given.

    Raises:
        UnsupportedError: targets of atoms or bonds, or a head that reads the states of atoms.
    """

    semi_supervised = True
    unused_parameters = True  # the teacher's

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        weight: NotNegative = 1.0,
        decay: Decay = 0.99,
        noise: NotNegative = 0.1,
        ramp: Share = 0.2,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        if outputs.level != "row":
            words = f"mean-teacher learns targets of rows, and {outputs.targets[0].name} is one of each {outputs.level}"
            raise UnsupportedError(words, hint="leave the objective out")
        if network.reads_atoms:
            words = "mean-teacher adds noise to the states of graphs, and the head reads those of atoms"
            raise UnsupportedError(words, hint="leave the objective out, or choose another head")
        self.supervised, self.student = Supervised(outputs, penalties=penalties), deepcopy(network)
        self.weight, self.decay, self.noise, self.ramp = weight, decay, noise, ramp
        self.valid_parts = self.supervised.valid_parts

    def turns(self, network: nn.Module) -> Sequence[Iterable[nn.Parameter]]:
        """The student's parameters alone."""
        return [[*self.student.parameters()]]

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the labels of a batch, to each of which the mean distance over its rows is added."""
        assert batch.y is not None and batch.weights is not None
        if not state.training:
            return self.supervised(network, batch, state)
        encoded = self.student.encode(batch)
        raw = self.student.answer(self._noisy(encoded), batch)
        with torch.no_grad():
            taught = network.answer(self._noisy(network.encode(batch)), batch)
        total = (self.student.head.losses(raw, batch.y) * batch.weights).sum()
        penalties = add_penalties(output.penalties for output in encoded)
        check_penalties(self.supervised.penalties, penalties)
        loss = Loss(total, int((batch.weights > 0).sum())).with_penalties(penalties, self.supervised.penalties)
        distance = (self._answers(network, raw) - self._answers(network, taught)).square().mean()
        rise = math.exp(-5 * max(1 - state.progress / self.ramp, 0.0) ** 2)
        return loss.with_penalties({"consistency": distance}, {"consistency": self.weight * rise})

    def after_step(self, network: Any, state: StepState) -> None:
        """Move the teacher towards the student."""
        alpha = min(self.decay, 1 - 1 / (state.step + 1))
        with torch.no_grad():
            for weight, theirs in zip(network.parameters(), self.student.parameters(), strict=True):
                weight.lerp_(theirs.to(weight.dtype), 1 - alpha)

    def _noisy(self, encoded: Sequence[Encoded]) -> list[Encoded]:
        """The states of graphs, each value times a number about 1."""
        factors = [1 + self.noise * torch.randn_like(output.graphs) for output in encoded]
        return [replace(output, graphs=output.graphs * f) for output, f in zip(encoded, factors, strict=True)]

    def _answers(self, network: Network, raw: Tensor) -> Tensor:
        """float [n, d_out]: scaled values, or probabilities."""
        parts, (raw, _) = [], network.head.values(raw)
        for kind, start, stop in self.supervised.kinds:
            part = raw[:, start:stop].float()
            parts.append(part if kind == "regression" else part.softmax(1) if kind == "multiclass" else part.sigmoid())
        return torch.cat(parts, dim=1)
