"""StructPool: what learns, odd rows and memory; its equations stand in tests/systems."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.nn import relations
from molgraph.nn.relation import Relation
from molgraph.nn.row_graph import RowGraph
from molgraph.nn.size_groups import SizeGroups, size_groups
from molgraph.nn.structpool import StructPool, normaliser


def graph_of(batch: GraphBatch, d: int = 6, near: int | None = None, seed: int = 0) -> RowGraph:
    h = torch.randn(batch.n_atoms, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    pairs = None if near is None else relations.hops(batch, near)
    return RowGraph(h, relations.members(batch), relations.bonds(batch), size_groups(batch), pairs)


def test_hops_beyond_a_molecules_length_are_all_pairs() -> None:
    smiles = ["CCCO", "c1ccccc1C(=O)N", "C", "CC(C)(C)Cl"]
    batch, u = collate(featurize(smiles), np.arange(4)), torch.randn(19, 5, dtype=torch.float64)
    pool = StructPool(6, 5).double()
    near, every = pool(graph_of(batch, near=20), u), pool(graph_of(batch), u)
    torch.testing.assert_close(near.assignment, every.assignment)


@pytest.mark.parametrize("assign", ["soft", "hard"])
@pytest.mark.parametrize("released", [False, True])
def test_single_atoms_are_finite_and_everything_learns(assign: str, released: bool) -> None:
    batch = collate(featurize(["[Na+]", "C", "CCO", "not one", "c1ccccc1Cl"]), np.arange(5))
    pool = StructPool(6, 3, assign=assign, released=released).double()
    pooled = pool(graph_of(batch))
    (pooled.h.square().sum() + pooled.adjacency.sin().sum()).backward()
    assert pooled.h.isfinite().all() and pooled.adjacency.isfinite().all()
    for name, parameter in pool.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 1e-9 or "own.bias" in name, name  # which the norm takes off again
    if assign == "hard":
        assert set(pooled.assignment.detach().unique().tolist()) == {0.0, 1.0}
        assert set(pooled.adjacency.detach().unique().tolist()) == {0.0, 1.0}
    assert released or pool.compat.grad.abs().max() > 0


@pytest.mark.parametrize("released", [False, True])
def test_rows_that_are_like_no_other_hear_nothing(released: bool) -> None:
    """Normalisers of exactly 0: rows of zeros, rows at right angles, a row alone."""
    batch, u = collate(featurize(["CCO", "[Na+].[Cl-]", "C"]), np.arange(3)), torch.randn(6, 3, dtype=torch.float64)
    rows = torch.zeros(6, 6, dtype=torch.float64)
    rows[3, 0] = rows[4, 1] = rows[5, 2] = 1.0
    graph = replace(graph_of(batch), h=rows.requires_grad_())
    pooled = StructPool(6, 3, released=released).double()(graph, u)
    torch.testing.assert_close(pooled.assignment, u.softmax(1))
    (pooled.h.sin().sum() + pooled.adjacency.sin().sum()).backward()
    assert rows.grad is not None and rows.grad.isfinite().all()


def test_a_normaliser_of_rounding_error_alone_is_not_divided_by() -> None:
    batch = collate(featurize(["CCCCCCCC"]), np.arange(1))
    graph, width = graph_of(batch), 512
    torch.manual_seed(0)
    x = torch.block_diag(*torch.rand(8, 1, width))  # rows that have no column in common: each product is 0
    both = (x * x.sum(0)).sum(1)
    assert (both - x.square().flip(1).sum(1)).abs().max() > 0, "no rounding to guard against"
    assert not normaliser(x, graph, guarded=True)[1].any(), "a sum of zeros over rounding error"
    alike = x + torch.rand(8, 8 * width)  # and where rows are alike, the guard changes nothing
    (total, heard), (other, also) = (normaliser(alike, graph, guarded=each) for each in (True, False))
    assert heard.all() and also.all() and torch.equal(total, other)


def test_groups_hold_each_row_once() -> None:
    sizes = torch.tensor([3, 0, 1, 9, 4, 5, 1, 0])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    groups, x, y = SizeGroups.of(offsets), torch.randn(23, 2), torch.randn(23, 3)
    assert sum(map(torch.numel, groups.rows)) < 2 * 23
    assert groups.unpad(groups.pad(x), x).equal(x)
    known = torch.stack([x[a:b].T @ y[a:b] for a, b in pairwise(offsets)])
    torch.testing.assert_close(groups.outer(x, y), known)


def test_a_graph_of_thousands_of_rows_takes_no_matrix_of_pairs() -> None:
    n = 20_000  # pairs of them would be 3.2 GB
    around = torch.arange(n)
    ring = Relation.from_pairs(torch.cat([around, around]), torch.cat([around.roll(1), around.roll(-1)]), n, n)
    members = Relation(around, torch.tensor([0, n]), n, 1)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    pooled = StructPool(16, 32)(RowGraph(torch.randn(n, 16), members, ring, SizeGroups.of(members.offsets)))
    pooled.h.sum().backward()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kilobytes
    assert time.perf_counter() - start < 10
