"""Each relation against the plain definition, graph by graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from molgraph.data.batch import BatchLevel, GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.featurize_geometry import Geometries
from molgraph.data.graph_values import Geometry, Graph
from molgraph.nn import near_pairs, relations
from molgraph.nn.relation import Relation, _sorted_pairs
from molgraph.train.inputs import featuriser_of

Maker = Callable[..., GraphBatch]


def pairs(relation: Relation) -> set[tuple[int, int]]:
    found = list(zip(relation.source.tolist(), relation.target.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert torch.equal(relation.transpose.transpose.source, relation.source)
    assert sorted(found) == sorted(
        zip(relation.transpose.target.tolist(), relation.transpose.source.tolist(), strict=True)
    )
    return set(found)


def counts(relation: Relation, batch: GraphBatch) -> torch.Tensor:
    return torch.bincount(batch.graph_of("atom")[relation.target], minlength=batch.n_graphs)


@pytest.mark.parametrize("seed", range(5))
def test_relations_of_atoms_and_bonds(random_batch: Maker, seed: int) -> None:
    batch = random_batch(seed)
    source, target, reverse = (t.tolist() for t in (batch.source, batch.target, batch.reverse))
    n, e, graph = batch.n_atoms, batch.n_bonds, batch.graph_of("atom").tolist()
    edges = list(zip(source, target, strict=True))
    assert pairs(relations.bonds(batch)) == set(edges)
    assert relations.bonds(batch).source.tolist() == source  # bond k of the batch is pair k
    assert pairs(relations.arriving(batch)) == {(b, target[b]) for b in range(e)}
    turns = {(a, b) for a in range(e) for b in range(e) if target[a] == source[b] and a != reverse[b]}
    arrive = np.cumsum([0, *np.bincount(target, minlength=n)])
    before, spans = relations.bonds_before(np.array(source, np.int64), np.array(reverse, np.int64), arrive)
    assert list(zip(before.tolist(), np.repeat(np.arange(e), np.diff(spans)).tolist(), strict=True)) == sorted(
        turns, key=lambda pair: (pair[1], pair[0])
    )
    assert pairs(relations.members(batch)) == {(v, graph[v]) for v in range(n)}
    assert pairs(relations.all_pairs(batch)) == {(v, w) for v in range(n) for w in range(n) if graph[v] == graph[w]}
    near = {(v, v) for v in range(n)}
    for length in (1, 2, 3):
        near |= {(v, edges[k][1]) for v, w in near for k in range(e) if edges[k][0] == w}
        assert pairs(relations.hops(batch, length)) == {(v, w) for v, w in near if v != w}
        for enough in (4, 16, 64):
            most = relations.most_hops(batch, length, enough)
            assert most.max() > enough or (most >= counts(relations.hops(batch, length), batch)).all()
    angles = {(a, b) for a in range(e) for b in range(e) if target[a] == source[b] and source[a] != target[b]}
    assert pairs(relations.triplets(relations.bonds(batch))) == angles


def test_pairs_are_counted_before_they_are_formed() -> None:
    """A star, whose leaves are all two bonds apart, and a path, whose atoms hear a few each; both exactly."""
    star = collate(featurize(["[Au]" + "(C)" * 300]), np.arange(1))
    assert relations.most_hops(star, 1, enough=10).tolist() == [600]
    assert relations.most_hops(star, 2, enough=1000).tolist() == [301 * 300]
    assert relations.most_hops(star, 3, enough=10**6).tolist() == [301 * 300]
    path = collate(featurize(["C" * 1000, "C"]), np.arange(2))
    assert relations.most_hops(path, 2, enough=10_000).tolist() == [2 * 999 + 2 * 998, 0]
    assert relations.most_hops(path, 9, enough=10_000).tolist()[0] > 10_000  # the count ended there


def test_pairs_of_a_directed_path_are_counted_too() -> None:
    n = 400
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    store = featuriser_of("gin", "graph").featurise([Graph(n, edges)])
    batch = collate(store, np.arange(1))
    assert relations.most_hops(batch, 5, enough=10).item() >= 10
    known = relations.hops(batch, 5).n_pairs
    assert relations.most_hops(batch, 5, enough=known - 1).item() >= known


def test_radius_is_every_near_pair_of_one_graph() -> None:
    batch = collate(featurize(["CCO", "c1ccccc1", "C"]), np.arange(3))
    at = torch.randn(batch.n_atoms, 3, generator=torch.Generator().manual_seed(0))
    batch = batch.with_level("atom", position=at)
    graph = batch.graph_of("atom")
    near = (torch.cdist(at, at) < 1.5) & (graph[:, None] == graph) & ~torch.eye(len(at), dtype=torch.bool)
    assert pairs(relations.radius(batch, 1.5)) == {(int(a), int(b)) for a, b in near.nonzero()}
    assert relations.radius(batch, 1.5) is relations.radius(batch, 1.5)


def test_a_tree_finds_the_pairs_of_all_distances_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    large = rng.uniform(size=(2000, 3)) * 26  # the density of matter
    large[5:8] = large[4] + [0, 0.01, 0], large[4] + [0, 0, 0.01], large[4] + [0, 0, 5]  # close, and at the cutoff
    shapes = [large, rng.normal(size=(1, 3)), rng.normal(size=(150, 3)) * 9, np.arange(9.0).reshape(3, 3) * 1e3]
    values = [Geometry(np.full(len(at), 6), at.astype(np.float32)) for at in shapes]
    batch, made = collate(Geometries().featurise(values), np.arange(4)), list[Relation]()
    for rows in (1, 10**9):
        monkeypatch.setattr(near_pairs, "MANY", rows)
        made.append(relations.radius.__wrapped__(batch, 5.0))  # type: ignore[attr-defined]
    tree, every = made
    assert tree.source.equal(every.source) and tree.offsets.equal(every.offsets) and tree.n_pairs > 50_000
    by_source, offsets = _sorted_pairs(tree.source, tree.target, tree.n_source)
    assert tree.transpose.source.equal(by_source) and tree.transpose.offsets.equal(offsets)


def test_triplets_by_opposites_are_those_found_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    at = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    batch = collate(Geometries().featurise([Geometry(np.full(40, 6), at.numpy())]), np.arange(1))
    near = relations.radius(batch, 1.5)
    quick = relations.triplets(near)
    assert quick.n_pairs > 500
    source, target = near.source, near.target
    assert [(int(a), int(b)) for a, b in zip(quick.source, quick.target, strict=True)] == [
        (a, b)
        for b in range(near.n_pairs)
        for a in range(near.n_pairs)
        if target[a] == source[b] and source[a] != target[b]
    ]
    monkeypatch.setattr(relations, "opposite_pairs", lambda *_: None)
    slow = relations.triplets(near)
    assert slow.source.equal(quick.source) and slow.offsets.equal(quick.offsets)
    one_way = Relation.from_pairs(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 2]), 3, 3)
    monkeypatch.undo()
    assert pairs(relations.triplets(one_way)) == {(0, 2), (1, 2)}


def test_relations_made_in_inference_train_later(random_batch: Maker) -> None:
    batch = random_batch(0)
    with torch.inference_mode():
        relations.bonds(batch).target  # noqa: B018
    x = torch.randn(batch.n_atoms, 2, requires_grad=True)
    from molgraph.nn.propagate import propagate

    propagate(x, relations.bonds(batch), message=lambda s, t, e: s).sum().backward()
    assert x.grad is not None


def test_levels_of_no_rows() -> None:
    none = BatchLevel(torch.zeros(3, dtype=torch.long), {"code": torch.zeros(0, dtype=torch.long)}, torch.zeros(0, 2))
    batch = GraphBatch(2, {"token": none})
    assert relations.members(batch, "token").n_pairs == 0 == relations.all_pairs(batch, "token").n_pairs
