"""The Jensen-Shannon bound: its limits and its memory; the double loop stands in tests/systems."""

from __future__ import annotations

import math

import pytest
import torch

from molgraph.base.errors import UsageError
from molgraph.nn.mutual_information import jsd_local_global
from tests.nn.largest import Largest

GRAPH_OF = torch.tensor([0, 0, 0, 1, 3, 3, 3, 3, 3])  # the third graph has no rows


def test_no_score_gives_two_logarithms_of_two() -> None:
    found = jsd_local_global(torch.zeros(9, 5), torch.randn(4, 5), GRAPH_OF)
    assert found.tolist() == pytest.approx([2 * math.log(2), 2 * math.log(2), 0, 2 * math.log(2)], abs=1e-6)


def test_one_graph_has_no_negatives() -> None:
    with pytest.raises(UsageError, match="has 1"):
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
