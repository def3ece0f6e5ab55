"""Entities that condition each other, against the sum of what each says alone."""

from __future__ import annotations

import pytest
import torch

from molgraph.nn.encoder import Encoded
from molgraph.nn.joiners import Bilinear, Concat, JoinPart


@pytest.mark.system("txt2pi-with-film-2", rung="exact")
def test_each_state_scales_the_others(off: str) -> None:
    """What two molecules and two assays give in pairs is more than a sum of one part for each."""
    torch.manual_seed(0)
    joiner, a, b = (Concat if off else Bilinear)((5, 7)), torch.randn(2, 5), torch.randn(2, 7)
    gaps = []
    for assays in (b, b[[0, 0]]):
        h = joiner([JoinPart(Encoded(s), torch.tensor(of)) for s, of in ((a, [0, 0, 1, 1]), (assays, [0, 1, 0, 1]))])
        gaps.append((h[0] - h[1] - h[2] + h[3]).abs().max().item())
    assert gaps[0] > 1e-2 and gaps[1] < 1e-6
