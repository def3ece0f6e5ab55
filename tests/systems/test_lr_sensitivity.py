"""The study of learning rates: its errors are those of trainings by hand, its shares those that can be counted."""

from __future__ import annotations

import numpy as np
import pytest

import molgraph
from molgraph.auxiliary.study.lr_sensitivity import bowl, good_rates
from molgraph.base.errors import BadValueError, UnknownNameError, UnsupportedError
from molgraph.base.seeds import derive
from molgraph.data.splits import split_table
from molgraph.data.standardise import standardise
from molgraph.train.method import GraphMethod
from tests.tiny import series

MODEL = "gin(depth=2, d_hidden=8, batch_size=16, head_width=8, threads=1)"


@pytest.mark.system("radam", rung="exact", twins=("adam",))
def test_each_error_is_that_of_a_training_by_hand(off: str) -> None:
    """Off: adam in the place of radam."""
    table = series(80)
    words = "lr-sensitivity(optimizers=radam+sgd(momentum=0.5), n=3, epochs=2, repeats=2)"
    found = molgraph.study(words, table, model=MODEL, seed=3)
    assert found.sound, repr(found)
    table, rates = standardise(table, "standard"), np.geomspace(1e-4, 0.1, 3)
    errors = np.zeros((2, 2, 3))
    for repeat in range(2):
        split = split_table(table, "random", fractions=(0.7, 0.1, 0.2), seed=derive(3, "split", repeat), quiet=True)
        train, valid, test = (table.take(rows) for rows in (split.train, split.valid, split.test))
        for i, optimizer in enumerate((off or "radam", "sgd(momentum=0.5)")):
            for j, rate in enumerate(rates):
                how = {"optimizer": optimizer, "learning_rate": float(rate), "warmup_epochs": 0.0, "epochs": 2}
                how |= {"seed": derive(3, "fit", repeat) % 2**31, "patience": None, "batch_size": 16, "threads": 1}
                method = GraphMethod("gin", {"depth": 2, "d_hidden": 8}, head_width=8, **how).fit(train, valid)
                errors[repeat, i, j] = np.sqrt(np.mean((method.predict(test).value - test.y) ** 2))
    np.testing.assert_allclose(found.frame.iloc[:, -3:].to_numpy(), errors.mean(axis=0), rtol=1e-12)
    good = errors <= 1.1 * errors.min(axis=2, keepdims=True)
    np.testing.assert_allclose(found.frame["good_share"], good.mean(axis=(0, 2)))


def test_a_training_that_flies_off_is_not_good() -> None:
    assert good_rates(bowl("sgd(momentum=0, nesterov=false)", [0.001, 0.1, 0.3]), 0.1).tolist() == [False, True, False]
    assert not good_rates(np.full(3, np.inf), 0.1).any()
    words = "lr-sensitivity(optimizers=sgd, low=0.01, high=1e12, n=2, epochs=2, repeats=1)"
    found = molgraph.study(words, series(60), model=MODEL)
    assert found.frame.iloc[0, -1] == np.inf and found.frame["good_share"].tolist() == [0.5]
    assert found.sound and b"<svg" in found.draw("svg")


@pytest.mark.parametrize(
    ("words", "model", "error", "match"),
    [
        ("lr-sensitivity(low=0.1, high=0.01)", MODEL, BadValueError, "low is 0.1"),
        ("lr-sensitivity(optimizers=adamm)", MODEL, UnknownNameError, "adamm"),
        ("lr-sensitivity", "random_forest", UnsupportedError, "no graph network"),
    ],
)
def test_what_cannot_be_compared_is_refused(words: str, model: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        molgraph.study(words, series(60), model=model)
