"""Vectors of an encoder as features of tabular methods: the columns, the file that holds both, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import molgraph
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.data.table import make_table
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from tests.tiny import series

ROWS = ["CCO", "not a molecule", "c1ccccc1O"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = molgraph.pretrain(series(40), model="gin", params={"d_hidden": 8, "depth": 2}, epochs=1, threads=1)
    return model.save(tmp_path_factory.mktemp("encoder") / "enc.mgm")


@pytest.mark.parametrize(
    "name", ["linear(features=vectors)", "linear(n_bits=64)", "random_forest(n_estimators=3, n_bits=64)"]
)
def test_the_vectors_stand_behind_the_features_and_the_file_holds_the_encoder(
    name: str, encoder: Path, tmp_path: Path
) -> None:
    method = make_method(name, descriptors=str(encoder), threads=1).fit(series(40))
    vectors = molgraph.embed(encoder, series(40)).value
    features, matrix = method.feature_choice().fit(series(40), 1)
    np.testing.assert_allclose(matrix.x[:, -vectors.shape[1] :], vectors, rtol=1e-6)
    assert (features.width == vectors.shape[1]) == ("vectors" in name)
    path = Model(method, targets=series(40).targets).save(tmp_path / "model.mgm")
    moved = encoder.rename(tmp_path / "elsewhere.mgm")
    try:
        loaded = molgraph.load(path)
        np.testing.assert_allclose(loaded.predict(ROWS).value, method.predict(make_table(ROWS)).value, rtol=1e-6)
        assert loaded.method.get_params()["descriptors"] == "enc.mgm", "no folder of this machine is in the file"
        assert loaded.predict(ROWS).status.tolist() == ["ok", "unreadable", "ok"]
    finally:
        moved.rename(encoder)


def test_vectors_are_kept_for_other_methods_and_told_from_those_of_another_encoder(
    encoder: Path, tmp_path: Path
) -> None:
    store, table = tmp_path / "store", series(40)
    features = make_method("linear", features="vectors", descriptors=str(encoder)).feature_choice()
    found = [features.fit(table, 1, where) for where in (None, str(store), str(store))]
    for _, matrix in found[1:]:
        np.testing.assert_allclose(matrix.x, found[0][1].x, rtol=1e-6)
    other = molgraph.pretrain(table, model="gin", params={"d_hidden": 8, "depth": 2}, epochs=1, threads=1, seed=1)
    assert MoleculeEncoder(other).name != MoleculeEncoder.load(encoder).name


def test_what_has_no_vectors_or_reads_none_is_refused(encoder: Path) -> None:
    options = {"split": "random", "baseline": False}
    with pytest.raises(UnsupportedError, match="reads no vectors"):
        molgraph.train(series(40), model="knn", descriptors=str(encoder), **options)
    with pytest.raises(UnsupportedError, match="no encoder"):
        MoleculeEncoder.load("jtvae-zinc")
    with pytest.raises(BadValueError, match="no column to learn from"):
        make_method("linear", features="vectors").fit(series(40))
    with pytest.raises(BadValueError, match="rdkit"):
        make_method("linear", descriptors="rdkit").fit(series(40))
