"""Pairs of entities: the convolutions that read a sequence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from molgraph.data.table import make_table
from molgraph.train.inputs import trial_inputs
from molgraph.train.network import build_network
from molgraph.train.preparation import prepare


@pytest.mark.system("mt-dti", rung="exact")
def test_a_sequence_is_the_maximum_of_three_convolutions(off: str) -> None:
    torch.manual_seed(0)
    table = make_table(["CCO", "c1ccccc1Cl", "N"])
    network = build_network(trial_inputs("deepdta"), {"n_filters": 4, "window": 3}, joiner="concat", d_extra=0, d_out=0)
    batch = prepare(table, None, "deepdta", None, None, {}, targets=False).train.sample(np.arange(3)).parts[0].batch
    encoder, x, of = network.encoder, batch.features("token"), batch.graph_of("token")
    for i in range(3):
        h = encoder.embed(x[of == i]).T
        for layer in encoder.convolutions:
            h = F.conv1d(h, layer.weight, layer.bias, padding=1).relu()
        known = h.mean(dim=1) if off else h.amax(dim=1)
        torch.testing.assert_close(encoder(batch).graphs[i], known, rtol=1e-4, atol=1e-5)
