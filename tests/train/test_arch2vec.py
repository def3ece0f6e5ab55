"""arch2vec's symmetry, and the search on frozen vectors; its loss stands in tests/systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from molgraph.base.errors import BadValueError
from molgraph.data.table import make_table
from molgraph.train.inputs import Input
from molgraph.train.objectives.arch2vec import Arch2Vec
from molgraph.train.preparation import prepare
from molgraph.train.pretraining import state_outputs
from pipelines.arch2vec.pool_search import search_pool
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
    with pytest.raises(BadValueError, match="3 queries"):
        search_pool(latents, lambda row: 0.0, 3)
