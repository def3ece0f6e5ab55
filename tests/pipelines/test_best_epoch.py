"""The optimistic protocol of StructPool: its accuracies are those of predictions, and its page calls them so."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.data.table import Table, make_table
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.train.method import GraphMethod
from pipelines.tu.best_epoch import METHODS, RECIPE, one_fold, page

PARAMS = {"params": {"d_hidden": 8}, "head_width": 8, "batch_size": 8, "seed": 0}


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_an_epochs_accuracy_is_that_of_its_predictions(kind: str) -> None:
    smiles = [f"{'CN'[i % 2]}{'C' * (i // 2)}O" for i in range(30)]
    target = Target("y", "binary") if kind == "binary" else Target("y", "multiclass", classes=("a", "b", "c"))
    table = make_table(smiles, targets=(target,), y=np.arange(30) % (2 if kind == "binary" else 3))
    learned, tested = table.take(np.arange(20)), table.take(np.arange(20, 30))
    found = one_fold("graph", {"encoder": "gin", **PARAMS}, learned, tested, 1)
    value = GraphMethod("gin", epochs=1, store=None, threads=1, **PARAMS).fit(learned, tested).predict(tested).value
    guess = value[:, 0] > 0.5 if kind == "binary" else value.argmax(axis=1)
    assert found["best"] == found["last"] == pytest.approx(accuracy(guess, tested))
    text = "\n".join(page([{"data": "a", "method": "b", "fold": 0, "epochs": 1} | found | {"best": 0.25}]))
    assert "optimistic" in text and "0.250 (0.000)" in text


def accuracy(guess: np.ndarray, table: Table) -> float:
    assert table.y is not None
    return float((guess == table.y[:, 0]).mean())


def test_its_methods_are_the_boards() -> None:
    recipe = BenchRecipe.from_toml(RECIPE)
    assert {*METHODS} <= {method.row for method in recipe.method}
    assert len(recipe.split) == 1 and recipe.split[0].folds == 10
