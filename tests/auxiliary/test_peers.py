"""chemprop and DeepChem behind the contract: their own layers and numbers, every kind of target, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.auxiliary.peers.chemprop import Chemprop
from molgraph.auxiliary.peers.deepchem import DeepChem
from molgraph.auxiliary.peers.groups import groups_of
from molgraph.base.contracts import Method, State, Target
from molgraph.base.errors import BadValueError, DamagedModelError, MolgraphError
from molgraph.chem.smiles import parse_smiles
from molgraph.data.table import make_table
from tests.contract.test_methods import labelled
from tests.tiny import mixed, series


@pytest.fixture(scope="module", autouse=True)
def chemprop():
    """The library, imported when a test runs: it takes seconds, which collecting has not."""
    pytest.importorskip("deepchem")
    return pytest.importorskip("chemprop")


def small(**params) -> Chemprop:
    return Chemprop(**{"epochs": 2, "d_hidden": 8, "head_width": 8, "batch_size": 16, **params})


def dmpnn(**params) -> DeepChem:
    return DeepChem(**{"model": "dmpnn", "epochs": 2, "d_hidden": 8, "batch_size": 16, **params})


def test_targets_of_a_kind_share_a_network() -> None:
    classes = ("x", "y", "z")
    targets = tuple(Target(n, k) for n, k in [("a", "regression"), ("b", "binary"), ("c", "binary"), ("d", "bounded")])
    found = groups_of((*targets, Target("e", "multiclass", classes=classes)), {"c": "one class"}, 2)
    assert [(g.kind, g.columns, g.n_classes, g.d_extra) for g in found] == [
        ("regression", (0, 3), 0, 2),
        ("binary", (1,), 0, 2),
        ("multiclass", (4,), 3, 2),
    ]


def test_the_network_is_chemprops_and_its_numbers_too(chemprop) -> None:
    table = series(32)
    method = small().fit(table)
    (model,), outputs = method.fitted.models, method.fitted.outputs
    assert type(model).__module__.startswith("chemprop")
    points = [chemprop.data.MoleculeDatapoint.from_smi(text) for text in table.smiles]
    loader = chemprop.data.build_dataloader(chemprop.data.MoleculeDataset(points), shuffle=False)
    with torch.no_grad():
        raw = torch.cat([model(batch.bmg, batch.V_d, batch.X_d) for batch in loader]).double().numpy()
    expected = raw * outputs.scale + outputs.mean
    np.testing.assert_allclose(method.predict(table).value, expected, rtol=1e-5)


def test_validation_rows_pick_chemprops_epoch() -> None:
    table, valid = series(48), series(16, 200)
    picked = small(epochs=6, learning_rate=0.05, seed=1)
    assert picked.uses_valid and not dmpnn().uses_valid
    found = picked.fit(table, valid).predict(valid).value[:, 0]
    plain = small(epochs=6, learning_rate=0.05, seed=1).fit(table).predict(valid).value[:, 0]
    loss = [((p - valid.y[:, 0]) ** 2).mean() for p in (found, plain)]
    assert loss[0] <= loss[1] * (1 + 1e-6)


def test_chemprop_takes_the_steps_that_are_asked_for_and_stops_by_its_curve() -> None:
    """Three steps an epoch: two epochs become 20; a step size of nothing stops after the stretched patience."""
    table, valid, seen = series(48), series(16, 200), []
    for params in ({}, {"min_steps": 60}, {"min_steps": 60, "patience": 1, "learning_rate": 1e-12}):
        method = small(**params).fit(table, valid)
        seen.append(method.fitted.models[0].trainer.current_epoch)
    assert seen[:2] == [2, 20] and 10 <= seen[2] < 20


def test_chemprop_learns() -> None:
    table = series(32)
    quick = small(epochs=20, d_hidden=32, head_width=32, batch_size=8, learning_rate=0.003, aggregation="mean")
    found = quick.fit(table).predict(table).value[:, 0]
    assert np.corrcoef(found, table.y[:, 0])[0, 1] > 0.5


@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass"])
def test_deepchems_dmpnn_learns_every_kind_and_goes_through_a_state(kind: str) -> None:
    table = labelled(kind, 32)
    method = dmpnn().fit(table)
    found = method.predict(table)
    assert found.ok.all() and np.isfinite(found.value).all()
    again = DeepChem.from_state(method.state()).predict(table)
    np.testing.assert_array_equal(again.value, found.value)
    if kind == "multiclass":
        np.testing.assert_allclose(found.value.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(dmpnn().fit(table).predict(table).value, found.value)


def test_deepchems_dmpnn_takes_mixed_targets_features_and_bad_rows() -> None:
    found = dmpnn().fit(mixed()).predict(mixed())
    assert (found.status == "ok").tolist() == [i not in (3, 5, 7) for i in range(48)]
    assert np.isfinite(found.value[found.ok]).all()


def test_numpys_random_numbers_are_as_they_were() -> None:
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    DeepChem("multitask", epochs=1, d_hidden=8, n_bits=64).fit(series(16))
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002


@pytest.mark.parametrize("make", [small, lambda: DeepChem("multitask", epochs=1, d_hidden=8, n_bits=64)])
def test_a_strangers_state_is_refused(make) -> None:
    method: Method = make().fit(series(16))
    state = method.state()
    name = next(n for n in state.arrays if n.startswith("group_0.") and state.arrays[n].dtype.kind == "f")
    nothing = np.full_like(state.arrays[name], np.nan)
    for wrong, error in ((np.zeros((3, 3), np.float32), DamagedModelError), (nothing, MolgraphError)):
        with pytest.raises(error):
            type(method).from_state(State({**state.arrays, name: wrong}, state.meta))
    with pytest.raises(DamagedModelError):
        type(method).from_state(State({**state.arrays, "group_0.more": np.zeros(1)}, state.meta))
    meta = {**state.meta, "params": {**state.meta["params"], "d_hidden": 10**12}}
    with pytest.raises(DamagedModelError):
        type(method).from_state(State(state.arrays, meta))


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadValueError, match="'mean'"):
        small(aggregation="means").fit(series(8))
    with pytest.raises(BadValueError, match="'dmpnn'"):
        DeepChem("mpnn").fit(series(8))
    with pytest.raises(BadValueError, match="epochs is 0"):
        small(epochs=0).fit(series(8))


def test_a_bond_less_molecule_alone_has_a_value() -> None:
    for method in (small().fit(series(16)), dmpnn().fit(series(16))):
        assert np.isfinite(method.predict(make_table(["C"])).value).all()
    assert parse_smiles("C").mol.GetNumBonds() == 0
