"""StructPool's network and its rivals: every form trains, atom order changes nothing, clusters add up."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.nn import SAGPooling, TopKPooling, dense_diff_pool, dense_mincut_pool

from molgraph.base.errors import UnsupportedError
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.models.pyg_pool import PyGPool
from molgraph.models.structpool import StructPoolNet
from molgraph.nn import relations
from molgraph.nn.pooling import make_pool
from molgraph.nn.row_graph import RowGraph
from molgraph.nn.size_groups import size_groups
from molgraph.nn.structpool import StructPool
from tests.contract.test_encoders import renumbered

SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "C", "not one", "CC(C)(C)Cl", "OC(=O)c1ccncc1"]
STORE = featurize(SMILES)
FORMS = [
    {"assign": "hard"}, {"l_hop": 2}, {"levels": 2, "norm": "layer"}, {"released": True}, {"n_iter": 0},
    {"compat": "fixed", "readout": "mean"},
]  # fmt: skip


def batch_of() -> GraphBatch:
    return collate(STORE, np.arange(len(SMILES)))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_learns_and_reads_no_order(form: dict[str, Any]) -> None:
    torch.manual_seed(0)
    encoder, batch = StructPoolNet(STORE.spec, **form), batch_of()
    encoder(batch).graphs.sin().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())
    with torch.no_grad():
        plain = encoder.eval()(batch).graphs
        moved, _ = renumbered(batch, 1)
        torch.testing.assert_close(encoder(moved).graphs, plain, rtol=0, atol=1e-5)
    assert plain.isfinite().all() and plain.shape == (len(SMILES), encoder.d_out)


@pytest.mark.parametrize("made", [StructPoolNet(STORE.spec), PyGPool(STORE.spec), PyGPool(STORE.spec, pool="mincut")])
def test_clusters_are_shares_of_each_atom(made: StructPoolNet | PyGPool) -> None:
    batch = batch_of()
    found = made.eval().clusters(batch)
    assert found.shape == (batch.n_atoms, 10) and (found >= 0).all()
    torch.testing.assert_close(found.sum(1), torch.ones(batch.n_atoms))


@pytest.mark.parametrize("name", ["diffpool", "mincut", "topk", "sagpool"])
def test_a_pooling_is_pygs(name: Any) -> None:
    """One graph at a time and unpadded, with the same weights."""
    torch.manual_seed(0)
    batch = batch_of()
    h = torch.randn(batch.n_atoms, 8)
    graph = RowGraph(h, relations.members(batch), relations.bonds(batch), size_groups(batch))
    pool, offsets = make_pool(name, 8, 3, 0.5).eval(), batch["atom"].offsets.tolist()
    pooled, edges, seen, total = pool(graph), torch.stack([batch.source, batch.target]), 0, []
    some = [i for i, size in enumerate(np.diff(offsets)) if size]
    for i in some:
        a, b = offsets[i : i + 2]
        own = edges[:, (edges[0] >= a) & (edges[0] < b)] - a
        mine = pooled.h[pooled.members.source[pooled.members.target == i]]
        if name in ("topk", "sagpool"):
            assert isinstance(pool.pool, TopKPooling | SAGPooling)
            known, kept, *_ = pool.pool(h[a:b], own)
            torch.testing.assert_close(mine, known)
            assert isinstance(pooled.adjacency, relations.Relation)
            first, own = int(pooled.members.offsets[i]), pooled.members.target[pooled.adjacency.target] == i
            pairs = torch.stack([pooled.adjacency.source[own], pooled.adjacency.target[own]]) - first
            assert sorted(pairs.T.tolist()) == sorted(kept.T.tolist())
            seen += kept.shape[1]
            continue
        dense = torch.zeros(b - a, b - a).index_put_((own[1], own[0]), torch.ones(own.shape[1]))
        dense_pool = dense_diff_pool if name == "diffpool" else dense_mincut_pool
        dense = dense + torch.eye(b - a) * (name == "mincut")
        known, adjacency, *losses = dense_pool(h[a:b], dense, pool.norm(pool.unary(h, graph))[a:b])
        total = [each + loss for each, loss in zip(total, losses, strict=True)] if total else losses
        torch.testing.assert_close(mine, known[0])
        torch.testing.assert_close(pooled.adjacency[i], adjacency[0])
    assert name in ("diffpool", "mincut") or seen > 4
    torch.testing.assert_close([*pooled.penalties.values()], [each / batch.n_graphs for each in total])


@pytest.mark.parametrize("name", ["diffpool", "mincut", "topk", "sagpool"])
def test_the_rivals_learn(name: Any) -> None:
    encoder = PyGPool(STORE.spec, pool=name, d_hidden=16, levels=2)
    encoded = encoder(batch_of())
    (encoded.graphs.sin().sum() + sum(encoded.penalties.values())).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())
    assert all(p.grad.abs().sum() > 0 for p in encoder.convs.parameters())  # through the poolings
    assert bool(encoded.penalties) == (name in ("diffpool", "mincut"))


ALIKE = [
    "C12C3C4C1C5C2C3C45",
    "c1ccccc1",
    "C1CCCCC1",
    "c1cc2ccc3cccc4ccc(c1)c2c34",
    "C" * 30,
    "C1" + "C" * 29 + "1",
    "CCO",
]


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("pool", ["topk", "sagpool"])
def test_atoms_that_look_alike_are_kept_by_their_order_alone(pool: Any, norm: str) -> None:
    """Their scores differ by rounding, which depends on the batch."""
    store = featurize([*ALIKE, *SMILES])
    torch.manual_seed(0)
    encoder = PyGPool(store.spec, pool=pool, norm=norm, levels=2)
    encoder(collate(store, np.arange(len(store))))  # statistics of training
    with torch.no_grad():
        together = encoder.eval()(collate(store, np.arange(len(store)))).graphs[: len(ALIKE)]
        alone = torch.cat([encoder(collate(store, np.array([i]))).graphs for i in range(len(ALIKE))])
        backwards = encoder(collate(store, np.arange(len(store))[::-1].copy())).graphs.flip(0)[: len(ALIKE)]
    torch.testing.assert_close(alone, together, rtol=0, atol=1e-4)
    torch.testing.assert_close(backwards, together, rtol=0, atol=1e-4)


def test_the_share_of_rows_that_stay_is_the_ratio() -> None:
    batch = batch_of()
    sizes = batch["atom"].offsets.diff()
    graph = RowGraph(
        torch.randn(batch.n_atoms, 8), relations.members(batch), relations.bonds(batch), size_groups(batch)
    )
    for name, ratio in product(("topk", "sagpool"), (0.5, 0.9, 1.0)):
        (pool,) = PyGPool(STORE.spec, pool=name, d_hidden=8, ratio=ratio).pools
        assert pool(graph).members.offsets.diff().tolist() == (ratio * sizes.double()).ceil().tolist()


@pytest.mark.parametrize("name", ["diffpool", "mincut"])
def test_penalties_of_a_batch_are_means_over_its_graphs(name: Any) -> None:
    """Graphs of one and of several size groups, which are pooled apart; two of one group differ in size."""
    store = featurize(["CCO", "CCCCCCCCO", "CCCCCCCCCCCCCC", "CCCCCCCCCCCCCCCCCC", "CCO"])
    torch.manual_seed(0)
    made = PyGPool(store.spec, pool=name, d_hidden=8).eval()
    n = len(store.status)
    alone = [made(collate(store, np.array([i]))).penalties for i in range(n)]
    together = made(collate(store, np.arange(n))).penalties
    for key, value in together.items():
        torch.testing.assert_close(value, torch.stack([each[key] for each in alone]).mean())


def test_further_poolings_have_half_the_clusters() -> None:
    for make in (StructPoolNet, PyGPool):
        assert [pool.k for pool in make(STORE.spec, d_hidden=8, k=9, levels=3).pools] == [9, 4, 2]


def test_hard_pooled_edges_pass_their_gradient_on() -> None:
    batch, logits = batch_of(), torch.randn(batch_of().n_atoms, 4, requires_grad=True)
    h = torch.randn(batch.n_atoms, 8)
    graph = RowGraph(h, relations.members(batch), relations.bonds(batch), size_groups(batch))
    pooled = StructPool(8, 4, n_iter=0, assign="hard", norm="none")(graph, logits).adjacency
    assert isinstance(pooled, torch.Tensor) and {*pooled.unique().tolist()} <= {0.0, 1.0}
    pooled.sum().backward()
    assert logits.grad is not None and logits.grad.abs().max() > 0, "though steps have none"


def test_steps_of_the_mean_field_count_in_the_released_form_too() -> None:
    found = []
    for n_iter in (0, 1):
        torch.manual_seed(0)
        found.append(StructPoolNet(STORE.spec, k=11, n_iter=n_iter, released=True).eval()(batch_of()).graphs)
    assert not torch.allclose(*found)


def test_what_cannot_be_is_refused() -> None:
    large = collate(featurize(["C" * 600]), np.arange(1))
    with pytest.raises(UnsupportedError, match=r"600 .*max_matrix_gb"):
        PyGPool(STORE.spec, max_matrix_gb=0.001)(large)
    assert PyGPool(STORE.spec, max_matrix_gb=0.002)(large).graphs.isfinite().all()
    with pytest.raises(UnsupportedError, match="clusters"):
        PyGPool(STORE.spec, pool="topk").clusters(batch_of())
    with pytest.raises(ValueError, match="got 4"):
        StructPoolNet(STORE.spec, k=4, released=True)
    with pytest.raises(ValueError, match="levels 2, readout"):
        StructPoolNet(STORE.spec, levels=2, readout="mean", released=True)
    for pool, option in (("topk", {"k": 4}), ("sagpool", {"max_matrix_gb": 1.0}), ("mincut", {"ratio": 0.3})):
        with pytest.raises(ValueError, match=f"{pool} .*{next(iter(option))}"):
            PyGPool(STORE.spec, pool=pool, **option)
