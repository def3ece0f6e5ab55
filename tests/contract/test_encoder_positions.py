"""Trials of the encoders that read positions: motions change nothing, and forces train."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.data.batch import GraphBatch, collate
from molgraph.train.forces import forces_of, with_gradient
from molgraph.train.samples import InputBatch, Sample
from tests.contract.test_encoders import ENCODERS, build, graphs, store_of

READERS = [name for name in ENCODERS if "atom.position" in build(name).needs]


@pytest.fixture
def batch(name: str) -> GraphBatch:
    store = store_of(name)
    return collate(store, np.arange(len(store)))


@pytest.mark.parametrize("name", READERS)
class TestEveryEncoderOfPositions:
    def test_rotation_and_translation_change_nothing(self, name: str, batch: GraphBatch) -> None:
        at = batch["atom"].arrays["position"]
        turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))
        moved = batch.with_level("atom", position=at @ turn + torch.tensor([1.0, -2.0, 3.0]))
        encoder = build(name)
        torch.testing.assert_close(graphs(encoder, moved), graphs(encoder, batch), rtol=1e-4, atol=1e-4)

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
