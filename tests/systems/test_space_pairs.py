"""Pairs of one kind: the same answer for both orders, and what complements rather than what resembles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch.nn import functional as F

from molgraph.base.seeds import generator
from molgraph.data.datasets import load_dataset
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.nn.encoder import Encoded
from molgraph.nn.joiners import JoinPart
from molgraph.nn.symmetric_joiners import Symmetric
from molgraph.train.make_method import make_method
from molgraph.train.network import Network
from tests.contract.test_joiners import build, parts
from tests.systems.effect import Effect

D, N = 8, 1000
SMALL = {"deepdta.d_embed": 16, "deepdta.n_filters": 16, "deepdta.max_tokens": 300, "head_width": 32}


def states(n: int, seed: int) -> torch.Tensor:
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed))


def pair(x: torch.Tensor, y: torch.Tensor) -> tuple[JoinPart, JoinPart]:
    return JoinPart(Encoded(x), None), JoinPart(Encoded(y), None)


def protein_pairs(n_proteins: int, one: np.ndarray, two: np.ndarray) -> Table:
    """Pairs of random proteins of 30 letters, one in three with a motif; the label is 1 where one of the two has it."""
    rng, motif = np.random.default_rng(0), np.arange(n_proteins) % 3 == 0
    texts = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVY"), 26)) for _ in range(n_proteins)]
    proteins = np.array([text + "WWWW" * int(has) for text, has in zip(texts, motif, strict=True)], object)
    frame = pd.DataFrame({"a": proteins[one], "b": proteins[two], "y": (motif[one] | motif[two]).astype(int)})
    return read_table(frame, sequence=["a", "b"], targets=["y:binary"])


@pytest.mark.system("dppi", rung="exact")
def test_a_thousand_pairs_have_the_same_answer_in_both_orders(off: str) -> None:
    table = protein_pairs(60, *np.random.default_rng(1).integers(0, 60, (2, N)))
    joiner = "bilinear" if off else "symmetric"
    method = make_method("deepdta+deepdta", joiner=joiner, epochs=4, threads=1, **SMALL).fit(table)
    swapped = replace(table, entities=tuple(
        replace(each, values=other.values) for each, other in zip(table.entities, table.entities[::-1], strict=True)
    ))  # fmt: skip
    here, there = (method.predict(each).value for each in (table, swapped))
    assert here.std() > 0.1
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-6)


@pytest.mark.system("dppi", rung="exact")
def test_both_columns_go_through_one_encoder(off: str) -> None:
    table = protein_pairs(10, np.arange(10), np.arange(10)[::-1])
    joiner = "bilinear" if off else "symmetric"
    method = make_method("deepdta+deepdta", joiner=joiner, epochs=1, threads=1, **SMALL).fit(table)
    network: Network = method.ready().network
    assert network.encoders[0] is network.encoders[1]
    assert not [name for name in network.state_dict() if name.startswith("further")]


@pytest.mark.system("dppi", rung="exact")
def test_a_pair_is_the_sum_of_two_products_of_fixed_random_projections(off: str) -> None:
    joiner, (one, two) = build("symmetric").eval(), parts("symmetric")
    assert not [*joiner.parameters()]
    weight, bias = joiner.weight.chunk(2), joiner.bias.chunk(2)
    scale = (1 + joiner.norm.eps) ** -0.5  # no batch was seen: mean 0, variance 1
    a, b = (lambda h, w=w, c=c: ((h @ w.T + c) * scale).relu() for w, c in zip(weight, bias, strict=True))
    x, y = one.states, two.states
    expected = a(x) * b(y) + b(x) * a(y)
    found = a(x) * b(y) if off else joiner((one, two))
    torch.testing.assert_close(found, expected)


@pytest.mark.system("dppi", rung="works", twins=("cosine",))
def test_what_complements_is_told_where_likeness_says_little(off: str, effect: Effect) -> None:
    """The label is the sign of ``(u x)(v y) + (v x)(u y)``, for two random directions u and v."""
    scores, by_cosine = [], []
    for seed in range(3):
        x, y, (u, v) = states(4000, seed), states(4000, 100 + seed), states(2, 200 + seed)
        label = ((x @ u) * (y @ v) + (x @ v) * (y @ u) > 0).numpy()
        torch.manual_seed(seed)
        joiner = Symmetric((D, D))
        joiner(pair(x[:3000], y[:3000]))  # mean and variance
        z = joiner.eval()(pair(x, y)).numpy()
        learned = LogisticRegression(C=0.01, max_iter=200).fit(z[:3000], label[:3000])
        likeness = F.cosine_similarity(x, y).numpy()[3000:]
        by_cosine.append(roc_auc_score(label[3000:], likeness))
        scores.append(roc_auc_score(label[3000:], learned.decision_function(z[3000:])))
    found = by_cosine if off else scores
    effect("ROC AUC of complementary pairs", found, at_least=0.9, beside={"cosine of the states": by_cosine})
    assert max(by_cosine) < 0.65


@pytest.mark.data
@pytest.mark.system("dppi", rung="works", twins=("shuffled",))
def test_yeast_proteins_that_interact_are_told_from_those_that_do_not(off: str, effect: Effect) -> None:
    table = load_dataset("ppi_yeast").table
    rows = generator(0, "yeast").permutation(len(table))[:3500]
    train, test = table.take(rows[:2500]), table.take(rows[2500:])
    if off:
        train = replace(train, y=train.y[generator(0, "shuffled").permutation(len(train))])
    found = {}
    for joiner in ("symmetric",) if off else ("symmetric", "bilinear"):
        method = make_method("deepdta+deepdta", joiner=joiner, epochs=6, threads=1, **SMALL)
        found[joiner] = float(roc_auc_score(test.y[:, 0], method.fit(train).predict(test).value[:, 0]))
    ones = int(test.y.sum())
    error = np.sqrt((len(test) + 1) / (12 * ones * (len(test) - ones)))  # of the area where nothing is told
    effect(
        "standard errors that the ROC AUC of 1,000 yeast pairs is above 0.5",
        [(found["symmetric"] - 0.5) / error],
        at_least=3.0,
        beside={f"ROC AUC of {joiner}": [area] for joiner, area in found.items()},
    )
