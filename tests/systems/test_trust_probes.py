"""Linear probes: the R2 of least squares, chance and planted concepts, and what training on one concept does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from molgraph.auxiliary.study.probes import TRAIN, ProbesStudy, activations, decodability, with_concept
from molgraph.base.contracts import Target
from molgraph.base.seeds import generator
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.study.study import Subject
from molgraph.train.method import GraphMethod
from tests.systems.effect import Effect

RESTS = ("C", "CC", "OC", "C#N", "C(C)C", "C(=O)C", "SC", "CCC", "C=C", "CCOC", "C(C)(C)C", "N(C)C", "C1CC1", "Br")
PLACES = (
    "{a}c1cc({b})c({r})cc1{s}",
    "{a}c1c({b})cc({r})cc1{s}",
    "{a}c1ccc({b})c({r})c1{s}",
    "{a}C1CC({b})CC({r})C1{s}",
)


@pytest.mark.system("decodability-probes", rung="exact")
def test_with_many_rows_a_probe_is_least_squares(off: str) -> None:
    """R2 on held-out rows to 0.001 of scikit-learn's least squares; off: no column is read."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 12)) * rng.uniform(0.1, 5, 12)
    y = x @ rng.normal(size=(12, 4)) + rng.normal(size=(3000, 4)) * [0, 1, 3, 9]
    train, test = np.split(generator(7, "probe").permutation(3000), [round(TRAIN * 3000)])
    guess = LinearRegression().fit(x[train], y[train]).predict(x[test])
    plain = ((y[test] - y[train].mean(axis=0)) ** 2).sum(axis=0)
    wanted = 1 - ((y[test] - guess) ** 2).sum(axis=0) / plain
    np.testing.assert_allclose(decodability(x[:, :0] if off else x, y, 7), wanted, atol=1e-3)


@pytest.mark.system("decodability-probes", rung="exact")
def test_shuffled_concepts_are_at_chance_and_an_appended_one_is_read(off: str) -> None:
    """Of each layer of the study, on the user's own molecules; off: no probe."""
    table = builtin.nci().take(np.arange(400))
    y = np.array([[float(len(str(text)))] for text in table.smiles])
    table = make_table(list(table.smiles), targets=(Target("length"),), y=y)
    study = ProbesStudy(most=300, linear=not off)
    found = study.run(Subject(table, "gin(depth=2, d_hidden=16, epochs=2)"), seed=9)
    assert found.frame["shuffled"].mean() <= 0.05 and found.frame.groupby("layer")["shuffled"].mean().max() <= 0.05
    assert found.sound and found.positive.holds and found.negative.holds
    rng = np.random.default_rng(6)
    x, concept = rng.normal(size=(300, 64)), rng.normal(size=300)
    assert decodability(with_concept(x, concept), concept[:, None], 1)[0] > 0.99
    assert decodability(x, concept[:, None], 1)[0] <= 0.05


def planted(n: int, seed: int) -> tuple[Table, np.ndarray]:
    """Molecules with one of two groups at each of two places, independent of each other and of the rest."""
    rng = np.random.default_rng(seed)
    both = rng.integers(0, 2, (n, 2))
    texts = []
    for a, b in both:
        parts = {"a": ("F", "Cl")[a], "b": ("O", "N")[b], "r": rng.choice(RESTS), "s": rng.choice(RESTS)}
        texts.append(str(rng.choice(PLACES)).format(**parts))
    return make_table(texts, targets=(Target("a", "binary"),), y=both[:, :1].astype(float)), both[:, 1:].astype(float)


@pytest.mark.system("decodability-probes", rung="works")
def test_training_on_one_concept_lowers_the_other_below_its_start(off: str, effect: Effect) -> None:
    """In the head's hidden layer, the last of the network, by a sign test: 5 of 5 seeds have p = 0.03.

    In the last layer of the encoder it fell in 3 of 5 seeds (0.50 to 0.42). Off: training whose steps are 0.
    """
    lower, before, after, own = [], [], [], []
    for seed in (10, 11, 12, 13, 14):
        table, other = planted(500, seed)
        made = []
        for rate, epochs in ((1e-12, 1), (1e-12, 1) if off else (2e-3, 25)):
            how = {
                "epochs": epochs,
                "learning_rate": rate,
                "batch_size": 32,
                "threads": 1,
                "seed": seed,
                "head_width": 64,
            }
            method = GraphMethod("gin", {"depth": 3, "d_hidden": 32}, **how).fit(table)
            network = method.ready().network
            x = activations(network.encoder, method.graph_inputs(), table, network.head)["head"]
            assert table.y is not None
            made.append([float(decodability(x, y, seed)[0]) for y in (other, table.y)])
        before.append(made[0][0]), after.append(made[1][0]), own.append(made[1][1])
        lower.append(float(after[-1] < before[-1]))
    beside = {"R2 at the start": before, "after": after, "of the concept trained on": own}
    effect("share of seeds in which the other concept's R2 falls", lower, at_least=1, beside=beside)
