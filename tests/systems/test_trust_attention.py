"""Attention audit: divergences and agreements that are known, and readouts whose weights are known to mean nothing."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

import molgraph
from molgraph.base.contracts import Target
from molgraph.data.sources import builtin
from molgraph.data.table import make_table
from molgraph.explain.attention_audit import audit, divergence
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect
from tests.tiny import series

GRAPH = torch.arange(6).repeat_interleave(torch.tensor([8, 9, 10, 11, 12, 13]))


@pytest.mark.system("attention-audit", rung="exact")
@pytest.mark.parametrize("n", [2, 8, 30])
def test_the_divergence_of_disjoint_weights_is_ln_2(off: str, n: int) -> None:
    """And that of equal ones 0; off: one atom in common."""
    one, other = torch.eye(n)[:, :1], torch.eye(n)[:, -1:]
    other = (one + other) / 2 if off else other
    graph = torch.zeros(n, dtype=torch.int64)
    assert abs(divergence(one, other, graph, 1).item() - math.log(2)) < 1e-6
    assert divergence(other, other, graph, 1).item() < 1e-6


@pytest.mark.system("attention-audit", rung="exact")
def test_weights_that_are_tied_to_relevance_agree_with_it(off: str) -> None:
    """One atom decides, and the weights follow: tau 0.9, and other weights move the answer; off: they do not."""
    rng = np.random.default_rng(20)
    relevance = torch.from_numpy(rng.exponential(size=len(GRAPH)))
    total = torch.zeros(6, dtype=torch.float64).index_add(0, GRAPH, relevance)[GRAPH]
    weights = (relevance / total)[:, None]
    if off:
        weights = torch.from_numpy(rng.dirichlet(np.ones(8), 8)[0].repeat(8)[: len(GRAPH)])[:, None]
        weights = weights / torch.zeros(6, dtype=torch.float64).index_add(0, GRAPH, weights[:, 0])[GRAPH, None]

    def answers(own: Tensor) -> Tensor:
        score = torch.zeros(6, dtype=own.dtype).index_add(0, GRAPH, own[:, 0] * (4 * relevance - 4))
        return torch.stack([score.sigmoid(), (-score).sigmoid()], dim=1)

    made = audit(answers, weights, GRAPH, (weights[:, 0] * relevance).numpy(), relevance.numpy())
    assert min(min(each.tau_gradient, each.tau_leave_one_out) for each in made) >= 0.9
    assert min(each.permuted for each in made) > 0.01 and max(each.distance for each in made) <= 0.01


@pytest.mark.system("attention-audit", rung="exact")
def test_the_most_different_weights_keep_the_answer_within_eps(off: str) -> None:
    """Of each molecule, whatever the answer does with the weights; off: an eps of 0.4 in the search."""
    torch.manual_seed(20)
    own, states = torch.rand(len(GRAPH), 2), torch.randn(len(GRAPH), 2, 4)
    own = own / torch.zeros(6, 2).index_add(0, GRAPH, own)[GRAPH]

    def answers(weights: Tensor) -> Tensor:
        h = torch.zeros(6, 2, 4).index_add(0, GRAPH, weights[:, :, None] * states)
        return (3 * h.flatten(1).sin()).cumsum(1)[:, -3:].softmax(1)

    made = audit(answers, own, GRAPH, np.ones(len(GRAPH)), np.ones(len(GRAPH)), eps=0.4 if off else 0.01)
    assert all(0.05 < each.jsd <= math.log(2) for each in made) and all(each.distance <= 0.01 for each in made)


@cache
def attentive(seed: int) -> Model:
    """A network with attention over atoms, trained to tell amides."""
    texts = [str(text) for text in builtin.nci().smiles[:160]]
    y = [float("C(=O)N" in text or "NC(=O)" in text) for text in texts]
    table = make_table(texts, targets=(Target("amide", "binary"),), y=y)
    how = {"batch_size": 32, "threads": 1, "seed": seed}
    return Model(GraphMethod("gin", {"d_hidden": 16, "readout": "self_attentive"}, epochs=5, **how).fit(table),
                 targets=table.targets)  # fmt: skip


@pytest.mark.system("attention-audit", rung="works")
def test_weights_over_equal_values_mean_nothing(off: str, effect: Effect) -> None:
    """All atoms have one state, of 8 atoms or more: permuted weights change nothing; off: the states of the network."""
    jsd, permuted, tau = [], [], []
    texts = [str(text) for text in series(8, 60).smiles]
    for seed in (20, 21, 22):
        model = attentive(seed)
        made = Model(GraphMethod.from_state(model.method.state()), targets=model.targets)
        if not off:  # one state for all atoms: no message and no feature arrives
            with torch.no_grad():
                for name, layer in made.method.ready().network.encoder.named_modules():
                    if isinstance(layer, torch.nn.Linear) and not name.startswith("readout"):
                        layer.weight.zero_()
        own = molgraph.explain(made, texts, by="attention(audit=true)").values.groupby("molecule").first()
        jsd.append(float(own["jsd"].min())), permuted.append(float(own["permuted"].max()))
        tau.append(float(own["tau_leave_one_out"].mean()))
    assert max(permuted) < 1e-5, permuted
    effect("least divergence of weights with the same answer", jsd, at_least=0.3, beside={"tau": tau})
