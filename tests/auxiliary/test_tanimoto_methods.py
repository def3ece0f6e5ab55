"""Neighbours, support vectors, Gaussian processes and straight lines against brute force and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR

from molgraph.auxiliary.gp import GaussianProcess
from molgraph.auxiliary.kernel_machine import platt
from molgraph.auxiliary.knn import NearestNeighbours
from molgraph.auxiliary.linear import Linear
from molgraph.auxiliary.svm import SupportVectors
from molgraph.auxiliary.tabular.tanimoto_index import TanimotoIndex
from molgraph.base import registry
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError
from molgraph.base.registry import names
from molgraph.base.search_space import Categorical
from molgraph.chem.tanimoto import tanimoto
from molgraph.data.table import Table, make_table
from molgraph.train.make_method import make_method
from tests.contract.test_methods import labelled
from tests.tiny import series

TRAIN, TEST = series(80), series(20, 300)


def similarity(a: Table, b: Table) -> np.ndarray:
    """RDKit's own Tanimoto similarities."""
    made = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    prints = [[made.GetFingerprint(Chem.MolFromSmiles(s)) for s in table.smiles] for table in (a, b)]
    return np.array([DataStructs.BulkTanimotoSimilarity(p, prints[1]) for p in prints[0]])


def test_likeness_is_rdkits() -> None:
    method = NearestNeighbours().fit(TRAIN)
    fitted = method.fitted
    found = fitted.index.similarity(fitted.features.of(TEST, 1).x)
    np.testing.assert_allclose(found, similarity(TEST, TRAIN), atol=1e-7)
    assert tanimoto(np.zeros((1, 8), np.float32), np.zeros((2, 8), np.float32)).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("k", [1, 4, 500])
def test_neighbours_by_brute_force(k: int) -> None:
    like, y = similarity(TEST, TRAIN).astype(np.float32), TRAIN.y[:, 0]
    expected = []
    for row in like:
        near = row >= np.sort(row)[::-1][min(k, len(row)) - 1]
        expected.append(np.average(y[near], weights=row[near].astype(float) ** 3))
    found = NearestNeighbours(k=k).fit(TRAIN).predict(TEST).value[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_neighbours_that_share_nothing_still_vote() -> None:
    table = make_table(["CC", "CCC"], targets=(Target("y"),), y=[1, 3])
    assert NearestNeighbours().fit(table).predict(make_table(["[Na+].[Cl-]"])).value[0, 0] == 2


def test_support_vectors_are_scikit_learns() -> None:
    inside, across = similarity(TRAIN, TRAIN), similarity(TEST, TRAIN)
    y = TRAIN.y[:, 0]
    peer = SVR(kernel="precomputed", C=3.0, epsilon=0.1).fit(inside, (y - y.mean()) / y.std())
    found = SupportVectors().fit(TRAIN).predict(TEST).value[:, 0]
    np.testing.assert_allclose(found, peer.predict(across) * y.std() + y.mean(), atol=2e-3)
    classes = labelled("binary", 80)
    other = SVC(kernel="precomputed", C=3.0).fit(inside, classes.y[:, 0]).decision_function(across)
    share = SupportVectors().fit(classes).predict(TEST).value[:, 0]
    assert (np.diff(share[np.argsort(other)]) >= -1e-6).all(), "a higher decision never means a lower probability"


def test_a_sigmoid_is_calibrated() -> None:
    rng = np.random.default_rng(0)
    decision = rng.normal(0, 2, 4000)
    is_one = rng.random(4000) < 1 / (1 + np.exp(-(1.5 * decision - 0.7)))
    a, b = platt(decision, is_one)
    assert a == pytest.approx(-1.5, abs=0.15) and b == pytest.approx(0.7, abs=0.15)
    assert platt(-decision, is_one)[0] == 0, "a decision that misleads is not turned round"


class Precomputed(Kernel):
    """RDKit's similarities of rows by number, as scikit-learn has kernels."""

    def __init__(self, like: np.ndarray) -> None:
        self.like = like

    def __call__(self, x, y=None, eval_gradient=False):
        i = x[:, 0].astype(int)
        return self.like[np.ix_(i, i if y is None else y[:, 0].astype(int))]

    def diag(self, x):
        return np.diag(self.like)[x[:, 0].astype(int)]

    def is_stationary(self) -> bool:
        return False


def test_the_process_is_scikit_learns_at_the_same_settings() -> None:
    method = GaussianProcess().fit(TRAIN)
    (model,) = method.fitted.models
    y = (TRAIN.y[:, 0] - model.unit[0]) / model.unit[1]
    noise = model.noise[:, 0]
    both = make_table([*TRAIN.smiles, *TEST.smiles])
    kernel = Precomputed(model.signal[0] * similarity(both, both))
    peer = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)
    peer.fit(np.arange(80)[:, None], y - model.mean[0])
    value, spread = peer.predict(np.arange(80, 100)[:, None], return_std=True)
    found = method.predict(TEST)
    np.testing.assert_allclose(found.value[:, 0], (value + model.mean[0]) * model.unit[1] + model.unit[0], rtol=1e-3)
    np.testing.assert_allclose(found.spread[:, 0], np.sqrt(spread**2 + noise[0]) * model.unit[1], rtol=1e-3)
    near = method.predict(TRAIN).spread.mean()
    assert near < found.spread.mean(), "surer of what it has seen"


