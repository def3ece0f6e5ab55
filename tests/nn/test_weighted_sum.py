"""Weighted and filtered sums along a relation against dense loops, to the second derivative."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from molgraph.nn.filtered_sum import filtered_sum
from molgraph.nn.relation import Relation
from molgraph.nn.weighted_sum import OrderedRelation, Weights, weighted_sum


@pytest.fixture
def along() -> OrderedRelation:
    """From 5 rows to 4, of which the last hears nothing."""
    random = torch.Generator().manual_seed(0)
    source, target = (torch.randint(0, n, (13,), generator=random) for n in (5, 3))
    return OrderedRelation.of(Relation.from_pairs(source, target, 5, 4))


def numbers(*sizes: int, seed: int, needed: bool = True) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=random, dtype=torch.float64).requires_grad_(needed)


def test_the_order_is_that_of_sources(along: OrderedRelation) -> None:
    sources = along.relation.source[along.order]
    assert sources.equal(sources.sort().values)
    assert along.relation.transpose.source.equal(along.relation.target[along.order])


def test_sums_are_those_of_a_loop(along: OrderedRelation) -> None:
    h, basis, weight = numbers(5, 2, seed=1), numbers(3, 2, 5, seed=2), numbers(3, 2, 2, seed=3)
    angles, known = numbers(3, 13, seed=4), torch.zeros(4, 2, dtype=torch.float64)
    for p, (s, t) in enumerate(zip(along.relation.source.tolist(), along.relation.target.tolist(), strict=True)):
        for c in range(3):
            known[t] = known[t] + angles[c, p] * h[s] * (basis[c, :, s] @ weight[c])
    weights = Weights.of(along, angles)
    torch.testing.assert_close(filtered_sum(h, basis, weight, weights), known)
    torch.testing.assert_close(weighted_sum(h * torch.einsum("ckp,ckd->cpd", basis, weight), weights), known)


@pytest.mark.parametrize("needed", [each for each in product([True, False], repeat=4) if any(each)])
def test_derivatives_are_right_whichever_are_asked_for(needed: tuple[bool, ...], along: OrderedRelation) -> None:
    sizes = (5, 1), (2, 2, 5), (2, 2, 1), (2, 13)
    inputs = [numbers(*size, seed=i, needed=asks) for i, (size, asks) in enumerate(zip(sizes, needed, strict=True))]
    call = lambda h, basis, weight, angles: filtered_sum(h, basis, weight, Weights.of(along, angles))  # noqa: E731
    assert torch.autograd.gradcheck(call, inputs) and torch.autograd.gradgradcheck(call, inputs)


def test_torch_func_gives_the_same_gradient(along: OrderedRelation) -> None:
    h, basis, weight, angles = (
        numbers(5, 2, seed=1),
        numbers(3, 2, 5, seed=2),
        numbers(3, 2, 2, seed=3),
        numbers(3, 13, seed=4),
    )
    call = lambda h: filtered_sum(h, basis, weight, Weights.of(along, angles)).sin().sum()  # noqa: E731
    torch.testing.assert_close(torch.func.grad(call)(h), torch.autograd.grad(call(h), h)[0])
