"""Effects of block options: symbols say enough, a steady-state penalty holds, easy graphs stop early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from molgraph.base.table import OK, Entities, Table, Target
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.featurize_graph import GraphFeaturiser
from molgraph.data.graph_values import Graph
from molgraph.data.read import read_table
from molgraph.train.make_method import make_method
from tests.systems.effect import Effect


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
            method = make_method("gin", epochs=15, seed=seed, d_hidden=32, depth=3, **options)
            if off and name == "symbols":
                method = make_method("gin", epochs=1, learning_rate=1e-9, seed=seed, d_hidden=32, depth=3, **options)
            aucs[name].append(roc_auc_score(test.y[:, 0], method.fit(train).predict(test).value[:, 0]))
        losses.append(aucs["states"][-1] - aucs["symbols"][-1])
    effect("ROC AUC of states less that of 16 symbols", losses, at_most=0.03, beside=aucs)


@pytest.mark.system("tisode", rung="works")
def test_the_penalty_keeps_what_comes_after_near_what_is_read(off: str, effect: Effect) -> None:
    table = labelled()
    train, test = table.take(np.arange(400)), table.take(np.arange(400, 600))
    moves: dict[float, list[float]] = {0.0: [], 30.0: []}
    aucs: dict[float, list[float]] = {0.0: [], 30.0: []}
    for seed in range(1):
        for weight in moves:
            used = 0.0 if off else weight
            method = make_method(
                "gin", epochs=8, seed=seed, d_hidden=32, depth=3, norm="none", stack=f"ode(time=1, weight={used})"
            )
            aucs[weight].append(roc_auc_score(test.y[:, 0], method.fit(train).predict(test).value[:, 0]))
            moves[weight].append(moved(method.ready().network.encoder, test))
    ratio = [a / b for a, b in zip(moves[30.0], moves[0.0], strict=True)]
    beside = {"AUC with": aucs[30.0], "AUC without": aucs[0.0]}
    effect("|h(2T) - h(T)| / without the penalty", ratio, at_most=0.5, beside=beside)
    assert np.mean(aucs[30.0]) > 0.98 * np.mean(aucs[0.0])


def moved(own: Any, table: Table) -> float:
    """How far states move from T to 2 T, in units of their size."""
    batch, option, ends = collate(featurize(list(table.entities[0].values)), np.arange(len(table))), own.options[0], []
    run = option.run

    def twice(stack: Any, h: Tensor, skips: Any = ()) -> list[Tensor]:
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


@pytest.mark.system("monotonic-attention", rung="works", null="0.43 of the layers, at an error of 0.95 beside 0.30")
def test_easy_graphs_stop_early(off: str, effect: Effect) -> None:
    train, test = planted(500, 0), planted(200, 1)
    depths, errors = [], {"halting": [], "all layers": []}
    for seed in range(1):
        options = {"epochs": 30, "seed": seed, "d_hidden": 32, "depth": 4}
        cost = "halting(cost=0)" if off else "halting(cost=0.002)"
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
