"""Waves along trees and acyclic graphs against plain recursion, row by row."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.models.dag import DAG
from molgraph.nn import relations
from molgraph.nn.relation import Relation
from molgraph.nn.sweep import sweep, waves_of


def random_trees(seed: int, n: int) -> Relation:
    """Children to parents, of several trees whose rows are mixed."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(n)
    pairs = [(k, rng.integers(k)) for k in range(1, n) if rng.random() < 0.85]
    child, parent = (torch.tensor([int(number[p[i]]) for p in pairs], dtype=torch.long) for i in (0, 1))
    return Relation.from_pairs(child, parent, n, n)


def one_by_one(x: Tensor, relation: Relation, edges: Tensor, update: nn.Module) -> Tensor:
    """Each row by recursion, from a dense list of its senders."""
    senders: list[list[tuple[int, int]]] = [[] for _ in range(len(x))]
    for k, (s, t) in enumerate(zip(relation.source.tolist(), relation.target.tolist(), strict=True)):
        senders[t].append((s, k))
    done: dict[int, Tensor] = {}

    def state(row: int) -> Tensor:
        if row not in done:
            heard = sum((state(s) * edges[k] for s, k in senders[row]), torch.zeros(3, dtype=x.dtype))
            done[row] = update(heard[None], x[row][None])[0]
        return done[row]

    return torch.stack([state(row) for row in range(len(x))])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), down=st.booleans())
def test_messages_up_and_down_random_trees_are_those_of_a_recursion(seed: int, n: int, down: bool) -> None:
    torch.manual_seed(seed)
    relation = random_trees(seed, n)
    relation = relation.transpose if down else relation
    x = torch.randn(n, 2, dtype=torch.float64, requires_grad=True)
    edges = torch.randn(relation.n_pairs, 3, dtype=torch.float64, requires_grad=True)
    cell = nn.GRUCell(3, 2).double()
    lift = nn.Linear(2, 3).double()

    def update(inputs: Tensor, heard: Tensor) -> Tensor:
        return lift(cell(heard, inputs))

    found = sweep(
        x, waves_of(relation), d_state=3, edge_rows=edges, message=lambda h, x, e: h * e, update=update
    )  # fmt: skip
    expected = one_by_one(x, relation, edges, lambda heard, inputs: update(inputs, heard))
    torch.testing.assert_close(found, expected)
    weights = [x, edges, *cell.parameters()]
    mine = torch.autograd.grad(found.sin().sum(), weights, allow_unused=True, materialize_grads=True)
    theirs = torch.autograd.grad(expected.sin().sum(), weights, allow_unused=True, materialize_grads=True)
    torch.testing.assert_close(mine, theirs)


def test_each_row_comes_after_those_it_hears_from() -> None:
    relation = random_trees(7, 60)
    waves = waves_of(relation).waves
    assert sorted(torch.cat([wave.rows for wave in waves]).tolist()) == list(range(60))
    when = {row: k for k, wave in enumerate(waves) for row in wave.rows.tolist()}
    pairs = list(zip(relation.source.tolist(), relation.target.tolist(), strict=True))
    assert pairs and all(when[s] < when[t] for s, t in pairs)


@pytest.mark.parametrize(("pairs", "words"), [([(0, 1), (1, 0)], "cycle"), ([(2, 2)], "row 2")])
def test_a_cycle_is_an_error(pairs: list[tuple[int, int]], words: str) -> None:
    source, target = torch.tensor(pairs).T
    with pytest.raises(ValueError, match=words):
        waves_of(Relation.from_pairs(source, target, 3, 3))


SMILES = ["CCO", "C1CC1C", "c1ccc2ccccc2c1", "[Na+].[Cl-]", "C", "CC(C)(C)C1CCCCC1"]


@pytest.mark.parametrize("reach", [1, 3, 20])
def test_the_dag_network_is_its_equations(reach: int) -> None:
    """``G_vk = M_G(x_v, sum of parents' G_pk, sum of their bonds)``, and the sum over the roots, atom by atom."""
    torch.manual_seed(0)
    store = featurize(SMILES)
    batch = collate(store, np.arange(len(SMILES)))
    model = DAG(store.spec, d_state=4, d_hidden=5, reach=reach)
    atoms, bonds = batch.features("atom"), batch.features("bond")
    edges = list(zip(batch.source.tolist(), batch.target.tolist(), strict=True))

    def states(root: int) -> Tensor:
        far, near = {root: 0}, [root]
        for v in near:
            if far[v] == reach:
                break
            near += [u for u, w in edges if w == v and u not in far]
            far |= {u: far[v] + 1 for u, w in edges if w == v and u not in far}
        done: dict[int, Tensor] = {}
        for v in sorted(far, key=far.__getitem__, reverse=True):
            parents = [(u, k) for k, (u, w) in enumerate(edges) if w == v and far.get(u) == far[v] + 1]
            heard = sum((torch.cat([done[u], bonds[k]]) for u, k in parents), torch.zeros(4 + bonds.shape[1]))
            done[v] = model.network(torch.cat([atoms[v], heard])[None])[0].tanh()
        sizes.append(len(far))
        return done[root]

    sizes: list[int] = []
    roots = torch.stack([states(root) for root in range(batch.n_atoms)])
    expected = torch.zeros(len(SMILES), 4).index_add(0, batch.graph_of("atom"), roots)
    torch.testing.assert_close(model.states(batch), roots)
    torch.testing.assert_close(model(batch).graphs, expected)
    assert len(relations.dags(batch, reach).atom) < sum(sizes) / 3, "rows that look alike are computed once"
