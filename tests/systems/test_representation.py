"""Pretraining: atoms that are hidden, and states that are matched with their molecule."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from molgraph.data.views.mask import hidden
from molgraph.nn.mutual_information import jsd_local_global
from tests.train.test_pretraining import parts_of


@pytest.mark.system("bert", rung="exact")
def test_nothing_of_a_masked_atom_reaches_its_guess(off: str) -> None:
    objective, network, samples = parts_of(["CCO", "CCN"])
    scores = []
    for row in range(2):
        batch = samples.sample(np.array([row])).parts[0].batch
        batch = batch if off else hidden(batch, "atom", torch.tensor([2]))
        scores.append(objective.head(network.encoder(batch, rows=True).rows[0].h))
    torch.testing.assert_close(scores[0], scores[1], rtol=0, atol=1e-6)


@pytest.mark.system("infomax-deep-infomax", rung="exact")
def test_the_loss_is_that_of_the_authors_but_for_two_logarithms_of_two(off: str) -> None:
    """Their code, for graphs of equal weight: expectations of positive and of negative scores."""
    torch.manual_seed(0)
    local, global_ = torch.randn(12, 5, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    of = torch.arange(12) // 3
    scores, own = local @ global_.T, F.one_hot(of, 4).bool()
    positive = (math.log(2) - F.softplus(-scores[own])).mean()
    negative = (F.softplus(-scores[~own]) + scores[~own] - math.log(2)).mean()
    found = jsd_local_global(local, global_, of.roll(3) if off else of).mean()
    torch.testing.assert_close(found, negative - positive + 2 * math.log(2))
