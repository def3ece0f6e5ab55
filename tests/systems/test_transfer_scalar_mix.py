"""Scalar mix: equal and one-hot weights, a frozen encoder, and a property that is read where it was put."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import molgraph
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.train.callbacks.scalar_mix import MIX, ScalarMix
from tests.systems.effect import Effect
from tests.tiny import same_bits, series
from tests.train.test_fine_tuning import encoder_of, start, tuned

__all__ = ["start"]  # a fixture


@pytest.mark.system("elmo", rung="exact")
def test_equal_weights_give_the_mean_and_large_ones_a_layer(off: str) -> None:
    torch.manual_seed(0)
    layers, mix = torch.randn(4, 5, 6), ScalarMix(4)
    if off:
        mix.forward = lambda layers: mix.gamma * layers[-1]  # type: ignore[method-assign]
    with torch.no_grad():
        mix.gamma.fill_(1.7)
        torch.testing.assert_close(mix(layers), 1.7 * layers.mean(0), rtol=0, atol=1e-6)
        mix.s[2] = 40.0
        torch.testing.assert_close(mix(layers), 1.7 * layers[2], rtol=0, atol=1e-6)
    assert sum(value.numel() for value in mix.parameters()) == 4 + 1


@pytest.mark.system("elmo", rung="exact")
def test_the_head_reads_the_mix_of_the_layers_of_a_frozen_encoder(start: str, off: str) -> None:
    before, method = encoder_of(molgraph.load(start).method), tuned(start, "linear-probe" if off else "scalar-mix")
    assert same_bits(encoder_of(method), before)
    assert any("read at depth" in note for note in method.notes) and "train_layer_1" in method.curves
    network = method.ready().network
    shown = method.curves.filter(like="train_layer_")
    assert shown.shape[1] == len(network.encoder.d_layers) and np.allclose(shown.sum(axis=1), 1)
    store = featurize([str(text) for text in series(8).smiles])
    batch, seen = collate(store, np.arange(8)), []
    network.head.register_forward_hook(lambda head, args, raw: seen.append(args[0]))
    encoded = network.encode(sample := Sample(batch))
    network.answer(encoded, sample)
    mix, atoms = network.parts[MIX], batch["atom"].offsets.diff()[:, None]
    expected = mix.gamma * sum(w * h / atoms for w, h in zip(mix.s.softmax(0), encoded[0].layers, strict=True))
    torch.testing.assert_close(seen[0], expected)


class Sample:
    """A batch of one column without labels."""

    def __init__(self, batch: Any) -> None:
        self.parts, self.extra = [type("Part", (), {"batch": batch, "of_row": None})], None


@pytest.mark.system("elmo", rung="works")
def test_a_property_is_read_at_the_layer_that_holds_it(off: str, effect: Effect) -> None:
    """Labels that are a linear function of one layer of a deep random network, whose layers have 24 states each."""
    weights, errors = [], []
    for seed, layer in enumerate((0, 1, 2, 3)):
        torch.manual_seed(seed)
        h, layers = torch.randn(600, 24), []
        for _ in range(4):
            h = (h @ torch.randn(24, 24) / 2).tanh()
            layers.append(h)
        states = torch.stack(layers)
        y = states[layer] @ torch.randn(24)
        mixes = [ScalarMix(4), ScalarMix(4)]
        for mix, only in zip(mixes, (None, 3), strict=True):
            if off or only is not None:
                mix.s.requires_grad_(False)
                mix.s[3 if only is not None else 0] += 40.0 * (only is not None)
            head = nn.Linear(24, 1)
            learned = [value for value in (*mix.parameters(), *head.parameters()) if value.requires_grad]
            optimizer = torch.optim.Adam(learned, lr=0.02)
            for _ in range(400):
                optimizer.zero_grad()
                (head(mix(states[:, :400]))[:, 0] - y[:400]).square().mean().backward()
                optimizer.step()
            errors.append(float((head(mix(states[:, 400:]))[:, 0] - y[400:]).detach().square().mean().sqrt()))
        weights.append(float(mixes[0].s.detach().softmax(0)[layer]))
    beside = {"equal weights": [0.25], "error": errors[::2], "error of the last layer": errors[1::2]}
    effect("weight of the layer that holds the signal", weights, at_least=0.8, beside=beside)
