"""Energies with forces: the loss is its formula, forces are given back, and a model without them is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import molgraph
from molgraph.base.errors import BadValueError, LabelError, UnsupportedError
from molgraph.chem.trajectory import simulate
from molgraph.data.batch import collate
from molgraph.data.graph_values import Geometry
from molgraph.data.sources.graph_files import plain_table
from molgraph.data.table import Table, Target, make_table
from molgraph.train.inputs import input_graphs
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.objective import StepState
from molgraph.train.objectives.energy_forces import EnergyForces
from molgraph.train.outputs import Outputs
from molgraph.train.references import counts_of
from molgraph.train.samples import InputBatch, Sample
from tests.tiny import series, small

TARGETS = (Target("energy"),)
WATER = simulate("O", steps=600, every=10, equilibrate=100)
SMALL: dict[str, Any] = {"params": {"d_hidden": 8, "n_basis": 8}, "head_width": 8, "epochs": 2, "batch_size": 16}


def frames(rows: slice = slice(None), *, forces: bool = True) -> Table:
    values = [
        Geometry(WATER.numbers, x.astype(np.float32), f.astype(np.float32) if forces else None)
        for x, f in zip(WATER.positions[rows], WATER.forces[rows], strict=True)
    ]
    return plain_table({"geometry": values}, TARGETS, WATER.energies[rows])


@pytest.fixture(scope="module", params=["perceptron", "atomwise"])
def fitted(request: pytest.FixtureRequest) -> GraphMethod:
    how = {**SMALL, "objective": "energy-forces", "threads": 1, "head": request.param}
    return GraphMethod("schnet", **how).fit(frames(slice(40)), frames(slice(40, 60)))


def sample_of(method: GraphMethod, table: Table) -> Sample:
    (graphs,) = input_graphs(table, method.ready().inputs)
    batch = collate(graphs.store, graphs.graph_of_row)
    outputs, counts = method.ready().outputs, counts_of(method.ready().inputs, [graphs])
    y = torch.from_numpy(outputs.labels(table.y, None if outputs.references is None else counts))
    return Sample((InputBatch(batch, None),), None, y, torch.rand(y.shape) + 0.5)


def test_the_loss_is_its_formula(fitted: GraphMethod) -> None:
    table, network, scale = frames(slice(5)), fitted.ready().network, float(fitted.ready().outputs.scale[0])
    sample, weights = sample_of(fitted, table), {"energy": 0.3, "force": 2.0}
    objective = EnergyForces(fitted.ready().outputs, **weights)
    sample.parts[0].batch["atom"].arrays["force"][1, 2] = np.nan  # an oxygen and two hydrogens: one force of two
    loss = objective(network, sample, StepState(0, 1, 0))
    errors = (fitted.predict(table).value - table.y) / scale
    vectors = np.array(molgraph.forces(Model(fitted, targets=TARGETS), table)) - WATER.forces[:5]
    squares = (vectors**2).sum(2) / scale**2
    per_row = [squares[0, [0, 2]].mean(), *squares[1:].mean(1)]
    w = sample.weights.numpy()[:, 0]
    assert loss.parts["energy"].item() == pytest.approx(0.3 * (w * errors[:, 0] ** 2).sum(), rel=1e-4)
    assert loss.parts["force"].item() == pytest.approx(2 * (w * per_row).sum(), rel=1e-4)
    assert loss.total.item() == pytest.approx(sum(part.item() for part in loss.parts.values())) and loss.count == 5
    loss.total.backward()
    assert all(p.grad is not None for p in network.parameters())
    network.zero_grad()


def test_a_model_gives_forces_after_saving_and_none_where_a_row_is_no_geometry(
    fitted: GraphMethod, tmp_path: Path
) -> None:
    path = Model(fitted, targets=TARGETS).save(tmp_path / "m.mgm")
    again = molgraph.load(path)
    assert [type(m).__name__ for m in again.method.ready().network.head.children()][1] == "SiLU"
    table = frames(slice(3), forces=False)
    table.entities[0].values[1] = None
    one, none, three = molgraph.forces(path, table)
    assert none is None and one.shape == (3, 3) and np.abs(one).max() > 0
    alone = molgraph.forces(again, frames(slice(2, 3)))[0]
    np.testing.assert_allclose(three, alone, rtol=0, atol=1e-4)
    np.testing.assert_allclose(one.sum(0), 0, atol=1e-3)  # no net force, as the energy is translation invariant


def test_the_curves_have_both_errors_and_a_validation_part_may_lack_forces(fitted: GraphMethod) -> None:
    assert {"train_energy", "train_force", "valid_energy", "valid_force"} <= {*fitted.curves}
    how = {**SMALL, "objective": "energy-forces(force=0.1)", "threads": 1}
    other = GraphMethod("schnet", **how).fit(frames(slice(40)), frames(slice(40, 60), forces=False))
    assert "valid_energy" in other.curves and "valid_force" not in other.curves


@pytest.mark.parametrize(
    ("encoder", "table", "kind", "word"),
    [
        ("schnet", lambda: frames(forces=False), LabelError, "forces"),
        ("dmpnn", lambda: make_table(["C", "CC"], targets=TARGETS, y=[1.0, 2.0]), UnsupportedError, "space"),
    ],
)
def test_what_has_no_forces_is_refused(encoder: str, table: Any, kind: type[Exception], word: str) -> None:
    with pytest.raises(kind, match=word):
        GraphMethod(encoder, **{**SMALL, "params": None, "objective": "energy-forces"}).fit(table())


def test_several_targets_are_refused_and_a_model_without_geometries_has_no_forces() -> None:
    outputs = Outputs((*TARGETS, Target("b")), np.zeros(2), np.ones(2))
    with pytest.raises(UnsupportedError, match="target"):
        EnergyForces(outputs)
    with pytest.raises(BadValueError, match="force"):
        GraphMethod("schnet", objective="energy-forces(force=-1)").check_network()
    plain = Model(small(epochs=1).fit(series(20)), targets=series(20).targets)
    with pytest.raises(UnsupportedError, match="space"):
        molgraph.forces(plain, ["CCO"])
