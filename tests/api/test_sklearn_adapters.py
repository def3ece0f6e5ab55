"""The adapters stand in scikit-learn's own tools, with forests for speed and a network to see that it works too."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from molgraph import MoleculeClassifier, MoleculeRegressor
from molgraph.api.sklearn_adapters import InputError
from molgraph.base.errors import BadValueError, UnknownNameError, UnsupportedError

SMILES = [f"{'C' * n}{tail}" for n in range(1, 11) for tail in ("", "O", "N", "c1ccccc1")]
SIZE = np.array([float(len(s)) for s in SMILES])
KIND = np.array([{"O": "alcohol", "N": "amine"}.get(s[-1], "other") for s in SMILES])
FAST = {"n_estimators": 20, "threads": 1, "features": "morgan"}


@pytest.mark.parametrize("wrap", [list, np.array, pd.Series, lambda x: np.array(x, dtype=object)[:, None]])
def test_inputs_of_every_shape_give_the_same(wrap) -> None:
    model = MoleculeRegressor("random_forest", **FAST).fit(wrap(SMILES), SIZE)
    expected = MoleculeRegressor("random_forest", **FAST).fit(SMILES, SIZE).predict(SMILES)
    assert np.array_equal(model.predict(wrap(SMILES)), expected)
    assert expected.shape == (40,) and expected.dtype == np.float64
    assert model.score(SMILES, SIZE) > 0.5


def test_cross_validation_and_grid_search() -> None:
    model = MoleculeRegressor("random_forest", **FAST)
    scores = cross_validate(model, SMILES, SIZE, cv=3, error_score="raise")["test_score"]
    assert scores.shape == (3,) and np.isfinite(scores).all()
    grid = {"n_estimators": [5, 10], "min_samples_leaf": [1, 4]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(SMILES, SIZE)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.method_.n_estimators == search.best_params_["n_estimators"]
    pipeline = Pipeline([("clean", FunctionTransformer(lambda x: [s.strip() for s in x])), ("model", model)])
    search = GridSearchCV(pipeline, {"model__radius": [1, 2]}, cv=2, error_score="raise").fit(SMILES, SIZE)
    assert search.predict(SMILES).shape == (40,)
    assert make_pipeline(clone(model)).fit(SMILES, SIZE).predict(SMILES).shape == (40,)


def test_graph_model_with_encoder_and_training_parameters() -> None:
    model = MoleculeRegressor("dmpnn", epochs=2, depth=2, d_hidden=16, seed=3, threads=1)
    first = model.fit(SMILES, SIZE).predict(SMILES)
    assert np.array_equal(clone(model).fit(SMILES, SIZE).predict(SMILES), first)
    assert model.method_.params == {"depth": 2, "d_hidden": 16}
    changed = clone(model).set_params(depth=4)
    assert changed.get_params()["depth"] == 4 and model.get_params()["depth"] == 2


def test_classes_of_any_label() -> None:
    model = MoleculeClassifier("random_forest", **FAST).fit(SMILES, KIND)
    proba = model.predict_proba(SMILES)
    assert model.classes_.tolist() == ["alcohol", "amine", "other"] and proba.shape == (40, 3)
    assert np.allclose(proba.sum(axis=1), 1) and model.score(SMILES, KIND) > 0.8
    two = MoleculeClassifier("random_forest", **FAST).fit(SMILES, KIND == "amine")
    assert two.classes_.tolist() == [False, True] and two.predict_proba(SMILES).shape == (40, 2)
    assert two.predict(SMILES).dtype == bool
    found = cross_val_predict(two, SMILES, KIND == "amine", cv=3, method="predict_proba")
    assert found.shape == (40, 2)
    scores = cross_validate(two, SMILES, KIND == "amine", cv=3, scoring="roc_auc", error_score="raise")["test_score"]
    assert np.isfinite(scores).all()


def test_several_targets_and_missing_values() -> None:
    y = np.column_stack([SIZE, -SIZE])
    y[::5, 1] = np.nan
    predicted = MoleculeRegressor("random_forest", **FAST).fit(SMILES, y).predict(SMILES)
    assert predicted.shape == (40, 2) and np.corrcoef(predicted[:, 0], predicted[:, 1])[0, 1] < -0.9


@pytest.mark.parametrize("bad", ["C(C", "", "CN(C)(C)C"])
def test_invalid_molecules(bad: str) -> None:
    with pytest.raises(InputError, match="molecule 40"):
        MoleculeRegressor("random_forest", **FAST).fit([*SMILES, bad], [*SIZE, 1000.0])
    model = MoleculeRegressor("random_forest", invalid="impute", **FAST).fit([*SMILES, bad], [*SIZE, 1000.0])
    assert model.predict([bad, "CC"])[0] == pytest.approx(SIZE.mean())
    clean = MoleculeRegressor("random_forest", **FAST).fit(SMILES, SIZE)
    with pytest.raises(InputError, match="molecule 1"):
        clean.predict(["CC", bad])
    classes = MoleculeClassifier("random_forest", invalid="impute", **FAST).fit([*SMILES, bad], [*KIND, "other"])
    shares = [np.mean(c == KIND) for c in classes.classes_]
    assert np.allclose(classes.predict_proba([bad])[0], shares)


def test_refusals() -> None:
    with pytest.raises(UnknownNameError, match="dept"):
        MoleculeRegressor("dmpnn").set_params(dept=3)
    with pytest.raises(UnknownNameError, match="dmpn"):
        MoleculeRegressor("dmpn").fit(SMILES, SIZE)
    with pytest.raises(BadValueError, match="zero"):
        MoleculeRegressor("random_forest", invalid="zero").fit(SMILES, SIZE)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one class"):
        MoleculeClassifier("random_forest").fit(SMILES, np.ones(40))
    with pytest.raises(InputError, match="one text"):
        MoleculeRegressor("random_forest").fit("CCO", [1.0])
    with pytest.raises(InputError, match="not numbers"):
        MoleculeRegressor("random_forest").fit(SMILES, KIND)
    with pytest.raises(InputError, match="40 molecules"):
        MoleculeRegressor("random_forest").fit(SMILES, SIZE[:3])


def test_sample_weights_matter() -> None:
    y = np.array([0.0] * 20 + [1.0] * 20)
    smiles = ["CCO"] * 40
    weights = np.array([1.0] * 20 + [9.0] * 20)
    model = MoleculeRegressor("mean").fit(smiles, y, sample_weight=weights)
    assert model.predict(["CCO"])[0] == pytest.approx(0.9)


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, pd.NaT])
def test_a_missing_value_is_an_error_as_in_scikit_learn(missing) -> None:
    words = [missing if i == 3 else str(k) for i, k in enumerate(KIND)]
    sizes = [missing if i == 3 else v for i, v in enumerate(SIZE)]
    for adapter, y in ((MoleculeClassifier, words), (MoleculeRegressor, sizes)):
        for wrap in (list, pd.Series, lambda values: np.array(values, dtype=object)):
            with pytest.raises(InputError, match=r"NaN: 1 of 40 .* 3\n"):
                adapter("random_forest", **FAST).fit(SMILES, wrap(y))
    both = np.column_stack([SIZE, SIZE])
    both[3] = np.nan
    with pytest.raises(InputError, match="NaN"):
        MoleculeRegressor("random_forest", **FAST).fit(SMILES, both)


def test_standard_deviations_are_given_by_models_that_have_them() -> None:
    model = MoleculeRegressor("gp", invalid="impute").fit(SMILES, SIZE)
    mean, std = model.predict([*SMILES[:3], "C(C"], return_std=True)
    assert np.array_equal(mean, model.predict([*SMILES[:3], "C(C"])) and mean.shape == std.shape == (4,)
    assert (std > 0).all() and std[3] == pytest.approx(SIZE.std())
    with pytest.raises(UnsupportedError, match="random_forest"):
        MoleculeRegressor("random_forest", **FAST).fit(SMILES, SIZE).predict(SMILES, return_std=True)


@pytest.mark.parametrize("adapter", [MoleculeRegressor, MoleculeClassifier])
def test_what_scikit_learn_expects_of_refusals(adapter) -> None:
    from sklearn.utils.estimator_checks import check_estimators_unfitted  # imports scipy's and its own tests

    check_estimators_unfitted(adapter.__name__, adapter("random_forest"))
    with pytest.raises(InputError, match="empty") as refused:
        adapter("random_forest").fit([], [])
    assert isinstance(refused.value, ValueError)
    with pytest.raises(ValueError, match="molecule 40"):
        adapter("random_forest").fit([*SMILES, "C(C"], [*(np.arange(41) % 2)])


@pytest.mark.parametrize("model", ["random_forest", "mean", "dmpnn"])
@pytest.mark.parametrize(("weight", "words"), [(-1.0, "is -1"), (np.nan, "is nan"), ("heavy", "not numbers")])
def test_a_weight_that_is_none_is_refused(model: str, weight, words: str) -> None:
    weights = [1.0] * 39 + [weight]
    for adapter, y in ((MoleculeRegressor, SIZE), (MoleculeClassifier, KIND)):
        with pytest.raises(ValueError, match=words):
            adapter(model).fit(SMILES, y, sample_weight=weights)
        with pytest.raises(ValueError, match="sample_weight has shape"):
            adapter(model).fit(SMILES, y, sample_weight=weights[:3] if words != "not numbers" else [1.0])
    with pytest.raises(InputError, match="text and numbers"):
        MoleculeClassifier(model).fit(SMILES, [*KIND[1:], 3])


def test_molecules_of_rdkit() -> None:
    mols = [Chem.MolFromSmiles(text) for text in SMILES]
    expected = MoleculeRegressor("random_forest", **FAST).fit(SMILES, SIZE).predict(SMILES)
    model = MoleculeRegressor("random_forest", **FAST).fit(mols, SIZE)
    for X in (mols, pd.Series(mols), np.array(mols, dtype=object)[:, None], pd.DataFrame({"mol": mols})):
        assert np.array_equal(model.predict(X), expected)
    assert cross_val_predict(model, mols, SIZE, cv=2).shape == (40,)
    with pytest.raises(InputError, match=r"molecule 1 .*'5'"):
        model.predict(["C", 5])
    with pytest.raises(InputError, match="'5'"):
        model.fit([*SMILES, 5], [*SIZE, 1.0])


def test_tags_and_representation() -> None:
    assert is_regressor(MoleculeRegressor()) and is_classifier(MoleculeClassifier())
    tags = MoleculeRegressor().__sklearn_tags__()
    assert tags.input_tags.string and tags.target_tags.multi_output
    assert "depth=4" in repr(MoleculeRegressor("dmpnn", depth=4))
