"""Trials that every registered basis of distances meets."""

from __future__ import annotations

import pytest
import torch

from molgraph.base.registry import entry, names
from molgraph.data.batch import collate
from molgraph.models.schnet import SchNet
from molgraph.nn.basis import Basis
from tests.contract.test_encoders import store_of

D = torch.linspace(0.0, 7.0, 29)  # beyond the last one too


def build(name: str) -> Basis:
    return entry("basis", name).value(0.5, 5.0, 12)


@pytest.mark.parametrize("name", names("basis"))
class TestEveryBasis:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("basis", name)
        assert issubclass(found.value, Basis) and found.summary and found.value.__doc__

    def test_gives_finite_functions_of_a_distance_that_tell_near_ones_apart(self, name: str) -> None:
        basis = build(name)
        values = basis(D)
        assert values.shape == (len(D), basis.n) and values.isfinite().all()
        inside = basis(torch.linspace(0.6, 4.9, 40))
        assert (torch.cdist(inside, inside) + torch.eye(40)).min() > 1e-3
        torch.testing.assert_close(basis(D[3:4]), values[3:4])
        assert basis(D[:0]).shape == (0, basis.n)

    def test_its_slopes_are_finite_and_those_of_differences(self, name: str) -> None:
        basis = build(name).double()
        assert torch.autograd.gradcheck(basis, (D[:12].double().requires_grad_(),))

    def test_an_encoder_takes_it(self, name: str) -> None:
        store = store_of("schnet")
        encoder = SchNet(store.spec, d_hidden=8, n_basis=8, basis=name)
        graphs = encoder(collate(store, torch.arange(16).numpy())).graphs
        graphs.sin().sum().backward()
        assert graphs.isfinite().all() and all(p.grad is not None for p in encoder.parameters())
