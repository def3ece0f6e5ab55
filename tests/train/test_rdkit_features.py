"""Descriptors of RDKit in the head: computed alike in training and prediction, kept with the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, UnsupportedError, UnusedSettingError
from molgraph.chem.descriptors import NAMES
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.train.outputs import DescriptorScale
from molgraph.train.rdkit_features import with_rdkit_features
from tests.tiny import series, small


def weights_table(n: int = 200) -> Table:
    """Molecules with their weight as the target, which descriptors tell and a narrow untrained network does not."""
    smiles = builtin.chembl2321810().smiles[:n].tolist()
    x = with_rdkit_features(make_table(smiles))
    y = x.features[:, x.feature_names.index("rdkit:MolWt")]
    return make_table(smiles, targets=(Target("weight"),), y=y)


@pytest.mark.slow
def test_the_head_reads_them_in_training_and_in_prediction(tmp_path: Path) -> None:
    table = weights_table()
    errors = {}
    for descriptors in ("none", "rdkit"):
        method = small(descriptors=descriptors, epochs=20, head_width=32).fit(table.take(np.arange(150)))
        assert len(method.ready().descriptors.names) == len(NAMES) * (descriptors == "rdkit")
        found = method.predict(replace(table.take(np.arange(150, 200)), y=None, targets=()))
        errors[descriptors] = np.abs(found.value[:, 0] - table.y[150:, 0]).mean()
    assert errors["rdkit"] < 0.5 * errors["none"], errors


def test_a_saved_model_computes_them_itself(tmp_path: Path) -> None:
    options = {"epochs": 1, "baseline": False, "params": {"d_hidden": 8, "descriptors": "rdkit"}}
    model = molgraph.train(series(60), model="gin", **options).model
    asked = ["CCO", "c1ccccc1O", "C(C", "[Na+].[Cl-]"]
    before = model.predict(asked)
    again = molgraph.load(model.save(tmp_path / "m.mgm")).predict(asked)
    np.testing.assert_array_equal(before.value, again.value)
    assert np.isfinite(again.value[:2]).all() and again.status[2:].tolist() == ["unreadable", "not a molecule"]


def test_columns_of_the_table_stand_beside_them() -> None:
    table = weights_table(40)
    table = replace(table, features=np.arange(40.0)[:, None], feature_names=("pH",))
    method = small(descriptors="rdkit").fit(table)
    assert method.ready().descriptors.names[:2] == ("pH", f"rdkit:{NAMES[0]}")
    assert np.isfinite(method.predict(table).value).all()


def test_gaps_in_training_are_left_out_of_the_scale() -> None:
    x = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    scale = DescriptorScale.fit(x, ("a", "b"), np.array([1.0, 3.0, 5.0]))
    assert scale.mean.tolist() == [2.5, 0.0] and np.isfinite(scale.apply(x, ("a", "b"))).all()
    plain = np.random.default_rng(0).normal(size=(9, 2))
    known = DescriptorScale.fit(plain, ("a", "b"), np.arange(1.0, 10))
    np.testing.assert_allclose(known.mean, np.average(plain, axis=0, weights=np.arange(1.0, 10)))


def test_what_has_no_molecules_or_no_head_is_refused() -> None:
    table = weights_table(20)
    with pytest.raises(UnusedSettingError, match="infograph"):
        small(descriptors="rdkit", objective="infograph").fit(table)
    with pytest.raises(BadValueError, match="descriptors"):
        small(descriptors="morgan").fit(table)
    with pytest.raises(UnsupportedError, match="has 0"):
        with_rdkit_features(replace(table, entities=()))
