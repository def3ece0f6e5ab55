"""InfoGraph*: semi-supervised training by a supervised student and an unsupervised teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.encoder import Encoded
from molgraph.nn.mutual_information import JensenShannon
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample


@register(
    "objective",
    "infograph-star",
    systems=(
        SystemCard(
            "infograph-infograph",
            off="-s params.objective.weight=0",
            beside=("labels alone",),
            command="molgraph train dataset:chembl2321810 -m gin --objective infograph-star --unlabelled dataset:nci "
            "-o model.mgm",
            modules=("molgraph.nn.mutual_information",),
        ),
    ),
    summary="labels of some rows; InfoGraph on all rows by a second encoder",
    paper="Sun et al. 2020, ICLR",
)
class InfoGraphStar(Objective):
    """InfoGraph* for few labels and many graphs; the network is the student, the teacher is the objective's own.

    Sun et al. 2020, "InfoGraph", equation 8: over labelled rows L and unlabelled rows U
    ``sum_L supervised(student) + sum_(L+U) infograph(teacher) - weight sum_(L+U) I(H_student^k; H_teacher^k)``, where I
    is the Jensen-Shannon bound with the other graphs of the batch as negatives. Unlike there the last two sums are
    means over a batch's graphs, which count once for each label. The teacher has the student's form and fresh weights;
    both learn from I. Validation judges the supervised loss alone.

    Use it where few rows have labels and many like them have none. Known limits: a second encoder doubles the time of a
    step and the memory; on QM9 (dipole moment) its gain was within the spread of seeds: an error of 0.856 beside 0.862
    with 200 labels, of 0.676 beside 0.694 with 5,000.

    Args:
        network: the student; its one encoder must give states of rows.
        inputs: the one column that it reads.
        outputs: the targets, those of whole rows, on the scale of the labelled rows.
        weight: weight of the transfer (the paper's lambda).
        layer: the layer k: ``last`` compares the graphs' vectors; ``random`` the sums over rows of the states of one
            layer, drawn in each step, of encoders that give all layers (``Encoder.d_layers``), as in the paper. It is
            not the default, since not all encoders do, and it was no better on QM9.
        d_score: width of the perceptrons of each score.
        penalties: the weights of the encoders' penalties by name; 1 if not given.

    Raises:
        UsageError: several columns, targets of atoms or bonds, or an encoder without the states that are compared.
    """

    semi_supervised = True
    unused_parameters = True  # the scores of the layers that are not drawn
    least_rows = 2

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        weight: NotNegative = 0.001,
        layer: Literal["last", "random"] = "last",
        d_score: Width = 128,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "infograph-star learns one encoder")
        if outputs.level != "row":
            words = (
                f"infograph-star learns targets of rows, and {outputs.targets[0].name} is one of each {outputs.level}"
            )
            raise UnsupportedError(words, hint="leave the objective out")
        student = network.encoder
        if layer == "random" and not student.d_layers:
            raise UnsupportedError(
                f"layer='random' compares the states of layers, which {inputs[0].encoder} does not give",
                hint="choose layer='last', or an encoder that does, such as gin or mpnn",
            )
        self.supervised, self.weight = Supervised(outputs, penalties=penalties), weight
        self.valid_parts = self.supervised.valid_parts
        self.widths = student.d_layers if layer == "random" else ()
        self.teacher = network.makers[0]()
        self.score = JensenShannon(student.d_rows, student.d_out, d_score)
        self.transfer = nn.ModuleList(JensenShannon(d, d, d_score) for d in self.widths or (student.d_out,))

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the labels of a batch, to each of which the two means over its graphs are added."""
        assert batch.y is not None and batch.weights is not None
        if not state.training:
            return self.supervised(network, batch, state)
        (student,) = encoded = network.encode(batch, rows=True)
        check_penalties(self.supervised.penalties, student.penalties)
        raw = network.answer(encoded, batch)
        total = (network.head.losses(raw, batch.y) * batch.weights).sum()
        loss = Loss(total, int((batch.weights > 0).sum()))
        teacher = self.teacher(batch.parts[0].batch, rows=True)
        rows = teacher.rows[0]
        parts = {"infograph": self.score(rows.h, teacher.graphs, rows.graph_of).mean()}
        parts["transfer"] = self._transfer(student, teacher).mean()
        for before, encoder in (("", student), ("teacher_", teacher)):
            terms = {before + name: value for name, value in encoder.penalties.items()}
            loss = loss.with_penalties(terms, {before + k: weight for k, weight in self.supervised.penalties.items()})
        return loss.with_penalties(parts, {"transfer": self.weight})

    def _transfer(self, student: Encoded, teacher: Encoded) -> Tensor:
        """float [g]: the loss of each graph's vector by the student, and by the teacher, at the layer of this step."""
        graphs = torch.arange(len(student.graphs), device=student.graphs.device)
        if not self.widths:
            return self.transfer[0](student.graphs, teacher.graphs, graphs)
        k = int(torch.randint(len(self.widths), ()))
        return self.transfer[k](student.layers[k], teacher.layers[k], graphs)
