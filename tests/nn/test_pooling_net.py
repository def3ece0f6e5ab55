"""Networks with poolings against their equations, written out for one graph at a time with dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.models.structpool import StructPoolNet
from tests.models.shift import shift, shifted

SPEC = InputSpec("random", {"atom": 5, "bond": 4})


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
def test_structpool_is_its_equations(assign: str, l_hop: int | None, random_batch: Callable[..., GraphBatch]) -> None:
    """Bonds beside atoms, pairs within ``l_hop`` at the first level alone, half as many clusters at each level."""
    batch = random_batch(3)
    torch.manual_seed(0)
    net = StructPoolNet(SPEC, d_hidden=6, depth=2, k=5, levels=3, n_iter=2, l_hop=l_hop, assign=assign)
    net = shifted(net)
    for pool in net.pools:
        nn.init.normal_(pool.compat)
        spread_logits(pool)
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


def test_the_released_network_is_the_authors_equations(random_batch: Callable[..., GraphBatch]) -> None:
    """Three mean convolutions, three more for the unary, signed weights, fixed compatibility, DGCNN's head."""
    batch = random_batch(5)
    torch.manual_seed(0)
    net = StructPoolNet(SPEC, k=11, n_iter=3, released=True)
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
