"""The direction of two endpoints: regrets by hand and by autograd, and made causes and effects."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binomtest

import molgraph
from molgraph.auxiliary.study.direction import (
    in_bins,
    learn_direction,
    online_log_likelihood,
    regret_slope,
    shifted,
    simulated,
)
from molgraph.base.errors import EmptyError
from tests.systems.effect import Effect


@pytest.mark.system("meta-transfer-causal-objective", rung="exact")
def test_likelihoods_and_slopes_are_those_of_autograd(off: str) -> None:
    """Logits in torch, a step of SGD after each row; off: the model does not adapt."""
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(12)).reshape(3, 4)
    a, b = rng.integers(0, 3, 15), rng.integers(0, 4, 15)
    first = torch.nn.Parameter(torch.from_numpy(joint.sum(1)).log())
    then = torch.nn.Parameter(torch.from_numpy(joint / joint.sum(1, keepdims=True)).log())
    steps, total = torch.optim.SGD([first, then], lr=0.7), 0.0
    for i, j in zip(a, b, strict=True):
        log_p = first.log_softmax(0)[i] + then[i].log_softmax(0)[j]
        total += float(log_p.detach())
        steps.zero_grad()
        (-log_p).backward()
        steps.step()
    assert online_log_likelihood(joint, a, b, 0.0 if off else 0.7) == pytest.approx(total, abs=1e-9)
    for gamma, one, two in ((0.3, -4.0, -5.0), (-2.0, -9.0, -3.0)):
        g = torch.tensor(gamma, dtype=torch.float64, requires_grad=True)
        s = torch.sigmoid(g)
        (-(s * math.exp(one) + (1 - s) * math.exp(two)).log()).backward()
        assert regret_slope(gamma, one - two) == pytest.approx(float(g.grad), abs=1e-12)


@pytest.mark.system("meta-transfer-causal-objective", rung="exact")
def test_exchanging_the_endpoints_exchanges_the_belief(off: str) -> None:
    """Off: the second is scored as the first once more."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 200)
    b, groups = (a + rng.integers(0, 2, 200)) % 4, rng.integers(0, 8, 200)
    one = learn_direction(shifted(a, b, groups, 4, 40, 15, 0), 0.5)
    two = learn_direction(shifted(a if off else b, b if off else a, groups, 4, 40, 15, 0), 0.5)
    np.testing.assert_allclose(one.gains, -two.gains, atol=1e-9)
    assert one.belief == pytest.approx(1 - two.belief, abs=1e-9)
    assert np.bincount(in_bins(rng.normal(size=500), 5)).tolist() == [100] * 5


@pytest.mark.system("meta-transfer-causal-objective", rung="works")
def test_the_cause_is_told_from_its_effect_and_no_order_is_preferred_without_one(off: str, effect: Effect) -> None:
    """Ten states, 500 episodes; off: the whole joint changes."""
    beliefs = [learn_direction(simulated(s, 500, symmetric=bool(off)), 1.0).belief for s in range(10)]
    if not off:
        whole = [learn_direction(simulated(s, 200, symmetric=True), 1.0).gains.mean() > 0 for s in range(50, 70)]
        assert binomtest(sum(whole), 20).pvalue > 0.05
    right = [float(belief > 0.9) for belief in beliefs]
    effect("share of seeds with a belief above 0.9 in the cause", right, at_least=0.9, beside={"belief": beliefs})


def test_tables_without_series_are_refused() -> None:
    smiles = ["C" * (i + 1) + "O" * (i % 3) for i in range(70)]
    frame = pd.DataFrame({"smiles": smiles, "y": np.arange(70.0)})
    with pytest.raises(EmptyError, match="scaffolds"):
        molgraph.study("direction", frame, targets=["y"])
