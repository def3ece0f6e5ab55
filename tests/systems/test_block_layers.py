"""Block options of layers: exits, reversible layers, layers as a differential equation, symbols of atoms."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from molgraph.base.table import OK, Entities, Table, Target
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.featurize_graph import GraphFeaturiser
from molgraph.data.graph_values import Graph
from molgraph.data.read import read_table
from molgraph.models.gin import GIN
from molgraph.nn.blocks.exits import Halting, Heads, Lookback, layers_read, lookback, stop_chances
from molgraph.nn.blocks.stacks import ODE, Reversible, forward_pairs, inverse, runge_kutta
from molgraph.nn.blocks.symbols import draw
from molgraph.train.make_method import make_method
from tests.systems.effect import Effect
from tests.systems.test_block_options import _double, encoder

BATCH = collate(featurize(["CC(=O)Oc1ccccc1C(=O)O", "CCO", "C1CCC2CCCCC2C1"]), np.arange(3))
SPEC = featurize(["C"]).spec


def layers(n: int, d: int = 8) -> list[nn.Module]:
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(d, d), nn.Tanh(), nn.Linear(d, d)) for _ in range(n)]


@pytest.mark.system("reformer", rung="exact")
def test_inputs_come_back_from_outputs(off: str) -> None:
    stack, x = layers(6), torch.randn(50, 8, generator=torch.Generator().manual_seed(1))
    halves = forward_pairs(stack, x)[-2:] if not off else (stack[0](x), stack[1](x))
    for back in inverse(stack, halves):
        torch.testing.assert_close(back, x, rtol=0, atol=1e-5)


@pytest.mark.system("reformer", rung="exact")
def test_gradients_are_those_of_stored_layers(off: str) -> None:
    x = torch.randn(50, 8, generator=torch.Generator().manual_seed(1))
    found = []
    for stored in (True, False):
        stack, start = layers(5), x.clone().requires_grad_()
        option = Reversible()
        option.norms = []
        if stored:
            pairs = forward_pairs(stack, start)
            states = [(a + b) / 2 for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        else:
            states = option.run(stack, start)
        if off and not stored:
            states = [layer(start) for layer in stack]
        sum((k + 1) * h.square().sum() for k, h in enumerate(states)).backward()
        found.append([start.grad, *(p.grad for layer in stack for p in layer.parameters())])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


@pytest.mark.system("reformer", rung="exact")
def test_what_is_saved_does_not_grow_with_depth(off: str) -> None:
    counts = []
    for depth in (2, 16):
        saved, option, start = [], Reversible(), torch.ones(50, 8, requires_grad=True)
        option.norms = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, saved=saved: saved.append(t.numel()) or t, lambda t: t):
            if off:
                h = start
                for layer in layers(depth):
                    h = layer(h)
            else:
                h = option.run(layers(depth), start)[-1]
            h.sum()
        counts.append(sum(saved))
    assert counts[1] == counts[0] > 0


@pytest.mark.system("reformer", rung="exact")
def test_an_encoder_trains_as_with_stored_layers(off: str) -> None:
    """Batch norm's running statistics move once a step, and all weights have the gradients of stored layers."""
    found = []
    for stored in (True, False):
        own = encoder(GIN, SPEC, stack="reversible").double().train()
        if stored:
            own.options[0].run = lambda stack, h: [
                (a + b) / 2 for a, b in zip(*[iter(forward_pairs(stack, h))] * 2, strict=True)
            ]
        elif off:
            own.options[0].run = lambda stack, h: [layer(h) for layer in stack]
        own(_double(BATCH)).graphs.square().sum().backward()
        found.append({**{k: p.grad for k, p in own.named_parameters()}, **dict(own.named_buffers())})
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-6, atol=1e-6)


@pytest.mark.system("tisode", rung="exact")
def test_layers_that_give_nothing_decay(off: str) -> None:
    h = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)).double()
    for time in (0.5, 1.0, 2.0):
        states = ODE(time).run([torch.zeros_like] * 8, h)
        states = [torch.zeros_like(h)] * 8 if off else states
        for k, state in enumerate(states):
            torch.testing.assert_close(state, h * np.exp(-time * (k + 1) / 8), rtol=0, atol=1e-4)


@pytest.mark.system("tisode", rung="exact")
def test_runge_kutta_is_of_fourth_order(off: str) -> None:
    def slope(h: Tensor) -> Tensor:
        return torch.sin(3 * h) + 1

    def error(n: int) -> float:
        h = torch.tensor([0.3], dtype=torch.float64)
        for _ in range(n):
            h = h + slope(h) / n if off else runge_kutta(slope, h, 1 / n)
        return float(h)

    fine = error(4096)
    assert 3.5 < np.log2(abs(error(16) - fine) / abs(error(32) - fine)) < 4.6


