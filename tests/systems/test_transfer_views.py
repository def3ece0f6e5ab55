"""Means over views: the loss of several views of a row, the variance of the mean, and models of graphs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from molgraph.base.seeds import generator
from molgraph.data.sources import builtin
from molgraph.train.method import GraphMethod
from molgraph.train.objective import views_for
from molgraph.train.preparation import prepare
from molgraph.train.view_mean import view_graphs
from tests.systems.effect import Effect
from tests.tiny import same_bits, series, weights_of


def tokens(views: str | None, encoder: str = "tokens", **how: object) -> GraphMethod:
    settings: dict = {"epochs": 2, "batch_size": 16, "head_width": 8, "threads": 1, "seed": 0, **how}
    return GraphMethod(encoder, {"d_hidden": 8}, views=views, **settings).fit(series(120))


@pytest.mark.system("drq", rung="exact")
def test_a_batch_has_each_row_as_often_as_there_are_views_and_one_is_plain_augmentation(off: str) -> None:
    assert same_bits(weights_of(tokens("random_smiles(1)")), weights_of(tokens("random_smiles")))
    table, recipe = series(24), {"objective": "supervised"}
    views = views_for("random_smiles" if off else "random_smiles(n=3)", "supervised")
    train = prepare(table, None, "tokens", None, None, recipe, views=views).train
    rows = np.array([4, 2, 9])
    batch = train.sample(rows, np.random.default_rng(0))
    plain = train.sample(rows)
    assert batch.y is not None and plain.y is not None
    assert batch.y[:, 0].tolist() == plain.y[:, 0].repeat_interleave(3).tolist()
    graphs = batch.parts[0].batch
    lengths = graphs["token"].offsets.diff().reshape(3, 3)
    codes = [graphs["token"].code[a:b].tolist() for a, b in zip(*_ends(graphs), strict=True)]
    assert graphs.n_graphs == 9 and len({tuple(each) for each in codes[:3]}) > 1 and lengths.shape == (3, 3)


def _ends(graphs) -> tuple[list[int], list[int]]:  # type: ignore[no-untyped-def]
    offsets = graphs["token"].offsets.tolist()
    return offsets[:-1], offsets[1:]


@pytest.fixture(scope="module")
def trained() -> GraphMethod:
    """A model of tokens that saw two random SMILES of each row in a step."""
    return tokens("random_smiles(n=2)", epochs=6)


@pytest.mark.system("drq", rung="works")
def test_the_variance_of_the_mean_is_that_of_a_view_over_their_number(
    trained: GraphMethod, off: str, effect: Effect
) -> None:
    test, singles, means = series(60, 200), [], []
    for seed in range(12):
        trained.set_params(seed=seed, predict_views=4)
        singles.append(trained.predict(test).extra["view_std"])
        trained.set_params(seed=100 + seed, predict_views=1 if off else 4)
        means.append(trained.predict(test).value[:, 0])
    ratio = float(np.var(means, axis=0, ddof=1).mean() * 4 / np.square(singles).mean())
    effect("distance of the ratio of variances from 1", [abs(ratio - 1)], at_most=0.2, beside={"ratio": [ratio]})
    assert np.mean(singles) > 1e-3
    graph = tokens(None, "gin", predict_views=3).predict(test)
    assert graph.extra["view_std"].max() < 1e-5, "a model of graphs sees no difference"


@cache
def errors_of_views(seed: int) -> tuple[float, float, float]:
    """RMSE of 200 held-out inhibitors: the mean of one view's, that of the mean of eight, and of the text as it stands.

    The model of tokens learned 500 others by random SMILES.
    """
    table = builtin.chembl2321810()
    rows = np.random.default_rng(seed).permutation(len(table))
    train, test = table.take(rows[:500]), table.take(rows[500:700])
    assert test.y is not None
    how: dict = {"epochs": 20, "batch_size": 32, "head_width": 32, "learning_rate": 3e-3, "threads": 1, "seed": seed}
    model = GraphMethod("tokens", {"d_hidden": 64}, views="random_smiles", **how).fit(train)
    model.set_params(predict_views=1)
    graphs = [view_graphs(test, model.graph_inputs(), generator(seed, "views", k)) for k in range(8)]
    single = np.mean([rmse(model.predict_graphs(test, each).value, test.y) for each in graphs])
    plain = rmse(model.predict(test).value, test.y)
    model.set_params(predict_views=8)
    return float(single), rmse(model.predict(test).value, test.y), plain


def rmse(value: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.square(value - y).mean()))


@pytest.mark.system("drq", rung="works")
def test_the_mean_of_8_views_errs_less_than_a_view_does(off: str, effect: Effect) -> None:
    """By the triangle inequality never more than the mean error of the same views; here by how much."""
    single, mean, plain = zip(*(errors_of_views(seed) for seed in (10, 11)), strict=True)
    ratios = [a / b for a, b in zip(single if off else mean, single, strict=True)]
    beside = {"8 views": mean, "one": single, "as it stands": plain}
    effect("RMSE of 8 views / mean RMSE of one", ratios, at_most=0.995, beside=beside)
