"""arch2vec's loss by hand, its symmetry, and the search on frozen vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from molgraph.base.errors import UsageError
from molgraph.data.table import make_table
from molgraph.generate.pool_search import search_pool
from molgraph.train.inputs import Input
from molgraph.train.objective import StepState
from molgraph.train.objectives.arch2vec import N_BOND_TYPES, Arch2Vec
from molgraph.train.objectives.masked_atoms import elements
from molgraph.train.preparation import prepare
from molgraph.train.pretraining import state_outputs
from tests.tiny import small

SMILES = ["CC(=O)Nc1ccc(O)cc1", "C", "C#N", "OCC1CC1"]


def made() -> tuple[Any, Any, Arch2Vec]:
    """A batch of molecules, a network and the objective."""
    method = small(encoder="gin", params={"d_hidden": 8, "depth": 2, "norm": "none"})
    table = make_table(SMILES)
    found = prepare(table, None, "gin", None, None, {}, targets=False)
    (one,) = found.inputs
    assert isinstance(one, Input)
    torch.manual_seed(0)
    network = method.build(found.inputs, d_extra=0, targets=state_outputs(1).targets)
    return found.train.sample(np.arange(len(SMILES))), network, Arch2Vec(network, found.inputs, d_latent=5, beta=0.3)


def test_the_loss_is_that_of_every_pair_atom_and_bond() -> None:
    batch, network, objective = made()
    found = objective(network, batch, StepState(0, 1, 0, training=False))
    graphs = batch.parts[0].batch
    h = network.encoder(graphs, rows=True).rows[0].h
    mean, log_variance = objective.posterior(h).chunk(2, dim=1)
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(0))
    z = (mean + (0.5 * log_variance).exp() * noise).detach()
    peer = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, (0.5 * log_variance).exp()), torch.distributions.Normal(0.0, 1.0)
    )
    expected = 0.3 * float(peer.sum().detach())
    bonds = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(graphs.source, graphs.target, strict=True))}
    of, types = graphs.graph_of("atom").tolist(), graphs["bond"].table[:, :N_BOND_TYPES]
    target = elements(graphs["atom"].table)[graphs["atom"].code.long()]
    with torch.no_grad():
        for i in range(len(z)):
            expected += float(F.cross_entropy(objective.element(z[i]), target[i]))
            for j in range(i):
                if of[i] == of[j]:
                    bonded = (i, j) in bonds
                    expected -= float(F.logsigmoid(z[i] @ z[j] if bonded else -(z[i] @ z[j])))
                    if bonded:
                        kind = types[graphs["bond"].code.long()[bonds[i, j]]].argmax()
                        expected += float(F.cross_entropy(objective.bond_type(z[i] * z[j]), kind))
    assert found.count == len(SMILES)
    assert found.total.item() == pytest.approx(expected, rel=1e-4)


def test_bonds_have_no_direction() -> None:
    _, _, objective = made()
    scores = objective.scores([torch.randn(4, 5), torch.randn(2, 5)])
    assert torch.equal(scores, scores.transpose(1, 2)) and scores.shape == (2, 4, 4)


def test_a_search_asks_for_each_row_once_and_finds_a_peak_sooner_than_chance() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6))
    value = -np.square(x - x[7]).sum(axis=1)
    asked: list[int] = []

    def oracle(row: int) -> float:
        asked.append(row)
        return float("nan") if row % 50 == 3 else float(value[row])

    found = search_pool(x, oracle, 40, seed=1)
    assert found.order.tolist() == asked and len({*asked}) == 40
    assert found.best[-1] == np.nanmax(found.value) and (np.diff(found.best) >= 0).all()
    top = np.sort(value)[-6]
    first = {how: [] for how in ("bayesian", "random")}
    for how, queries in first.items():
        for seed in range(5):
            run = search_pool(x, lambda row: float(value[row]), 80, how=how, seed=seed)  # type: ignore[arg-type]
            queries.append(int(np.append(run.best >= top, True).argmax()))
    assert np.median(first["bayesian"]) < 0.7 * np.median(first["random"]), first
    assert len(search_pool(x[:5], lambda row: 1.0, 40).order) == 5, "a pool that is smaller than the budget"


@pytest.mark.parametrize("latents", [np.zeros((0, 2)), np.zeros(3), np.full((3, 2), np.nan)])
def test_no_pool_is_refused(latents: np.ndarray) -> None:
    with pytest.raises(UsageError, match="a search of"):
        search_pool(latents, lambda row: 0.0, 3)
