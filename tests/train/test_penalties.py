"""Penalties of encoders and readouts: their part in the loss, their weights by name, their columns in the curves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from molgraph.base import registry
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, DamagedModelError, UnknownNameError
from molgraph.base.registry import Entry
from molgraph.models.dmpnn import DMPNN
from molgraph.nn.readouts import Sum
from molgraph.train import archive
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.network import Network, build_network
from molgraph.train.objective import StepState
from molgraph.train.objectives.masked_atoms import MaskedAtoms
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.preparation import prepare
from molgraph.train.samples import Sample
from tests.tiny import same_bits, series, small, weights_of

STATE = StepState(0, 1, 0)


class Restrained(DMPNN):
    """A D-MPNN whose first weights are to be small."""

    def forward(self, batch: Any, *, rows: bool = False) -> Any:
        encoded = super().forward(batch, rows=rows)
        norm = self.w_i.weight.square().sum()
        return replace(encoded, penalties={**encoded.penalties, "norm": norm})


class Balanced(Sum):
    """A sum over rows that are to be near one another."""

    def read(self, h: Any, relation: Any) -> Any:
        return super().read(h, relation), {"spread": h.var(dim=0, correction=0).sum()}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both by name, for one test each."""
    for kind, name, value in [("encoder", "restrained", Restrained), ("readout", "balanced", Balanced)]:
        registry.load_kind(kind)
        monkeypatch.setitem(registry._entries[kind], name, Entry(kind, name, value))


def learner(weights: dict[str, float] | None = None, encoder: str = "restrained", **params: Any) -> GraphMethod:
    """The network with both penalties, or with those of other parameters."""
    own = {"d_hidden": 8, "readout": "balanced", **params}
    if weights is not None:
        own["objective.penalties"] = weights
    return small(encoder=encoder, params=own)


def one_batch(n: int = 12) -> tuple[Network, Outputs, Sample]:
    """A network with both penalties, and a batch for it, whose labels count 1 each."""
    made = prepare(series(n), None, "restrained", None, None, {})
    torch.manual_seed(0)
    network = build_network(
        made.inputs, {"d_hidden": 8, "readout": "balanced"}, joiner="concat", d_extra=0, targets=made.outputs.targets
    )
    return network, made.outputs, made.train.sample(np.arange(n))


def test_each_penalty_is_added_for_each_label_times_its_weight() -> None:
    network, outputs, batch = one_batch()
    raw, penalties = network(batch)
    plain = (network.head.losses(raw, batch.y) * batch.weights).sum()
    norm, spread = (float(penalties[name].detach()) for name in ("norm", "spread"))
    assert set(penalties) == {"norm", "spread"} and norm > 0 and spread > 0
    for weights, (a, b) in [(None, (1, 1)), ({"norm": 0.5}, (0.5, 1)), ({"norm": 0, "spread": 3}, (0, 3))]:
        for training in (True, False):
            found = Supervised(outputs, penalties=weights)(network, batch, STATE._replace(training=training))
            assert found.count == 12
            parts = {name: float(value.detach()) for name, value in found.parts.items()}
            assert parts == pytest.approx({"norm": 12 * a * norm, "spread": 12 * b * spread})
            assert float((found.total - plain).detach()) == pytest.approx(sum(parts.values()), rel=1e-5)


def test_penalties_have_gradients_and_those_of_weight_zero_none() -> None:
    table, valid = series(48), series(16, 60)
    none = learner({"norm": 0.0, "spread": 0.0}).fit(table, valid)
    without = learner(encoder="dmpnn", readout="sum").fit(table, valid)
    assert same_bits(weights_of(none), weights_of(without))
    norms = [
        float(np.square(weights_of(learner(weights).fit(table, valid))["encoder.w_i.weight"]).sum())
        for weights in ({"norm": 0.0, "spread": 0.0}, {"spread": 0.0}, {"norm": 30.0, "spread": 0.0})
    ]
    assert norms[0] > norms[1] > norms[2]


def test_penalties_are_columns_of_the_curves_and_stay_in_the_file(tmp_path: Path) -> None:
    table, valid = series(48), series(16, 60)
    fitted = learner().fit(table, valid)
    plain = learner({"norm": 0.0, "spread": 0.0}).fit(table, valid)
    assert fitted.curves is not None and plain.curves is not None
    names = [f"{part}_{name}" for part in ("train", "valid") for name in ("spread", "norm")]
    assert list(fitted.curves.columns[5:]) == names and (fitted.curves[names] > 0).all().all()
    assert (plain.curves[names] == 0).all().all()
    own = fitted.curves["valid_loss"] - fitted.curves["valid_norm"] - fitted.curves["valid_spread"]
    assert (own > 0).all() and (fitted.curves["valid_loss"] > plain.curves["valid_loss"]).all()
    model = Model(fitted, targets=table.row_targets)
    again = load_model(model.save(tmp_path / "a.mgm"))
    assert again.method.curves is not None and again.method.curves.equals(fitted.curves)
    assert again.predict(["CCO"]).value.tobytes() == model.predict(["CCO"]).value.tobytes()
    parts, arrays = archive.read_archive(tmp_path / "a.mgm")
    parts["method.json"]["meta"]["curve_parts"].pop()
    archive.write_archive(tmp_path / "torn.mgm", parts, arrays)
    with pytest.raises(DamagedModelError, match=r"torn\.mgm"):
        load_model(tmp_path / "torn.mgm")


def test_a_weight_of_no_penalty_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="norm, spread"):
        learner({"kl": 0.1}).fit(series(16))
    with pytest.raises(BadValueError, match="'norm': -1"):
        learner({"norm": -1.0}).fit(series(16))


def test_masked_atoms_add_the_encoders_penalties() -> None:
    network, _, batch = one_batch()
    objective = MaskedAtoms(network, prepare(series(12), None, "restrained", None, None, {}).inputs)
    found = objective(network, objective.corrupt(batch, np.random.default_rng(0)), STATE)
    assert set(found.parts) == {"norm", "spread"}
    own = found.total - sum(found.parts.values())
    found.total.backward()
    weight = network.encoder.w_i.weight
    assert float(own.detach()) > 0 and weight.grad is not None
    assert float(found.parts["norm"].detach()) == pytest.approx(found.count * float(weight.detach().square().sum()))


def test_atoms_values_may_leave_a_readout_unused() -> None:
    """Two processes of DDP then look for its parameters."""
    targets = tuple(Target("q", level=level) for level in ("row", "atom", "bond"))
    unused = [Supervised(Outputs((each,), np.zeros(1), np.ones(1))).unused_parameters for each in targets]
    assert unused == [False, True, True]
