"""Optimisers: weight decay apart from the gradient, and steps of a limited length."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.phases import decay_groups
from tests.train.test_fine_tuning import Nothing, Rows, TwoLayers, fit


@pytest.mark.system("adamw-sgdw", rung="exact", twins=("adam", "every"))
def test_weight_decay_pulls_no_bias_norm_or_embedding(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Parts(nn.Module):
        started = frozenset[str]()

        def __init__(self) -> None:
            super().__init__()
            self.table, self.norm, self.layer = nn.Embedding(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)
            nn.init.ones_(self.norm.bias)
            self.prepare = lambda batch: None

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.norm(self.table(x.long()[:, 0])))

    if off == "every":
        monkeypatch.setattr("molgraph.train.engine.decay_groups", lambda values, *_: list(values))
    for optimizer in ("adam" if off == "adam" else "adamw", "sgd"):
        network = Parts()
        before = {name: value.detach().clone() for name, value in network.named_parameters()}
        rows = Rows(torch.zeros(4, 1), torch.zeros(4))
        fit(network, Nothing(), rows, [], epochs=3, learning_rate=0.1, weight_decay=0.5, optimizer=optimizer)
        changed = [name for name, value in network.named_parameters() if not torch.equal(value, before[name])]
        assert changed == ["layer.weight"] and network.layer.weight.norm() < before["layer.weight"].norm()
        if optimizer != "sgd":  # without a gradient, nothing else moves them
            torch.testing.assert_close(network.layer.weight.detach(), (1 - 0.1 * 0.5) ** 3 * before["layer.weight"])
    values = list(network.parameters())
    assert decay_groups(iter(values), network, 0.0) == values, "one list, as without groups"


class Fourth(Objective):
    """``w^4``, whose gradient no one constant bounds."""

    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        return Loss(network(batch.x).pow(4).sum(), len(batch.x))


@pytest.mark.system("smoothness-clipped-gd", rung="exact")
def test_a_step_is_no_longer_than_the_limit_and_short_ones_are_as_they_were(off: str) -> None:
    """``w - lr min(1, c / |g|) g`` with ``g = 4 w^3``."""
    for w, expected in ((0.1, 0.1 - 0.1 * 0.004), (10.0, 10.0 - 0.1 * 2.0)):
        network = TwoLayers(1, 1, head=False)
        nn.init.constant_(network.encoder.weight, w)
        how = {"gradient_clip": None if off else 2.0, "learning_rate": 0.1}
        fit(network, Fourth(), Rows(torch.ones(1, 1), torch.ones(1)), [], epochs=1, **how)
        assert network.encoder.weight.item() == pytest.approx(expected, abs=1e-5)
