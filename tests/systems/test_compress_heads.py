"""Attention heads that are removed: importance against finite differences, gates against closed forms, real removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.compress import l0_heads
from molgraph.compress.compressor import make_compressor
from molgraph.compress.heads import RemoveHeads, attentions, head_importance, heads_left, with_heads
from molgraph.compress.l0_heads import HeadGates, L0Heads, chance_open, gate_values
from molgraph.compress.retrain import rates_of, retrain
from molgraph.data.batch import GraphBatch
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.evaluate.metrics import evaluate_metric, get_metric
from molgraph.train.further import labelled_samples
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.objective import StepState
from tests.systems.effect import Effect
from tests.tiny import series, small

TABLE, VALID = series(32), series(16, 48)
SOURCES: dict[str, dict[str, Any]] = {
    "graphgps": {"encoder": "graphgps", "params": {"d_hidden": 12, "heads": 4, "depth": 2, "walk": 4}},
    "grover": {"encoder": "grover", "params": {"d_hidden": 6, "heads": 3, "depth": 2, "hops": 2, "hop_spread": 0.0}},
}


def fitted(name: str) -> GraphMethod:
    return small(epochs=1, **SOURCES[name]).fit(TABLE)


def model_of(method: Any) -> Model:
    return Model(method, targets=TABLE.targets)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.system("attention-head-importance-and-pruning", rung="exact")
def test_importance_is_the_finite_difference_of_the_loss(name: str, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In double precision, molecule by molecule; off: the absolute value of the mean, where signs cancel."""
    method, few = fitted(name), TABLE.take(np.arange(6))
    network, single = method.ready().network.double(), GraphBatch.features
    monkeypatch.setattr(GraphBatch, "features", lambda batch, level: single(batch, level).double())
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # the loss is in single precision elsewhere
    samples, objective = labelled_samples(method, few)
    state, step = StepState(0, 1, 0, training=False), 1e-5

    def losses() -> np.ndarray:
        found = []
        for row in range(6):
            sample = samples.sample(np.array([row]))
            network.prepare(sample)
            with torch.no_grad():
                found.append(float(objective(network, sample, state).total))
        return np.array(found)

    expected = []
    for each in attentions(method):
        weight, own = network.get_submodule(each.output).weight, []
        for head in range(each.units.n):
            columns, ends = each.units.places(each.units.axes[-1])[0, head], []
            for sign in (1, -1):
                before = weight.detach().clone()
                with torch.no_grad():
                    weight[:, columns] *= 1 + sign * step
                ends.append(losses())
                with torch.no_grad():
                    weight.copy_(before)
            slopes = (ends[0] - ends[1]) / (2 * step)
            own.append(abs(slopes.mean()) if off else abs(slopes).mean())
        expected.append(np.array(own) / np.linalg.norm(own))
    found = head_importance(method, few)
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.system("attention-head-importance-and-pruning", rung="exact")
def test_a_head_without_output_weights_goes_first_and_changes_nothing(
    name: str, off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the rest is smaller, loads and predicts the same; off: heads are removed at random."""
    method = fitted(name)
    network = method.ready().network
    found, silent = attentions(method), []
    for place, each in enumerate(found):
        weight = network.get_submodule(each.output).weight
        silent.append((place + 1) % each.units.n)
        with torch.no_grad():
            weight[:, each.units.places(each.units.axes[-1])[0, silent[-1]]] = 0
    scores = head_importance(method, TABLE)
    assert all(score[head] == 0 for score, head in zip(scores, silent, strict=True))
    share = len(found) / sum(each.units.n for each in found)
    how = RemoveHeads(share, by="random" if off else "importance", retrain=None)
    made = how.compress(model_of(method), TABLE, VALID, 0)
    np.testing.assert_allclose(made.predict(VALID).value, method.predict(VALID).value, rtol=0, atol=1e-5)
    paths = [model_of(each).save(tmp_path / f"{i}.mgm") for i, each in enumerate((method, made))]
    assert verify(paths[1]).largest_gap == 0 and paths[1].stat().st_size < paths[0].stat().st_size
    np.testing.assert_array_equal(load_model(paths[1]).predict(VALID).value, made.predict(VALID).value)
    again = with_heads(made, [[0]] * len(found))
    assert load_model(model_of(again).save(tmp_path / "one.mgm")).method.params["kept_heads"].count("1") == len(found)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.system("l0-attention-head-gates", rung="exact")
def test_open_gates_change_nothing_and_shut_ones_are_removed(
    name: str, off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gates of 1 give the ungated answers to 1e-6; gates of 0 those of the network without the heads."""
    method = fitted(name)
    network, found = method.ready().network, attentions(method)
    plain = method.predict(VALID).value
    gates = HeadGates(found, 0.01)
    monkeypatch.setattr(l0_heads, "START", -9.0 if off else 9.0)
    gates.begin(network)
    np.testing.assert_allclose(method.predict(VALID).value, plain, rtol=0, atol=1e-6)
    for each in gates.moves:
        each.data[0] = -20.0
    gated = method.predict(VALID).value
    gates.end(network)
    assert not np.allclose(gated, plain, atol=1e-4)
    np.testing.assert_allclose(method.predict(VALID).value, gated, rtol=0, atol=1e-6)
    rest = with_heads(method, [[*range(1, each.units.n)] for each in found])
    np.testing.assert_allclose(rest.predict(VALID).value, gated, rtol=0, atol=1e-5)


@pytest.mark.system("l0-attention-head-gates", rung="exact")
def test_a_gate_is_open_as_often_as_the_closed_form_says(off: str) -> None:
    """And the penalty's gradient is that of the sum of the closed forms; off: another temperature."""
    torch.manual_seed(0)
    log_alpha = torch.linspace(-3, 3, 7)
    drawn = torch.stack([gate_values(log_alpha, draw=True) for _ in range(40_000)])
    closed = torch.sigmoid(log_alpha) if off else chance_open(log_alpha)
    torch.testing.assert_close((drawn > 0).float().mean(0), closed, rtol=0, atol=0.01)
    assert drawn.min() == 0 and drawn.max() == 1


SEEDS, DRAWS = (41, 42, 43, 44, 45), 5


def bbbp(seed: int) -> tuple[Model, Table, Table]:
    """A network of 16 heads, the rows that it learned from, and those to judge it on."""
    table = read_table("dataset:bbbp")
    order = np.random.default_rng(seed).permutation(np.flatnonzero(table.ok))
    train, valid, test = (table.take(order[a:b]) for a, b in ((0, 300), (300, 400), (400, 1000)))
    how = {"epochs": 10, "batch_size": 32, "patience": None, "threads": 1, "head_width": 32, "seed": seed}
    method = GraphMethod("graphgps", {"d_hidden": 32, "heads": 8, "depth": 2, "walk": 8}, **how).fit(train, valid)
    return Model(method, targets=table.targets), train, test


def auroc(method: Any, test: Table) -> float:
    value = method.predict(test).value[:, 0]
    use = np.isfinite(value)  # not every SMILES can be read
    return float(evaluate_metric(get_metric("roc_auc"), test.y[use, 0], value[use])[0])


@pytest.mark.system(
    "attention-head-importance-and-pruning",
    rung="works",
    null="half of the heads cost nothing on BBBP, whichever they are: AUROC 0.793 by importance, 0.794 at random",
)
def test_half_of_the_heads_by_importance_cost_less_than_a_random_half(off: str, effect: Effect) -> None:
    """AUROC on BBBP, without training after it; off: the random half's own mean."""
    gains, costs = list[float](), dict[str, list[float]]()
    for seed in SEEDS:
        model, train, test = bbbp(seed)
        draws = [RemoveHeads(0.5, by="random", retrain=None).compress(model, train, train, k) for k in range(DRAWS)]
        at_random = float(np.mean([auroc(each, test) for each in draws]))
        own = at_random if off else auroc(RemoveHeads(0.5, retrain=None).compress(model, train, train, seed), test)
        gains.append(own - at_random)
        for name, value in (("all heads", auroc(model.method, test)), ("half", own), ("random half", at_random)):
            costs.setdefault(f"AUROC of {name}", []).append(value)
    effect("AUROC of the important half - of a random half", gains, at_least=0.001, beside=costs)


@pytest.mark.system(
    "l0-attention-head-gates",
    rung="works",
    null="as many random heads, trained on as long, are as good on BBBP: AUROC 0.801 by gates, 0.802 at random",
)
def test_heads_that_gates_leave_are_as_good_as_a_random_choice_or_better(off: str, effect: Effect) -> None:
    """AUROC on BBBP, beside as many random heads trained on as long; off: no penalty, and no head goes."""
    gains, costs = list[float](), dict[str, list[float]]()
    for seed in SEEDS:
        model, train, test = bbbp(seed)
        made = L0Heads(0.0 if off else 0.005).compress(model, train, train, seed)
        left = [each.units.n for each in attentions(made)]
        rates, drawn = rates_of(model.method, 0.5, "lr_rewind"), list[float]()
        for k in range(DRAWS):
            rng = np.random.default_rng([seed, k])
            some = with_heads(model.method, [sorted(rng.permutation(8)[:n].tolist()) for n in left])
            drawn.append(auroc(retrain(some, train, None, rates, seed=k), test))
        costs.setdefault("heads of 16", []).append(float(sum(left)))
        costs.setdefault("AUROC of all heads", []).append(auroc(model.method, test))
        costs.setdefault("AUROC of the gated", []).append(auroc(made, test))
        costs.setdefault("AUROC of random heads", []).append(float(np.mean(drawn)))
        gains.append(costs["AUROC of the gated"][-1] - costs["AUROC of random heads"][-1])
    assert np.mean(costs["heads of 16"]) <= 12, costs
    effect("AUROC of the gated heads - of as many random ones", gains, at_least=0.0, beside=costs)


def test_what_has_no_heads_is_refused_in_a_sentence() -> None:
    for text in ("heads(0)", "heads(1)", "heads(fraction=1.5)"):
        with pytest.raises(BadValueError, match="fraction"):
            make_compressor(text)
    forest = model_of(make_method("random_forest(n_estimators=5)").fit(TABLE))
    dmpnn = model_of(small(epochs=1).fit(TABLE))
    for how in (RemoveHeads(), L0Heads()):
        with pytest.raises(UnsupportedError, match="a random_forest has no attention heads"):
            how.compress(forest, TABLE, VALID, 0)
        with pytest.raises(UnsupportedError, match="the encoder dmpnn has no attention heads"):
            how.compress(dmpnn, TABLE, VALID, 0)
    gps = fitted("graphgps")
    with pytest.raises(BadValueError, match="no head can be removed"):
        RemoveHeads(0.01).compress(model_of(gps), TABLE, VALID, 0)
    for text in ("1", "9,1", "a,b", "0,1"):
        params = {**SOURCES["graphgps"]["params"], "kept_heads": text}
        with pytest.raises(BadValueError, match="expected 2 numbers from 1 to 4"):
            small(encoder="graphgps", params=params).check_network()
    assert heads_left([torch.tensor([0.1, 0.2, 0.9]), torch.tensor([0.3])], 0.5) == [[2], [0]]
