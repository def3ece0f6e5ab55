"""Few labels and many molecules: agreement of views, a pretext beside the labels, and guessed labels that are mixed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch.nn import functional as F

from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError
from molgraph.data.read import read_table
from molgraph.data.table import Table, make_table
from molgraph.data.view import make_views
from molgraph.train.draws import rows_as_asked
from molgraph.train.guesses import log_probabilities, sharpened
from molgraph.train.method import GraphMethod
from molgraph.train.objective import StepState, make_objective
from molgraph.train.objectives.masked_atoms import CHOSEN, elements
from molgraph.train.objectives.s4l import S4L
from molgraph.train.objectives.uda import eta
from molgraph.train.preparation import prepare
from tests.systems.effect import Effect
from tests.tiny import same_bits, series, small, weights_of

FIRST = StepState(0, 10, 0)
VIEWS = "mask(p=0.3)+drop"


def table(kind: str = "binary", n_labelled: int = 12) -> Table:
    """Thirty-two molecules, the first of which have a label."""
    y = np.full((32, 1), np.nan)
    y[:n_labelled, 0] = np.arange(n_labelled) % 2
    return make_table([*series(32).smiles], targets=(Target("y", kind),), y=y)


def made(name: str, *, kind: str = "binary", views: bool = True, **own: Any) -> tuple[Any, Any, Any]:
    """A network, the objective, and a batch of four rows with labels and four without, as training makes it."""
    labels = S4L.row_labels(**own) if name == "s4l" else None
    ready = prepare(
        table(kind),
        None,
        "gin",
        None,
        None,
        {},
        unlabelled=True,
        views=make_views(VIEWS if views else None),
        labels=labels,
    )
    torch.manual_seed(0)
    method = small(encoder="gin", params={"d_hidden": 8, "depth": 2, "norm": "none"})
    network = method.build(ready.inputs, d_extra=0, targets=ready.outputs.targets)
    settings = {f"objective.{key}": value for key, value in own.items()}
    objective = make_objective(name, settings, network, ready.inputs, ready.outputs)
    rng = np.random.default_rng(1)
    rows = rows_as_asked(objective, ready.train, np.arange(4), rng, ready.train.unlabelled(0, 4, 0))
    batch = objective.corrupt(rows, rng)
    network.prepare(batch)
    with torch.no_grad():
        network.head.layers[-1].weight.mul_(5)  # so that probabilities differ
    return network, objective, batch


@pytest.mark.system("uda-tsa", rung="exact")
def test_views_agree_with_molecules_and_labels_that_are_known_do_not_count(off: str) -> None:
    network, objective, batch = made("uda", weight=2.0, temperature=0.5, threshold=0.0)
    with torch.no_grad():
        logits, seen = network(batch.plain)[0], network(batch)[0]
        batch.plain.y[:4] = (logits[:4] > 0) ^ torch.tensor([[False], [False], [True], [True]])
    if off:
        objective.tsa, objective.weight = "all", 0.0
    loss = objective(network, batch, FIRST)
    labels = F.binary_cross_entropy_with_logits(logits[2:4], batch.plain.y[2:4])  # p(y|x) of the others is above 1/2
    p, q = (torch.cat([-raw, raw], dim=1) for raw in (logits, seen))  # up to a constant, as softmax has it
    p, q = (p / 2 / 0.5).softmax(dim=1), (q / 2).log_softmax(dim=1)
    divergence = F.kl_div(q, p, reduction="batchmean")
    assert float(divergence) > 1e-4 and loss.count == 4
    torch.testing.assert_close(loss.total, 4 * (labels + 2.0 * divergence), rtol=1e-4, atol=1e-5)


@pytest.mark.system("uda-tsa", rung="exact")
def test_molecules_agree_with_themselves_and_schedules_end_where_the_paper_has_them(off: str) -> None:
    network, objective, batch = made("uda", views=bool(off), temperature=1.0, threshold=0.0)
    assert float(objective(network, batch, FIRST).parts["consistency"].detach()) == pytest.approx(0, abs=1e-6)
    for n in (2, 5):
        starts, ends = ({name: eta(name, t, n) for name in ("log", "linear", "exp")} for t in (0.0, 1.0))
        assert starts["log"] == pytest.approx(1 / n, abs=1e-9) == starts["linear"]
        assert ends["linear"] == pytest.approx(1, abs=1e-9) == ends["exp"]
        assert ends["log"] == pytest.approx((1 - np.exp(-5)) * (1 - 1 / n) + 1 / n, abs=1e-9)


def test_uda_leaves_unsure_targets_out_and_brings_numbers_together() -> None:
    network, objective, batch = made("uda", threshold=1.0)
    assert float(objective(network, batch, FIRST).parts["consistency"].detach()) == 0
    network, objective, batch = made("uda", kind="regression")
    raw, seen = network(batch.plain)[0], network(batch)[0]
    expected = (raw[:4] - batch.plain.y[:4]).square().sum() + 4 * (raw.detach() - seen).square().mean()
    torch.testing.assert_close(objective(network, batch, FIRST).total, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.system("s4l", rung="exact")
def test_labels_and_a_pretext_add_up_and_without_its_weight_labels_alone_are_learned(off: str) -> None:
    how: dict[str, Any] = {"epochs": 2, "threads": 1}
    alone, zero = (weights_of(small(objective=name, **how).fit(table())) for name in ("supervised", "s4l(w=0)"))
    assert same_bits(alone, zero)
    network, objective, batch = made("s4l", views=False, w=2.0)
    if off:
        objective.w = 0.0
    loss = objective(network, batch, FIRST)
    graphs = batch.parts[0].batch
    chosen = graphs["atom"].arrays[CHOSEN]
    scores = objective.pretext.head(network.encoder(graphs, rows=True).rows[0].h[chosen])
    clean = batch.plain.parts[0].batch["atom"]
    assert batch.plain.parts[0].batch.n_graphs == 4 and graphs.n_graphs == 8
    of_first = elements(clean.table)[clean.code][chosen[: len(clean)]]
    torch.testing.assert_close(batch.y[: len(of_first)], of_first)
    labels = F.binary_cross_entropy_with_logits(network(batch.plain)[0], batch.plain.y, reduction="sum")
    torch.testing.assert_close(loss.total, labels + 4 * 2.0 * F.cross_entropy(scores, batch.y), rtol=1e-4, atol=1e-4)


def test_a_pretext_has_labels_of_its_own_behind_the_targets() -> None:
    network, objective, batch = made("s4l", views=False, pretext="descriptors(bits=0)")
    assert batch.y.shape == (8, 217) and batch.plain.y.shape == (4, 1)
    assert torch.isfinite(objective(network, batch, FIRST).total)
    with pytest.raises(UnsupportedError, match="masked-atoms"):
        made("s4l", pretext="contrast")


@pytest.mark.system("mixmatch", rung="exact")
def test_sharpened_guesses_and_labels_are_mixed_as_the_graph_vectors_are(off: str) -> None:
    network, objective, batch = made("mixmatch", weight=3.0, ramp=0.5)
    objective.shares = lambda n: torch.full((n, 1), 0.7)
    if off:
        objective.weight = 0.0
    torch.manual_seed(3)
    loss = objective(network, batch, StepState(10, 10, 0))
    torch.manual_seed(3)
    with torch.no_grad():
        h = network.encoder(batch.parts[0].batch).graphs
        p = network.head(h).sigmoid()[:, 0]
        guess = (p[:8] + p[8:]) / 2  # two views
        guess = guess**2 / (guess**2 + (1 - guess) ** 2)
        labels = torch.cat([guess, guess])
        labels[:4] = batch.y[:4, 0]
        rows = torch.tensor([*range(8), *range(12, 16)])
        other = rows[torch.randperm(12)]
    h = network.encoder(batch.parts[0].batch).graphs
    raw = network.head(0.7 * h[rows] + 0.3 * h[other])[:, 0]
    y = 0.7 * labels[rows] + 0.3 * labels[other]
    known = F.binary_cross_entropy_with_logits(raw[:4], y[:4], reduction="sum")
    brier = (raw[4:].sigmoid() - y[4:]).square().mean()
    torch.testing.assert_close(loss.total, known + 4 * 3.0 * brier, rtol=1e-4, atol=1e-5)
    own, by_hand = (
        torch.autograd.grad(each, network.head.layers[0].weight)[0] for each in (loss.total, known + 12 * brier)
    )
    torch.testing.assert_close(own, by_hand, rtol=1e-3, atol=1e-5)  # none through the guesses


@pytest.mark.system("mixmatch", rung="exact")
def test_one_view_without_mixing_and_weight_is_cross_entropy(off: str) -> None:
    log_p = log_probabilities("multiclass", torch.tensor([[0.3, 0.1, -1.0], [2.0, 1.0, 1.5]]))
    torch.testing.assert_close(sharpened(log_p, 1.0), log_p.exp())
    torch.testing.assert_close(sharpened(log_p, 1e-3), F.one_hot(log_p.argmax(dim=1), 3).float())
    network, objective, batch = made("mixmatch", copies=1, temperature=1.0, weight=0.0)
    objective.shares = lambda n: torch.full((n, 1), 0.5 if off else 1.0)
    expected = F.binary_cross_entropy_with_logits(network(batch)[0][:4], batch.y[:4], reduction="sum")
    torch.testing.assert_close(objective(network, batch, FIRST).total, expected)


def test_mixmatch_of_numbers_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="uda"):
        small(objective="mixmatch").fit(table("regression"))


@cache
def labelled(name: str) -> Table:
    rows = read_table(f"dataset:{name}", on_error="keep")
    return rows.take(np.flatnonzero(rows.ok & np.isfinite(rows.y[:, 0])))


def parts(name: str, seed: int, n_labels: int) -> tuple[Table, Table]:
    """Some rows with labels and 500 without, and 500 others."""
    rows = labelled(name)
    order, end = np.random.default_rng(seed).permutation(len(rows)), n_labels + 500
    y = rows.y.copy()
    y[order[n_labels:end]] = np.nan
    return replace(rows, y=y).take(order[:end]), rows.take(order[end : end + 500])


def fitted(name: str, objective: str, seed: int, n_labels: int = 100, **how: Any) -> tuple[GraphMethod, Table]:
    """A small network, and the rows that it did not learn from."""
    known, test = parts(name, seed, n_labels)
    usual: dict[str, Any] = {"encoder": "gin", "params": {"d_hidden": 32, "depth": 2}, "head_width": 32}
    usual |= {"epochs": 30, "batch_size": 16, "seed": seed, "threads": 1}
    return GraphMethod(objective=objective, **{**usual, **how}).fit(known), test


@cache
def auc(objective: str, seed: int) -> float:
    """ROC-AUC of BBBP with 100 labels."""
    method, test = fitted("bbbp", objective, seed)
    found = method.predict(test)
    return float(roc_auc_score(test.y[found.ok, 0], found.value[found.ok, 0]))


def compared(objectives: tuple[str, ...], effect: Effect) -> None:
    """ROC-AUC of the first objective less that of labels alone, beside those of all."""
    values = {each: [auc(each, seed) for seed in range(3)] for each in ("supervised", *objectives)}
    gains = [a - b for a, b in zip(values[objectives[0]], values["supervised"], strict=True)]
    effect("ROC-AUC less that of labels alone", gains, at_least=0.0, beside=values)


@pytest.mark.data
@pytest.mark.system("uda-tsa", rung="works", null="on BBBP masked atoms and bonds teach nothing beyond 100 labels")
def test_agreement_of_views_gains_on_labels_alone(off: str, effect: Effect) -> None:
    compared(("uda", "mean-teacher"), effect)


@pytest.mark.data
@pytest.mark.system("mixmatch", rung="works", null="on BBBP guessed and mixed labels teach nothing beyond 100 labels")
def test_guessed_labels_gain_on_labels_alone(off: str, effect: Effect) -> None:
    compared(("mixmatch",), effect)


@pytest.mark.data
@pytest.mark.system("s4l", rung="works", null="on ESOL masked atoms beside 80 labels take more than they give")
def test_a_pretext_gains_on_labels_alone(off: str, effect: Effect) -> None:
    def rmse(objective: str, seed: int) -> float:
        method, test = fitted("esol", objective, seed, 80)
        return float(np.sqrt(np.mean((method.predict(test).value - test.y) ** 2)))

    alone, both, star = ([rmse(name, seed) for seed in range(3)] for name in ("supervised", "s4l", "infograph-star"))
    shares = [a / b for a, b in zip(both, alone, strict=True)]
    effect("RMSE / of labels alone", shares, at_most=1.0, beside={"labels alone": alone, "infograph-star": star})


@pytest.mark.data
@pytest.mark.system(
    "s4l", rung="works", null="in 150 steps masked atoms are hardly better known than by carbon alone: +0.015"
)
def test_the_pretext_is_learned_beside_the_labels(off: str, effect: Effect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements of masked atoms of molecules that were held out, beside the share of the most common one."""
    last: list[tuple[Any, Any]] = []
    forward = S4L.forward

    def watched(self: S4L, network: Any, batch: Any, state: StepState) -> Any:
        last[:] = [(self, network)]
        return forward(self, network, batch, state)

    monkeypatch.setattr(S4L, "forward", watched)
    gains, common, labels = [], [], []
    for seed in range(3):
        method, test = fitted("esol", "s4l(w=0)" if off else "s4l", seed, 80)
        objective, network = last[0]
        inputs = method.ready().inputs
        samples = prepare(test, None, "gin", None, None, {}, specs={"gin": inputs[0].spec}).train
        batch = objective.pretext.corrupt(samples.sample(np.arange(len(samples))), np.random.default_rng(seed))
        network.prepare(batch)
        graphs = batch.parts[0].batch
        with torch.no_grad():
            h = network.eval().encoder(graphs, rows=True).rows[0].h
            guess = objective.pretext.head(h[graphs["atom"].arrays[CHOSEN]]).argmax(dim=1)
        common.append(float(batch.y.bincount().max() / len(batch.y)))
        gains.append(float((guess == batch.y).float().mean()) - common[-1])
        labels.append(float(np.sqrt(np.mean((method.predict(test).value - test.y) ** 2))))
    beside = {"the most common element": common, "RMSE of the labels": labels}
    effect("accuracy less the share of the most common element", gains, at_least=0.1, beside=beside)
