"""StructPool against PyG's DiffPool, loops by hand, and the equations of the paper and of the authors' code."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import dense_diff_pool

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.graph_store import InputSpec
from molgraph.models.structpool import StructPoolNet
from molgraph.nn.relation import Relation
from molgraph.nn.row_graph import RowGraph
from molgraph.nn.structpool import StructPool
from tests.models.shift import shift, shifted
from tests.nn.test_structpool import graph_of

SPEC = InputSpec("random", {"atom": 5, "bond": 4})


def dense(graph: RowGraph, i: int) -> tuple[slice, Tensor]:
    """The rows of a graph and its adjacency matrix."""
    rows = slice(*graph.members.offsets[i : i + 2].tolist())
    assert isinstance(graph.adjacency, Relation)
    a = torch.zeros(len(graph.h), len(graph.h), dtype=torch.float64)
    a[graph.adjacency.target, graph.adjacency.source] = 1
    return rows, a[rows, rows]


@pytest.mark.system("structpool", rung="exact")
def test_without_steps_it_is_diffpool(off: str, random_batch: Callable[..., GraphBatch]) -> None:
    graph = graph_of(random_batch(3))
    u = torch.randn(len(graph.h), 4, dtype=torch.float64)
    pooled = StructPool(6, 4, n_iter=int(bool(off))).double()(graph, u)
    for i in range(6):
        rows, a = dense(graph, i)
        x, adjacency, *_ = dense_diff_pool(graph.h[rows].unsqueeze(0), a, u[rows].unsqueeze(0))
        torch.testing.assert_close(pooled.h.view(6, 4, 6)[i], x[0], rtol=0, atol=1e-6)
        torch.testing.assert_close(pooled.adjacency[i], adjacency[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("l_hop", [None, 1, 2])
@pytest.mark.system("structpool", rung="exact")
def test_one_step_is_a_loop_over_four_rows(l_hop: int | None, off: str) -> None:
    batch = collate(featurize(["CCCO"]), np.arange(1))
    graph, u = graph_of(batch, near=l_hop), torch.randn(4, 3, dtype=torch.float64)
    pool = StructPool(6, 3, n_iter=1).double()
    with torch.no_grad():
        pool.compat.copy_(torch.randn(3, 3))
    x, q, distance = graph.h.clamp(min=0), u.softmax(1), (torch.arange(4)[:, None] - torch.arange(4)).abs()
    known = torch.zeros(4, 3, dtype=torch.float64)
    for i in range(4):
        others = [j for j in range(4) if j != i and (l_hop is None or distance[i, j] <= l_hop)]
        total = sum(x[i] @ x[m] for m in range(4) if m != i)  # over all, whoever is heard
        heard = sum(x[i] @ x[j] / total * q[j] for j in others)
        for c in range(3):
            known[i, c] = u[i, c] - sum(heard[b] * pool.compat[b, c] for b in range(3))
    pool.n_iter = int(not off)
    torch.testing.assert_close(pool(graph, u).assignment, known.softmax(1), rtol=0, atol=1e-6)


@pytest.mark.system("structpool", rung="exact")
def test_the_released_form_is_the_authors_equations(off: str, random_batch: Callable[..., GraphBatch]) -> None:
    """Softmax; signed products without the diagonal, divided by their row sums; times the filter and -I; five times."""
    batch = random_batch(5)
    graph, u = graph_of(batch), torch.randn(batch.n_atoms, 4, dtype=torch.float64)
    pooled = StructPool(6, 4, released=not off).double()(graph, u)
    compared = 0
    for i in range(6):
        rows, a = dense(graph, i)
        x, logits = graph.h[rows].numpy(), u[rows].numpy()
        if len(x) < 2:
            continue
        q = logits
        for _ in range(5):
            w = x @ x.T * (1 - np.eye(len(x)))
            heard = w @ (np.exp(q) / np.exp(q).sum(1, keepdims=True)) / w.sum(1, keepdims=True)
            q = logits - heard @ np.eye(4) @ -np.eye(4)
        m = np.exp(q) / np.exp(q).sum(1, keepdims=True)
        torch.testing.assert_close(pooled.h.view(6, 4, 6)[i], torch.from_numpy(m.T @ x), rtol=0, atol=1e-5)
        torch.testing.assert_close(pooled.adjacency[i], torch.from_numpy(m.T @ a.numpy() @ m), rtol=0, atol=1e-5)
        compared += 1
    assert compared > 2


def graphs(batch: GraphBatch) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Each graph's rows, adjacency and sums of bonds' features."""
    n, atoms, bonds = batch.n_atoms, batch.features("atom").double(), batch.features("bond").double()
    a = torch.zeros(n, n, dtype=torch.float64).index_put_((batch.target, batch.source), torch.ones(()).double())
    sums = torch.zeros(n, bonds.shape[1], dtype=torch.float64).index_add(0, batch.target, bonds)
    spans = batch["atom"].offsets.tolist()
    rows = [slice(*ends) for ends in pairwise(spans)]
    return [(atoms[r], a[r, r], sums[r]) for r in rows]


def spread_logits(pool: nn.Module) -> None:
    """Larger weights, so that the rows of a graph prefer different clusters."""
    for weight in pool.unary.parameters():
        nn.init.normal_(weight)


