"""Attention against dense matrices with a mask, and over all rows of a graph against all its pairs."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from molgraph.nn.attention import attend, attend_all
from molgraph.nn.relation import Relation
from molgraph.nn.size_groups import SizeGroups
from tests.nn.test_propagate import relations, rows_of, without_doubles


@given(relations())
@settings(max_examples=30, deadline=None)
def test_attention_is_dense_attention_with_a_mask(relation: Relation) -> None:
    relation = without_doubles(relation)
    q, k, v = (
        rows_of(n, 6, seed).view(n, 2, 3) for seed, n in enumerate((relation.n_target, *[relation.n_source] * 2))
    )
    bias = rows_of(relation.n_pairs, 2, seed=5)
    scores = torch.einsum("thd,shd->hts", q, k) / 3**0.5
    full = torch.full_like(scores, -torch.inf)
    full[:, relation.target, relation.source] = scores[:, relation.target, relation.source] + bias.T
    expected = torch.einsum("hts,shd->thd", full.softmax(-1).nan_to_num(), v)
    torch.testing.assert_close(attend(q, k, v, relation, bias), expected)


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_attention_over_all_rows_is_that_along_all_pairs(sizes: list[int], heads: int) -> None:
    """Graphs of every size, graphs without rows and none at all; values and gradients."""
    offsets = torch.tensor([0, *np.cumsum(sizes)], dtype=torch.long)
    graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes, dtype=torch.long))
    target, source = (graph.unsqueeze(1) == graph).nonzero().unbind(1)
    known = Relation.from_pairs(source, target, len(graph), len(graph))
    rows = [rows_of(len(graph), 4 * heads, seed).view(-1, heads, 4).requires_grad_() for seed in range(3)]
    given_, expected = attend_all(*rows, SizeGroups.of(offsets)), attend(*rows, known)
    torch.testing.assert_close(given_, expected)
    mine, theirs = (torch.autograd.grad(out.sin().sum(), rows, materialize_grads=True) for out in (given_, expected))
    torch.testing.assert_close(mine, theirs)
