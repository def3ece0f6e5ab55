"""Trials of the encoders that read positions: motions change nothing, forces train, and cutoffs are smooth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.base.registry import get
from molgraph.data.batch import GraphBatch, collate
from molgraph.train.forces import forces_of, with_gradient
from molgraph.train.samples import InputBatch, Sample
from tests.contract.test_encoders import ENCODERS, build, build_small, graphs, renumbered, store_of

READERS = [name for name in ENCODERS if "atom.position" in get("encoder", name).needs]


@pytest.fixture
def batch(name: str) -> GraphBatch:
    store = store_of(name)
    return collate(store, np.arange(len(store)))


def double(batch: GraphBatch, times: float) -> GraphBatch:
    """The batch in double precision, its atoms so many times as far apart."""
    atoms = batch["atom"]
    assert atoms.table is not None
    return batch.with_level("atom", position=times * atoms.arrays["position"].double(), table=atoms.table.double())


@pytest.mark.parametrize("name", READERS)
class TestEveryEncoderOfPositions:
    def test_rotation_and_translation_change_nothing(self, name: str, batch: GraphBatch) -> None:
        at = batch["atom"].arrays["position"]
        turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))
        moved = batch.with_level("atom", position=at @ turn + torch.tensor([1.0, -2.0, 3.0]))
        encoder = build(name)
        torch.testing.assert_close(graphs(encoder, moved), graphs(encoder, batch), rtol=1e-4, atol=1e-4)

    def test_motions_mirrors_and_orders_of_atoms_change_nothing(self, name: str) -> None:
        """A hundred turns in double precision, every other one mirrored, of atoms as far apart as in molecules."""
        random, spread = torch.Generator().manual_seed(0), double(collate(store_of(name), np.array([8, 0, 5, 2])), 3)
        encoder = build_small(name).double()
        known, at = graphs(encoder, spread), spread["atom"].arrays["position"]
        for seed in range(100):
            turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=random, dtype=torch.float64))
            turn[:, 0] *= torch.linalg.det(turn) * (1 - 2 * (seed % 2))
            away = 10 * torch.randn(3, generator=random, dtype=torch.float64)
            moved, _ = renumbered(spread.with_level("atom", position=at @ turn + away), seed)
            torch.testing.assert_close(graphs(encoder, moved), known, rtol=1e-5, atol=1e-5)

    def test_value_and_slope_have_no_step_at_the_cutoff(self, name: str) -> None:
        """An atom that comes within the cutoff of another one, which has a neighbour of its own."""
        encoder = build_small(name).double().eval()
        if not getattr(encoder, "smooth_at_cutoff", True):
            assert "jumps to 0 at the cutoff" in " ".join((type(encoder).__doc__ or "").split())
            return
        if (cutoff := getattr(encoder, "cutoff", None)) is None:
            return
        three = double(collate(store_of(name), np.array([2])), 1)
        values, slopes = [], []
        for x in (cutoff - 1e-5, cutoff + 1e-5):
            far = torch.tensor(x, dtype=torch.float64, requires_grad=True)
            at = torch.stack([far.new_zeros(3), far.new_tensor([-0.6, 1.0, 0.3]), torch.stack([far, far * 0, far * 0])])
            out = encoder(three.with_level("atom", position=at)).graphs
            values.append(out.detach())
            slopes.append(torch.autograd.grad(out.sin().sum(), far)[0])
        torch.testing.assert_close(*values, rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(*slopes, rtol=1e-3, atol=1e-4)

    def test_positions_have_gradients(self, name: str, batch: GraphBatch) -> None:
        at = batch["atom"].arrays["position"].clone().requires_grad_()
        encoder = build(name)
        (force,) = torch.autograd.grad(
            encoder(batch.with_level("atom", position=at)).graphs.sum(), at, create_graph=True
        )
        assert force.isfinite().all() and force.abs().sum() > 0
        force.square().sum().backward()  # a loss of forces trains
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())

    def test_forces_are_minus_the_slopes_of_the_energy(self, name: str, batch: GraphBatch) -> None:
        """Central differences in double precision; relations that were made ahead are kept."""
        at = batch["atom"].arrays["position"].double()
        batch = batch.with_level("atom", table=batch["atom"].table.double(), position=at)
        encoder = build(name).double().eval()
        encoder.prepare(batch)
        moving, positions = with_gradient(Sample((InputBatch(batch, None),), None, None, None))
        forces = forces_of(encoder(moving.parts[0].batch).graphs.sin().sum(1), positions)
        step = torch.zeros_like(at)
        for atom, axis in [(3, 0), (20, 1), (-1, 2)]:
            step[atom, axis] = 1e-5
            high, low = (graphs(encoder, batch.with_level("atom", position=at + s * step)).sin().sum() for s in (1, -1))
            torch.testing.assert_close(forces[atom, axis], (low - high) / 2e-5, rtol=1e-4, atol=1e-6)
            step[atom, axis] = 0
