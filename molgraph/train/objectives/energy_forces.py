"""Learn energies with forces: the forces are the exact gradient of the energy that the network predicts."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from molgraph.base.errors import LabelError, UnsupportedError
from molgraph.base.ranges import NotNegative
from molgraph.base.registry import register
from molgraph.train.forces import check_geometry, forces_of, with_gradient
from molgraph.train.inputs import Input
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample


@register(
    "objective",
    "energy-forces",
    summary="an energy and the forces on atoms, which are its gradient",
    paper="Schuett et al. 2017, NeurIPS 30:991",
    command="molgraph data trajectory CCO -o md.npz && molgraph train md.npz -t E -m schnet "
    "--objective energy-forces --split random/frames",
)
class EnergyForces(Objective):
    """``energy (E - E')^2 / s^2 + force / n sum_i |F_i + dE'/dr_i|^2 / s^2`` of a geometry of n atoms.

    Schuett et al. 2017, "SchNet: a continuous-filter convolutional neural network for modeling quantum interactions",
    the loss of energies and forces. ``E'`` is the predicted energy and ``s`` the standard deviation of the training
    energies, so that the first term is the loss of ``supervised``. The forces are the exact gradient of a scalar, so
    that they conserve energy. A geometry without forces, or an atom whose force is NaN, counts with its energy alone.

    Use it where a calculation gives forces beside energies: a molecule of n atoms then has 3 n + 1 labels. Known
    limits: a step takes about three times as long; the network must be smooth, so the head's hidden layers have silu
    where no activation is named, and the encoder should have no ReLU.

    Args:
        outputs: the energy, the one target.
        energy: weight of the energy's error.
        force: weight of the forces' error (angstrom squared).

    Raises:
        UnsupportedError: several targets, one that is no number of a row, or a model that reads no atoms in space.
        LabelError: geometries of the training part have no forces.
    """

    needs = ("atom.position",)
    grad_in_validation = True
    head_settings = MappingProxyType({"activation": "silu"})

    def __init__(self, outputs: Outputs, *, energy: NotNegative = 1.0, force: NotNegative = 1.0) -> None:
        super().__init__()
        if [(t.kind, t.level) for t in outputs.targets] != [("regression", "row")]:
            names = ", ".join(f"{t.name} ({t.kind})" for t in outputs.targets)
            words = f"energy-forces learns one target, the energy of a row, and these are asked for: {names}"
            raise UnsupportedError(words, hint="name the energy alone: -t energy")
        self.energy, self.force, self.scale = energy, force, float(outputs.scale[0])
        self.unused_parameters = energy == 0 or outputs.references is not None  # the last bias; those of a readout

    @classmethod
    def check_inputs(cls, inputs: Sequence[Input]) -> None:
        """Refuse a model that does not read one column of atoms in space."""
        check_geometry(inputs, "energy-forces learns")

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the labels of a batch; the forces' share is ``force`` among the parts."""
        assert batch.y is not None and batch.weights is not None
        moving, at = with_gradient(batch)
        raw, penalties = network(moving)
        labels = (network.head.losses(raw, batch.y) * batch.weights).sum()
        parts = {"energy": self.energy * labels}
        reference = batch.parts[0].batch["atom"].arrays.get("force")
        if reference is not None:
            forces = forces_of(network.head.values(raw)[0][:, 0], at, training=state.training)
            errors = self._force_errors(forces, reference / self.scale, batch)
            parts["force"] = self.force * (errors * batch.weights[:, 0]).sum()
        elif state.training:
            words = "energy-forces learns forces, and the geometries of the training part have none"
            raise LabelError(words, hint="give a file with forces (npz, extended XYZ), or leave the objective out")
        loss = Loss(sum(parts.values(), torch.zeros_like(labels)), int((batch.weights > 0).sum()), parts)
        return loss.with_penalties(penalties)

    @staticmethod
    def _force_errors(forces: Tensor, reference: Tensor, batch: Sample) -> Tensor:
        """float [g]: the mean squared error of the vectors of each graph's atoms, without those of NaN."""
        graphs, valid = batch.parts[0].batch, reference.isfinite().all(dim=1)
        squares = torch.where(valid[:, None], forces - reference, 0.0).square().sum(dim=1)
        zeros, graph = squares.new_zeros(graphs.n_graphs), graphs.graph_of("atom")
        count = zeros.index_add(0, graph, valid.to(squares.dtype)).clamp(min=1)
        return zeros.index_add(0, graph, squares) / count