def within(a: Tensor, hops: int) -> Tensor:
    """1 for pairs of different nodes that are up to so many edges apart."""
    reached = torch.linalg.matrix_power(a + torch.eye(len(a), dtype=a.dtype), hops) > 0
    return reached.double() * (1 - torch.eye(len(a), dtype=a.dtype))


def mean_field(x: Tensor, u: Tensor, pairs: Tensor, compat: Tensor, steps: int) -> Tensor:
    w = (x @ x.T) * (1 - torch.eye(len(x)).double())
    w = (w / w.sum(1, keepdim=True)).nan_to_num(0.0) * pairs  # of all others; those that are heard
    q = u.softmax(1)
    for _ in range(steps):
        q = (u - w @ q @ compat).softmax(1)
    return q


def summed(conv: Any, h: Tensor, a: Tensor, soft: bool) -> Tensor:
    """``X W + b + A X W'``; of pooled graphs a mean over the neighbours."""
    heard = a @ h / (a.sum(1, keepdim=True).clamp(min=1) if soft else 1)
    return h @ conv.own.weight.T + conv.own.bias + heard @ conv.heard.weight.T


def averaged(conv: Any, h: Tensor, a: Tensor) -> Tensor:
    """``tanh(D^-1 ((A + I) X W + b))``, D the degrees with the row itself."""
    both = a + torch.eye(len(a), dtype=a.dtype)
    return ((both @ h @ conv.linear.weight.T + conv.linear.bias) / both.sum(1, keepdim=True)).tanh()


@pytest.mark.parametrize("assign", ["soft", "hard"])
@pytest.mark.parametrize("l_hop", [None, 1, 2])
@pytest.mark.system("structpool", rung="exact")
def test_structpool_is_its_equations(
    assign: str, l_hop: int | None, off: str, random_batch: Callable[..., GraphBatch]
) -> None:
    """Bonds beside atoms, pairs within ``l_hop`` at the first level alone, half as many clusters at each level."""
    batch = random_batch(3)
    torch.manual_seed(0)
    net = StructPoolNet(SPEC, d_hidden=6, depth=2, k=5, levels=3, n_iter=2, l_hop=l_hop, assign=assign)
    net = shifted(net)
    for pool in net.pools:
        nn.init.normal_(pool.compat, std=5.0)  # so that the field decides between clusters
        spread_logits(pool)
        pool.n_iter = 0 if off else 2
    assert [pool.k for pool in net.pools] == [5, 2, 1]
    found, net = net(batch).graphs.double(), net.double()
    for i, (atoms, a, bonds) in enumerate(graphs(batch)):
        h, read = torch.cat([atoms, bonds], dim=1), []
        for conv in net.convs:
            h = shift(summed(conv, h, a, soft=False)).relu()
        for level, (pool, after) in enumerate(zip(net.pools, net.after, strict=True)):
            pairs = 1 - torch.eye(len(h)).double() if level or l_hop is None else within(a, l_hop)
            q = mean_field(h.relu(), shift(summed(pool.unary[0], h, a, soft=level > 0)), pairs, pool.compat, 2)
            m = q if assign == "soft" else F.one_hot(q.argmax(1), pool.k).double()
            h, a = m.T @ h, m.T @ a @ m
            a = a if assign == "soft" else (a > 0).double()
            h = shift(summed(after, h, a, soft=True)).relu()
            read.append(h.sum(0))
        torch.testing.assert_close(found[i], torch.cat(read), rtol=1e-4, atol=1e-4)


@pytest.mark.system("structpool", rung="exact")
def test_the_released_network_is_the_authors_equations(off: str, random_batch: Callable[..., GraphBatch]) -> None:
    """Three mean convolutions, three more for the unary, signed weights, fixed compatibility, DGCNN's head."""
    batch = random_batch(5)
    torch.manual_seed(0)
    net = StructPoolNet(SPEC, k=11, n_iter=0 if off else 3, released=True)
    (pool,), (head,) = net.pools, net.readouts
    spread_logits(pool)
    assert [conv.linear.out_features for conv in (*net.convs, *pool.unary)] == [32, 48, 64, 48, 48, 11]
    row = nn.Conv1d(1, 16, 64, 64)
    row.weight.data, row.bias.data = head.each.weight.data.unsqueeze(1), head.each.bias.data
    dgcnn = nn.Sequential(row, nn.ReLU(), nn.MaxPool1d(2, 2), head.convolve, nn.ReLU(), nn.Flatten())
    found, net, dgcnn = net(batch).graphs.double(), net.double(), dgcnn.double()
    for i, (h, a, _) in enumerate(graphs(batch)):
        if len(h) < 2:
            continue  # the authors' code divides by 0
        for conv in net.convs:
            h = averaged(conv, h, a)
        u = h
        for conv in pool.unary:
            u = averaged(conv, u, a)
        q = mean_field(h, u, 1 - torch.eye(len(h)).double(), -torch.eye(11).double(), 3)
        torch.testing.assert_close(found[i : i + 1], dgcnn((q.T @ h).view(1, 1, -1)), rtol=1e-4, atol=1e-4)
