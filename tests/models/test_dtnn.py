"""DTNN against its equations by hand, and with atoms at one place."""

from __future__ import annotations

import numpy as np
import torch

from molgraph.data.featurize_geometry import WATER, Geometries
from molgraph.models.dtnn import DTNN
from tests.models.test_painn import batch_of, geometry


def test_it_is_the_papers_equations() -> None:
    torch.manual_seed(0)
    own = DTNN(Geometries().featurise([WATER]).spec, d_hidden=6, d_factor=4, depth=3).double()
    batch = batch_of(geometry(6), geometry(4, seed=1))
    at, graph_of = batch["atom"].arrays["position"], batch.graph_of("atom")
    centres = torch.from_numpy(np.arange(-1, 20.1, 0.2))
    c = own.embed.weight.T[batch["atom"].code]
    for _ in range(3):
        new = c.clone()
        for i in range(len(c)):
            for j in range(len(c)):
                if i != j and graph_of[i] == graph_of[j]:
                    g = torch.exp(-((at[i] - at[j]).norm() - centres).square() / (2 * 0.2**2))
                    product = own.send(c[j]) * (own.filter.weight @ g + own.filter.bias)
                    new[i] += torch.tanh(own.combine.weight @ product)
        c = new
    encoded = own(batch, rows=True)
    torch.testing.assert_close(encoded.rows[0].h, c, rtol=0, atol=1e-6)
    torch.testing.assert_close(encoded.graphs[1], c[6:].sum(0), rtol=0, atol=1e-6)
    assert len(encoded.layers) == 3 and encoded.layers[-1].equal(encoded.graphs)


def test_two_derivatives_are_finite_for_atoms_at_one_place() -> None:
    own = DTNN(Geometries().featurise([WATER]).spec, d_hidden=6).double()
    batch = batch_of(geometry(4))
    at = batch["atom"].arrays["position"].clone()
    at[1] = at[0]
    at.requires_grad_()
    (force,) = torch.autograd.grad(own(batch.with_level("atom", position=at)).graphs.sum(), at, create_graph=True)
    force.square().sum().backward()
    assert at.grad is not None and at.grad.isfinite().all() and force.abs().sum() > 0
