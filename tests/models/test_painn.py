"""PaiNN against its equations by hand, under rotations, and with atoms at one place."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize_geometry import METHANE, WATER, Geometries
from molgraph.data.graph_values import Geometry
from molgraph.models.painn import PaiNN

CUTOFF, N_BASIS, D = 3.0, 4, 5


def geometry(n: int, seed: int = 0) -> Geometry:
    rng = np.random.default_rng(seed)
    at = 1.2 * np.cumsum(rng.normal(size=(n, 3)), axis=0).astype(np.float32)
    return Geometry(rng.choice([1, 6, 7, 8], n).astype(np.uint8), at)


def batch_of(*values: Geometry) -> GraphBatch:
    """In double precision."""
    batch = collate(Geometries().featurise(values), np.arange(len(values)))
    atoms = batch["atom"]
    assert atoms.table is not None
    return batch.with_level("atom", table=atoms.table.double(), position=atoms.arrays["position"].double())


def encoder(depth: int = 2) -> PaiNN:
    torch.manual_seed(0)
    spec = Geometries().featurise([WATER]).spec
    return PaiNN(spec, d_hidden=D, depth=depth, cutoff_angstrom=CUTOFF, n_basis=N_BASIS).double()


def by_hand(own: PaiNN, batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """Equations 7 to 10, pair by pair."""
    at, graph_of = batch["atom"].arrays["position"], batch.graph_of("atom")
    s = own.embed(batch.features("atom"))
    v = torch.zeros(len(s), D, 3).double()
    for message, update in zip(own.messages, own.updates, strict=True):
        ds, dv = torch.zeros_like(s), torch.zeros_like(v)
        for i in range(len(s)):
            for j in range(len(s)):
                r = at[j] - at[i]
                d = r.norm()
                if i == j or graph_of[i] != graph_of[j] or d >= CUTOFF:
                    continue
                basis = torch.stack([torch.sin(k * math.pi * d / CUTOFF) / d for k in range(1, N_BASIS + 1)])
                fade = 0.5 * (torch.cos(math.pi * d / CUTOFF) + 1)
                x_s, x_vv, x_vs = (message.phi(s[j]) * message.filter(basis) * fade).split(D)
                ds[i] += x_s
                dv[i] += x_vv[:, None] * v[j] + x_vs[:, None] * (r / d)
        s, v = s + ds, v + dv
        left, right = update.u.weight @ v, update.v.weight @ v
        a_ss, a_sv, a_vv = update.gates(torch.cat([s, right.norm(dim=2)], dim=1)).split(D, dim=1)
        s, v = s + a_ss + a_sv * (left * right).sum(2), v + a_vv[:, :, None] * left
    return s, v.transpose(1, 2)


def test_it_is_the_papers_equations() -> None:
    own, batch = encoder(), batch_of(geometry(6), geometry(5, seed=1))
    for mine, theirs in zip(own.numbers_and_vectors(batch)[-1], by_hand(own, batch), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-9)


def test_numbers_stay_and_vectors_turn_with_the_atoms() -> None:
    own, batch = encoder(depth=3), batch_of(geometry(9), METHANE)
    s, v = own.numbers_and_vectors(batch)[-1]
    assert v.abs().max() > 1e-3
    turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(1)).double())
    at = batch["atom"].arrays["position"]
    for motion in (turn, -turn):  # a rotation, and one with a reflection
        moved = own.numbers_and_vectors(batch.with_level("atom", position=at @ motion + 5.0))[-1]
        torch.testing.assert_close(moved[0], s, rtol=0, atol=1e-10)
        torch.testing.assert_close(moved[1], torch.einsum("nxd,xy->nyd", v, motion), rtol=0, atol=1e-10)


def test_vectors_follow_their_atoms_and_see_no_other_molecule() -> None:
    own, one, two = encoder(), geometry(7), geometry(5, seed=2)
    _, together = own.numbers_and_vectors(batch_of(one, two))[-1]
    order = np.random.default_rng(0).permutation(7)
    _, alone = own.numbers_and_vectors(batch_of(Geometry(one.numbers[order], one.positions[order])))[-1]
    torch.testing.assert_close(alone, together[:7][order], rtol=0, atol=1e-10)


def test_two_derivatives_are_finite_for_atoms_at_one_place_and_alone() -> None:
    crowd = Geometry(np.array([6, 6, 1, 8], np.uint8), np.array([[0, 0, 0], [0, 0, 0], [1, 0, 0], [90, 0, 0]]))
    own, batch = encoder(), batch_of(crowd, METHANE)
    at = batch["atom"].arrays["position"].clone().requires_grad_()
    graphs = own(batch.with_level("atom", position=at)).graphs
    (force,) = torch.autograd.grad(graphs.sum(), at, create_graph=True)
    force.square().sum().backward()
    assert force.isfinite().all() and at.grad is not None and at.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in own.parameters())


def test_forces_and_their_slopes_are_those_of_finite_differences() -> None:
    own, batch = encoder(depth=1), batch_of(geometry(3))

    def energy(at: Tensor) -> Tensor:
        return own(batch.with_level("atom", position=at)).graphs.sum()

    at = batch["atom"].arrays["position"].clone().requires_grad_()
    assert torch.autograd.gradcheck(energy, at) and torch.autograd.gradgradcheck(energy, at)