def test_the_noise_is_found() -> None:
    rng = np.random.default_rng(0)
    base = series(300)
    like = similarity(base, base)
    f = np.linalg.cholesky(like + 1e-6 * np.eye(300)) @ rng.normal(size=300)
    noisy = make_table(list(base.smiles), targets=(Target("y"),), y=f + 0.5 * rng.normal(size=300))
    (model,) = GaussianProcess().fit(noisy).fitted.models
    assert np.sqrt(model.noise[0, 0]) * model.unit[1] == pytest.approx(0.5, rel=0.3)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_classes_of_the_process_follow_the_labels(kind: str) -> None:
    smiles = [f"{'C' * (i // 2 + 1)}{'ON'[i % 2]}" for i in range(30)]
    target = Target("y", kind, classes=("o", "n", "none") if kind == "multiclass" else ())
    method = GaussianProcess().fit(make_table(smiles, targets=(target,), y=np.arange(30) % 2))
    found = method.predict(make_table(["CCCCCCCCO", "CCCCCCCCN", "[Na+].[Cl-]"]))
    one = found.value[:, -1] if kind == "binary" else found.value[:, 1]
    assert one[0] < 0.3 < 0.7 < one[1] and one[0] < one[2] < one[1], "less sure of what is like neither"
    assert found.spread is None


def test_lines_are_scikit_learns_on_the_same_columns() -> None:
    for kind, peer in [("regression", Ridge(alpha=10.0)), ("binary", LogisticRegression(C=0.1, max_iter=500))]:
        table = labelled(kind, 80)
        method = Linear(alpha=10.0, n_bits=128).fit(table)
        fitted = method.fitted
        train, test = (fitted.features.of(t, 1).x for t in (table, TEST))
        (model,) = fitted.models
        scale = np.where(model.scale > 0, model.scale, np.inf)
        a, b = (np.clip((x - model.mean) / scale, -5, 5) for x in (train, test))
        peer.fit(a, table.y[:, 0])
        expected = peer.predict(b) if kind == "regression" else peer.predict_proba(b)[:, 1]
        np.testing.assert_allclose(method.predict(TEST).value[:, 0], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", [SupportVectors, GaussianProcess])
def test_more_rows_than_the_limit_are_drawn_by_the_seed_and_said(kind: type) -> None:
    rare = make_table(list(series(200).smiles), targets=(Target("y", "binary"),), y=np.arange(200) < 4)
    method = kind(max_rows=50).fit(rare)
    assert len(method.fitted.index) == 50 and "50 of the 200 rows" in method.notes[0]
    same, other = (
        kind(max_rows=50).fit(rare).predict(TEST).value,
        kind(max_rows=50, seed=1).fit(rare).predict(TEST).value,
    )
    np.testing.assert_array_equal(method.predict(TEST).value, same)
    assert (same != other).any()
    kept = TanimotoIndex.of(np.eye(200, 64, dtype=np.float32), rare.y, 50, 0)
    assert (kept.place[:4] >= 0).all(), "the rare class stays"


def test_a_column_that_is_not_used_is_said() -> None:
    table = make_table(
        ["CO", "CN", "CC"], targets=(Target("y"),), y=[1, 2, 3], features=np.ones((3, 1)), feature_names=("f",)
    )
    assert "not used" in NearestNeighbours().fit(table).notes[0]


@pytest.mark.parametrize(
    "method", [NearestNeighbours(k=0), SupportVectors(cost=0), Linear(alpha=0), GaussianProcess(pseudo_count=1)]
)
def test_settings_that_cannot_be_are_refused(method) -> None:
    with pytest.raises(BadValueError):
        method.fit(TRAIN)


@pytest.mark.parametrize("name", sorted({*registry.names("method"), "dmpnn"} - {"graph"}))
def test_search_spaces_are_of_the_methods_own_parameters_and_hold_their_ends(name: str) -> None:
    method = make_method(name)
    space = method.space()
    assert set(space) <= set(method.param_names())
    assert space or name in ("mean", "conformers", "auto", *names("wrapper")), "what can be tuned has a small space"
    for end in (0, -1):
        ends = {
            k: each.choices if isinstance(each, Categorical) else (each.low, each.high) for k, each in space.items()
        }
        make_method(name, **{key: values[end] for key, values in ends.items()})