def enumerated(p: np.ndarray) -> np.ndarray:
    """The chance of each first stop, over all ways to stop or go on at each layer."""
    total = np.zeros(len(p))
    for ways in product([0, 1], repeat=len(p) - 1):
        chance = np.prod([q if way else 1 - q for way, q in zip(ways, p, strict=False)])
        total[ways.index(1) if 1 in ways else len(p) - 1] += chance
    return total


P = torch.rand(5, 7, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
U = torch.randn(5, 7, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.system("monotonic-attention", rung="exact")
def test_stops_are_those_of_all_ways(off: str) -> None:
    stop = P / P.sum(0) if off else stop_chances(P)
    for i, j in product(range(7), range(2)):
        np.testing.assert_allclose(stop[:, i, j], enumerated(P[:, i, j].numpy()), atol=1e-6)
    torch.testing.assert_close(stop.sum(0), torch.ones_like(stop[0]))


@pytest.mark.system("milk", rung="exact")
def test_lookback_is_that_of_all_stops(off: str) -> None:
    stop = stop_chances(P)
    beta = stop if off else lookback(stop, U)
    known = torch.zeros_like(beta)
    for k in range(5):
        known[: k + 1] += stop[k] * U[: k + 1].softmax(0)
    torch.testing.assert_close(beta, known, rtol=0, atol=1e-6)
    torch.testing.assert_close(beta.sum(0), stop.sum(0))


@pytest.mark.system("milk", rung="exact")
def test_a_stop_at_the_last_layer_is_jumping_knowledge_by_attention(off: str) -> None:
    h = torch.randn(5, 7, 6, generator=torch.Generator().manual_seed(2))
    option = Lookback()
    option.energy = nn.Linear(6, 1)
    last = torch.zeros(5, 7, 1).index_fill(0, torch.tensor([4]), 1.0)
    weights = last if off else option.weights(last, h)
    torch.testing.assert_close((weights * h).sum(0), (option.energy(h).softmax(0) * h).sum(0), rtol=0, atol=1e-6)


@pytest.mark.system("mma", rung="exact")
def test_one_head_is_halting_and_depth_is_that_of_each_head(off: str) -> None:
    heads, one = encoder(GIN, SPEC, exit="heads(n=2)" if off else "heads(n=1)"), encoder(GIN, SPEC, exit="halting")
    assert isinstance(one.options[0], Halting) and isinstance(heads.options[0], Heads)
    if not off:
        heads.load_state_dict(one.state_dict())
    assert torch.equal(heads(BATCH).graphs, one(BATCH).graphs)
    stop = torch.eye(5)[[1, 3]].T[:, None, :]  # two heads stop at the second and the fourth layer
    assert layers_read(stop).tolist() == [[2.0, 4.0]]


@pytest.mark.system("emergent-discrete-communication", rung="exact")
def test_draws_have_the_chances_of_the_softmax(off: str) -> None:
    torch.manual_seed(0)
    logits = torch.tensor([0.0, 1.0, -1.0, 0.5])
    rows = logits.expand(100_000, 4)
    drawn = nn.functional.one_hot(rows.argmax(1), 4) if off else draw(rows, 1.0)
    counts = drawn.sum(0).double().numpy()
    assert chisquare(counts, 100_000 * logits.double().softmax(0).numpy(), sum_check=False).pvalue > 0.01


@pytest.mark.system("emergent-discrete-communication", rung="exact")
def test_one_hot_draws_have_the_gradient_of_soft_ones(off: str) -> None:
    weight, found = torch.randn(30, 4, generator=torch.Generator().manual_seed(3)), []
    for hard in (True, False):
        torch.manual_seed(1)
        logits = torch.randn(30, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()
        rows = draw(logits, 0.7, hard=hard)
        rows = rows.detach() + 0 * logits if off and hard else rows
        (rows * weight).sum().backward()
        found.append(logits.grad)
        assert not hard or set(rows.detach().unique().tolist()) <= {0.0, 1.0} or off
    torch.testing.assert_close(*found)


def labelled(n: int = 600) -> Table:
    """Activities above their median, of molecules that come with molgraph."""
    table = read_table("builtin:chembl2321810")
    table = table.take(np.random.default_rng(0).permutation(len(table))[:n])
    y = (table.y[:, :1] > np.median(table.y[:, 0])).astype(float)
    return Table(table.ids, table.entities, table.status, table.reason, (Target("y", "binary"),), y)


@pytest.mark.system("emergent-discrete-communication", rung="works", twins=("off",))
def test_sixteen_symbols_say_nearly_as_much_as_states(off: str, effect: Effect) -> None:
    table = labelled()
    train, test = table.take(np.arange(400)), table.take(np.arange(400, 600))
    losses, aucs = [], {"states": [], "symbols": []}
    for seed in range(2):
        for name, options in (("states", {}), ("symbols", {"symbols": f"symbols({2 if off else 16})"})):
            method = make_method("gin", epochs=25, seed=seed, d_hidden=32, depth=3, **options)
            if off and name == "symbols":
                method = make_method("gin", epochs=1, learning_rate=1e-9, seed=seed, d_hidden=32, depth=3, **options)
            aucs[name].append(roc_auc_score(test.y[:, 0], method.fit(train).predict(test).value[:, 0]))
        losses.append(aucs["states"][-1] - aucs["symbols"][-1])
    effect("ROC AUC of states less that of 16 symbols", losses, at_most=0.03, beside=aucs)


@pytest.mark.system("tisode", rung="works")
def test_the_penalty_keeps_what_comes_after_near_what_is_read(off: str, effect: Effect) -> None:
    table = labelled()
    train, test = table.take(np.arange(400)), table.take(np.arange(400, 600))
    moves: dict[float, list[float]] = {0.0: [], 1.0: []}
    aucs: dict[float, list[float]] = {0.0: [], 1.0: []}
    for seed in range(2):
        for weight in moves:
            used = 0.0 if off else weight
            method = make_method(
                "gin", epochs=15, seed=seed, d_hidden=32, depth=4, norm="none", stack=f"ode(time=1, weight={used})"
            )
            aucs[weight].append(roc_auc_score(test.y[:, 0], method.fit(train).predict(test).value[:, 0]))
            moves[weight].append(moved(method.ready().network.encoder, test))
    ratio = [a / b for a, b in zip(moves[1.0], moves[0.0], strict=True)]
    beside = {"AUC with": aucs[1.0], "AUC without": aucs[0.0]}
    effect("|h(2T) - h(T)| / without the penalty", ratio, at_most=0.5, beside=beside)
    assert np.mean(aucs[1.0]) > 0.98 * np.mean(aucs[0.0])


def moved(own: Any, table: Table) -> float:
    """How far states move from T to 2 T, in units of their size."""
    batch, option, ends = collate(featurize(list(table.entities[0].values)), np.arange(len(table))), own.options[0], []
    run = option.run

    def twice(stack: Any, h: Tensor) -> list[Tensor]:
        states = run(stack, h)
        ends.append((states[-1], run(stack, states[-1])[-1]))
        return states

    option.run = twice
    with torch.no_grad():
        own.eval()(batch)
    (first, second) = ends[0]
    return float((second - first).norm() / first.norm())


def chain(n: int, mark: int) -> Graph:
    """A path of n nodes; the node at one end has one of two marks."""
    edges = sorted({*((i, i + 1) for i in range(n - 1)), *((i + 1, i) for i in range(n - 1))})
    label = np.zeros(n, np.int32)
    label[0] = mark
    return Graph(n, np.array(edges, np.int32), node_label=label)


def planted(n: int, seed: int) -> Table:
    """Half of the graphs have their value in their labels, half in pairs of labels three bonds apart."""
    rng, values, y = np.random.default_rng(seed), [], []
    for i in range(n):
        size = int(rng.integers(8, 13))
        graph = chain(size, 0)
        label = rng.integers(0, 2, size).astype(np.int32)
        near, easy = np.abs(label[3:] - label[:-3]).sum(), i % 2 == 0
        label = label + 2 * easy
        values.append(Graph(size, graph.edges, node_label=label.astype(np.int32)))
        y.append(float(label.sum() - 2 * size if easy else near))
    column = np.empty(n, dtype=object)
    column[:] = values
    ids, ok, no = np.arange(n).astype(str).astype(object), np.full(n, OK, dtype=object), np.full(n, "", dtype=object)
    return Table(ids, (Entities("graph", "graph", column),), ok, no, (Target("y"),), np.array(y)[:, None])


@pytest.mark.system("monotonic-attention", rung="works")
def test_easy_graphs_stop_early(off: str, effect: Effect) -> None:
    train, test = planted(600, 0), planted(200, 1)
    depths, errors = [], {"halting": [], "all layers": []}
    for seed in range(2):
        options = {"epochs": 40, "seed": seed, "d_hidden": 32, "depth": 4}
        cost = "halting(cost=0)" if off else "halting(cost=0.02)"
        for name, more in (("halting", {"exit": cost}), ("all layers", {})):
            method = make_method("gin", **options, **more).fit(train)
            error = np.sqrt(np.square(method.predict(test).value[:, 0] - test.y[:, 0]).mean())
            errors[name].append(float(error))
            if name == "halting":
                own = method.ready().network.encoder.eval()
                spec = GraphFeaturiser().featurise(list(train.entities[0].values)).spec
                store = GraphFeaturiser().featurise(list(test.entities[0].values), spec=spec)
                with torch.no_grad():
                    cost_read = own(collate(store, np.arange(200))).penalties["depth"]
                depths.append(float(cost_read) / own.options[0].cost / 4 if not off else 1.0)
    beside = {f"RMSE, {name}": values for name, values in errors.items()}
    effect("share of the layers that are read", depths, at_most=0.7, beside=beside)
    assert np.mean(errors["halting"]) <= 1.03 * np.mean(errors["all layers"])
