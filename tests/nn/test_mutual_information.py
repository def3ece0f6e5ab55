"""The Jensen-Shannon bound against a double loop, in blocks and whole."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from molgraph.base.errors import UsageError
from molgraph.nn.mutual_information import JensenShannon, jsd_local_global
from tests.nn.largest import Largest

GRAPH_OF = torch.tensor([0, 0, 0, 1, 3, 3, 3, 3, 3])  # the third graph has no rows


def by_pairs(local: Tensor, global_: Tensor, graph_of: Tensor) -> Tensor:
    """The loss of each graph, pair by pair."""
    losses = []
    for i in range(len(global_)):
        rows = [u for u in range(len(local)) if graph_of[u] == i]
        total = torch.zeros((), dtype=local.dtype)
        for u in rows:
            for k in range(len(global_)):
                score = local[u] @ global_[k]
                share = 1 / (len(global_) - 1)
                total = total + (torch.log1p((-score).exp()) if k == i else share * torch.log1p(score.exp()))
        losses.append(total / max(len(rows), 1))
    return torch.stack(losses)


@pytest.mark.parametrize("block", [1, 9, 1 << 18])
def test_the_loss_and_its_gradients_are_those_of_a_double_loop(block: int) -> None:
    torch.manual_seed(0)
    local = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    global_ = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([1.0, 0.5, 2.0, 3.0], dtype=torch.float64)
    found, peer = jsd_local_global(local, global_, GRAPH_OF, block=block), by_pairs(local, global_, GRAPH_OF)
    torch.testing.assert_close(found, peer, atol=1e-6, rtol=0)
    of_found, of_peer = (torch.autograd.grad((loss * weights).sum(), [local, global_]) for loss in (found, peer))
    torch.testing.assert_close(of_found, of_peer, atol=1e-6, rtol=0)
    single = jsd_local_global(local.float(), global_.float(), GRAPH_OF, block=block)
    torch.testing.assert_close(single.double(), peer, atol=1e-6, rtol=0)


def test_no_score_gives_two_logarithms_of_two() -> None:
    found = jsd_local_global(torch.zeros(9, 5), torch.randn(4, 5), GRAPH_OF)
    assert found.tolist() == pytest.approx([2 * math.log(2), 2 * math.log(2), 0, 2 * math.log(2)], abs=1e-6)


def test_one_graph_has_no_negatives() -> None:
    with pytest.raises(UsageError, match=r"the batch has 1\n.*two graphs or more"):
        jsd_local_global(torch.zeros(3, 5), torch.zeros(1, 5), torch.zeros(3, dtype=torch.int64))


def test_memory_does_not_grow_as_rows_times_graphs() -> None:
    n, g, d = 4096, 512, 8
    made = Largest()
    local, global_ = torch.randn(n, d, requires_grad=True), torch.randn(g, d, requires_grad=True)
    with made:
        jsd_local_global(local, global_, torch.arange(n) % g).sum().backward()
    assert made.most <= 1 << 18 < n * g


def test_large_scores_stay_finite() -> None:
    local = torch.full((9, 1), 1e4, requires_grad=True)
    loss = jsd_local_global(local, torch.tensor([[1.0], [-1.0], [0.0], [1.0]]), GRAPH_OF).sum()
    loss.backward()
    assert math.isfinite(loss.item()) and bool(local.grad is not None and local.grad.isfinite().all())


def test_the_score_is_learned() -> None:
    """States that name their graph: the bound comes close to its best, 0."""
    torch.manual_seed(0)
    global_ = torch.eye(4)
    score = JensenShannon(4, 4, 16)
    optimizer = torch.optim.Adam(score.parameters(), lr=0.01)
    for _ in range(100):
        loss = score(global_[GRAPH_OF], global_, GRAPH_OF).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1 < 3 * 2 * math.log(2)


def test_the_score_is_three_layers_with_a_relu_each_beside_a_shortcut() -> None:
    """The authors' perceptron, written out."""
    torch.manual_seed(0)
    score, local, global_ = JensenShannon(5, 3, 4).double(), torch.randn(9, 5).double(), torch.randn(4, 3).double()
    vectors = []
    for half, x in ((score.phi, local), (score.psi, global_)):
        known = x
        for linear in half.layers.layers:
            known = (known @ linear.weight.T + linear.bias).relu()
        vectors.append(known + x @ half.shortcut.weight.T + half.shortcut.bias)
        assert len(half.layers.layers) == 3
    torch.testing.assert_close(score(local, global_, GRAPH_OF), by_pairs(*vectors, GRAPH_OF))
