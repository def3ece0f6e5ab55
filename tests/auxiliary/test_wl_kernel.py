"""The Weisfeiler-Leman kernel against a loop over dictionaries, and its machine against scikit-learn's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from molgraph.auxiliary.wl_kernel import WLKernel, color_counts
from molgraph.base.errors import UnsupportedError
from molgraph.base.table import Entities, Table, Target
from molgraph.data.featurize_graph import GraphFeaturiser
from molgraph.data.graph_values import Graph
from molgraph.data.table import make_table


def random_graphs(n: int, seed: int = 0, labels: bool = True) -> list[Graph]:
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        size = int(rng.integers(1, 9))
        links = np.triu(rng.random((size, size)) < (0.2, 0.6)[i % 2], 1)
        label = rng.integers(0, 2, size).astype(np.int32) if labels else None
        features = rng.normal(size=(size, 2)).astype(np.float32) if labels else None
        edges = np.argwhere(links | links.T).astype(np.int32)
        out.append(Graph(size, edges, node_label=label, node_features=features))
    return out


def subtrees(graph: Graph, rounds: int) -> Counter:
    """How often each compressed label comes, in words: Shervashidze et al. 2011, algorithm 1."""
    near = {v: [int(b) for a, b in graph.edges if a == v] for v in range(graph.n_nodes)}
    label = {v: str(len(near[v]) if graph.node_label is None else graph.node_label[v]) for v in near}
    found = Counter(f"0:{each}" for each in label.values())
    for t in range(1, rounds + 1):
        label = {v: f"({label[v]}|{','.join(sorted(label[u] for u in near[v]))})" for v in near}
        found += Counter(f"{t}:{each}" for each in label.values())
    return found


@pytest.mark.parametrize("labels", [True, False])
def test_the_kernel_is_a_loops(labels: bool) -> None:
    graphs = random_graphs(12, labels=labels)
    store = GraphFeaturiser().featurise(graphs)
    keys, counts = color_counts(store, np.arange(12), store.spec, 3)
    assert (np.diff(keys.astype(object)) > 0).all()
    known = [subtrees(graph, 3) for graph in graphs]
    kernel = [[sum(a[key] * b[key] for key in a) for b in known] for a in known]
    np.testing.assert_array_equal((counts @ counts.T).toarray(), kernel)


def test_the_machine_is_scikit_learns_and_new_colours_count_in_the_length() -> None:
    graphs = random_graphs(60, seed=1)
    learned, new = table_of(graphs[:40]), table_of(graphs[40:])
    method = WLKernel(rounds=2, cost=2.0).fit(learned)
    again = WLKernel.from_state(method.state()).predict(new)
    known = [subtrees(graph, 2) for graph in graphs]
    kernel = np.array([[sum(a[key] * b[key] for key in a) for b in known] for a in known], dtype=float)
    kernel /= np.sqrt(np.outer(kernel.diagonal(), kernel.diagonal()))
    machine = SVC(kernel="precomputed", C=2.0).fit(kernel[:40, :40], np.arange(40) % 2)
    p = again.value.ravel()
    order = np.argsort(machine.decision_function(kernel[40:, :40]))
    assert (np.diff(p[order]) >= -1e-9).all() and np.ptp(p) > 0.1, "probabilities rise with the decision"
    assert p.tobytes() == method.predict(new).value.tobytes()


def test_two_columns_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="2 columns"):
        WLKernel().fit(replace(table_of(random_graphs(4)), entities=table_of(random_graphs(4)).entities * 2))


def table_of(graphs: list[Graph]) -> Table:
    values = np.empty(len(graphs), dtype=object)
    values[:] = graphs
    blank = make_table(["C"] * len(graphs), targets=(Target("y", "binary"),), y=np.arange(len(graphs)) % 2)
    return replace(blank, entities=(Entities("graph", "graph", values),))
