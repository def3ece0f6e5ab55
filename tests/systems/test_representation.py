"""Pretraining: atoms that are hidden, and states that are matched with their molecule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch.nn import functional as F
from torch_geometric.nn import DeepGraphInfomax

from molgraph.data.views.mask import hidden
from molgraph.nn.corrupted_rows import jsd_corrupted
from molgraph.nn.mutual_information import jsd_local_global
from molgraph.train.adversary import with_features
from molgraph.train.objective import StepState
from tests.systems.contrasts import made, molecules
from tests.systems.effect import Effect
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


@pytest.mark.system("infomax-deep-infomax", rung="exact")
def test_corrupted_rows_as_negatives_are_those_of_pygs_deep_graph_infomax(off: str) -> None:
    """Of one graph, whose summary's matrix there is the identity."""
    torch.manual_seed(0)
    local, wrong, summary = torch.randn(9, 4), torch.randn(9, 4), torch.randn(1, 4)
    peer = DeepGraphInfomax(4, torch.nn.Identity(), lambda *_: summary[0], lambda x: x)
    torch.nn.init.eye_(peer.weight)
    found = jsd_corrupted(local, wrong.flip(0) + 1 if off else wrong, summary, torch.zeros(9, dtype=torch.long))
    torch.testing.assert_close(found[0], peer.loss(local, wrong, summary[0]), rtol=0, atol=1e-5)


@pytest.mark.system("infomax-deep-infomax", rung="exact")
def test_the_loss_has_corrupted_rows_and_a_match_with_the_prior(off: str) -> None:
    how = "infograph(d_score=6)" if off else "infograph(d_score=6, negatives=corrupt, prior_weight=0.5)"
    learns: Any
    learns, network, batch = made(how)
    step = StepState(0, 1, 0, training=False)
    found, graphs = learns(network, batch, step), batch.parts[0].batch
    order = torch.randperm(graphs.n_atoms, generator=torch.Generator().manual_seed(0))
    rows = graphs.features("atom")[order]
    encoded, of = network.encoder(graphs, rows=True), graphs.graph_of("atom")
    wrong = network.encoder(with_features(graphs, rows), rows=True).rows[0].h
    own, total = learns.score.psi(encoded.graphs), 0.0
    h, other = learns.score.phi(encoded.rows[0].h), learns.score.phi(wrong)
    for i in range(len(own)):
        mine = (of == i).nonzero()[:, 0]
        total += float((F.softplus(-h[mine] @ own[i]) + F.softplus(other[mine] @ own[i])).mean())
        if learns.prior is not None:
            total += 0.5 * float(F.softplus(-learns.prior.score(own[i].sigmoid()[None]))[0, 0])
    assert found.total.item() == pytest.approx(total, rel=1e-4)
    turns = learns.turns(network)
    assert len(turns) == 2
    learns(network, batch, step._replace(turn=1)).total.backward()
    assert all(p.grad is not None for p in turns[1])
    assert all(p.grad is None for p in turns[0])


@pytest.mark.system("infomax-deep-infomax", rung="works")
def test_states_are_spread_over_the_uniform_prior(off: str, effect: Effect) -> None:
    """The distance of the graphs' vectors, brought to 0..1, from uniform by Kolmogorov's statistic, after training."""
    distances: dict[str, list[float]] = {"with": [], "without": []}
    for seed in range(3):
        for name, weight in (("with", 0.0 if off else 1.0), ("without", 0.0)):
            learns: Any
            learns, network, batch = made(
                f"infograph(d_score=4, prior_weight={weight})", molecules()[100 * seed : 100 * seed + 100], norm="batch"
            )
            optimizers = [torch.optim.Adam([*own], lr=3e-3) for own in learns.turns(network)]
            for step in range(120):
                for turn, optimizer in enumerate(optimizers):
                    optimizer.zero_grad()
                    (learns(network, batch, StepState(step, 120, 0, turn)).total / 200).backward()
                    optimizer.step()
            y = learns.score.psi(network.encoder(batch.parts[0].batch).graphs).sigmoid().detach().numpy()
            distances[name].append(float(np.mean([kstest(column, "uniform").statistic for column in y.T])))
    less = [a - b for a, b in zip(distances["without"], distances["with"], strict=True)]
    effect("distance from uniform, less than without", less, at_least=0.1, beside=distances)
