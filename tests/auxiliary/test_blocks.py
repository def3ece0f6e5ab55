"""Rows are predicted in blocks by what they take, so that a wide model does not eat memory."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.auxiliary.tabular import FittedTargets
from molgraph.auxiliary.tabular import method as tabular
from molgraph.auxiliary.tabular.tanimoto_index import TanimotoIndex
from molgraph.data.table import make_table
from molgraph.train.make_method import make_method
from tests.tiny import series


@pytest.mark.parametrize("name", ["knn", "gp", "svm", "random_forest", "linear"])
def test_blocks_are_as_large_as_their_rows_allow(name, monkeypatch):
    features = {"n_bits": 256} | ({"features": "morgan"} if name in ("random_forest", "linear") else {})
    method = make_method(name, **features).fit(series(64))
    table = series(200)
    whole = method.predict(table)
    fitted, asked = method.fitted, []
    n = 0 if fitted.index is None else len(fitted.index)
    room = tabular.row_bytes(256, n, 1)
    monkeypatch.setattr(tabular, "BUDGET", 30 * room)
    predict = FittedTargets.predict
    monkeypatch.setattr(FittedTargets, "predict", lambda self, x: asked.append(len(x)) or predict(self, x))
    np.testing.assert_allclose(method.predict(table).value, whole.value, rtol=1e-9)
    assert max(asked) <= 30 and sum(asked) == int(whole.ok.sum())


def test_many_references_take_bounded_memory(monkeypatch):
    """10,000 rows beside 40,000 references: 400 million likenesses, of which a block holds few."""
    seen = []
    monkeypatch.setattr(TanimotoIndex, "__len__", lambda self: 40_000)
    monkeypatch.setattr(FittedTargets, "predict", lambda self, x: seen.append(len(x)) or (np.zeros((len(x), 1)),) * 2)
    method = make_method("knn", n_bits=64).fit(series(16))
    method.predict(make_table(["CCO", "CCN"] * 5_000))
    assert max(seen) * tabular.row_bytes(64, 40_000, 1) <= tabular.BUDGET and sum(seen) == 10_000
