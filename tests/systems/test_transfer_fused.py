"""A small network fused with a frozen encoder: drop-net, dense attention, and what frozen states bring."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Crippen
from torch import Tensor, nn

import molgraph
from molgraph.base.contracts import Target
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.graph_store import InputSpec
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.models.gin import GIN
from molgraph.train.callbacks.fused import FUSED, Fused
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect
from tests.systems.test_transfer_scalar_mix import Sample
from tests.tiny import same_bits, series
from tests.train.test_fine_tuning import encoder_of, start, tuned

__all__ = ["start"]  # a fixture


def dense(fused: Fused, t: int, h: Tensor, frozen: Tensor, offsets: list[int]) -> Tensor:
    """Attention of layer t, molecule by molecule and head by head."""
    found = []
    for a, b in pairwise(offsets):
        q, k, v = fused.q[t](h[a:b]), fused.k[t](frozen[a:b]), fused.v[t](frozen[a:b])
        parts = zip(*(each.chunk(fused.heads, dim=1) for each in (q, k, v)), strict=True)
        found.append(torch.cat([(x @ y.T / x.shape[1] ** 0.5).softmax(1) @ z for x, y, z in parts], dim=1))
    return fused.out[t](torch.cat(found))


@pytest.mark.system("bert-fused-nmt", rung="exact")
def test_the_mean_over_drop_net_is_the_layer_of_prediction(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one layer, whose two terms are computed apart: U below p/2, above 1 - p/2 and between."""
    torch.manual_seed(0)
    batch = collate(featurize([str(text) for text in series(6).smiles]), np.arange(6))
    spec = InputSpec("", {"atom": batch["atom"].width, "bond": batch["bond"].width})
    gin, fused, p = GIN(spec, d_hidden=8, depth=1, norm="none", readout="sum"), Fused(5, 2, 0.6), 0.6
    assert fused.build(gin) == ""
    frozen, offsets = torch.randn(batch.n_atoms, 5), batch["atom"].offsets.tolist()

    def atoms(u: float | None, *, apart: bool = False) -> Tensor:
        """The last layer's states, with U as drawn; None for prediction; or without the frozen states at all."""
        gin.block_options = nn.ModuleList([] if apart or off else [fused])
        gin.train(u is not None)
        monkeypatch.setattr(torch, "rand", lambda *size: torch.tensor(u))
        fused.frozen = frozen
        return gin(batch, rows=True).rows[0].h[:, 8:]

    gin.distinct = False
    h, own = gin.embed(batch.features("atom")), atoms(None, apart=True)
    other = dense(fused, 0, h, frozen, offsets)
    torch.testing.assert_close(atoms(None), (own + other) / 2, rtol=0, atol=1e-5)
    draws = {0.1: p / 2, 0.5: 1 - p, 0.9: p / 2}
    torch.testing.assert_close(sum(w * atoms(u) for u, w in draws.items()), atoms(None), rtol=0, atol=1e-6)
    nn.init.zeros_(fused.out[0].weight)
    nn.init.zeros_(fused.out[0].bias)
    torch.testing.assert_close(atoms(None), own / 2)


@pytest.mark.system("bert-fused-nmt", rung="exact")
def test_the_frozen_encoder_stays_to_the_bit_and_the_prediction_reads_its_states(start: str, off: str) -> None:
    before = encoder_of(molgraph.load(start).method)
    method = tuned(start, None if off else "fused(model=gin(d_hidden=8, depth=2))")
    assert same_bits(encoder_of(method), before)
    network = method.ready().network.eval()
    batch = collate(featurize([str(text) for text in series(8).smiles]), np.arange(8))
    one = network(Sample(batch))[0].detach()
    (fused,) = network.parts[FUSED].encoder.options
    for value in fused.v:
        nn.init.zeros_(value.weight)
    assert (network(Sample(batch))[0] - one).abs().max() > 1e-3


def logp(n: int, seed: int = 0) -> Table:
    """Crippen logP of molecules in a random order."""
    smiles = np.random.default_rng(seed).permutation(np.array([str(text) for text in builtin.nci().smiles]))[: 2 * n]
    mols = [(text, mol) for text in smiles if (mol := Chem.MolFromSmiles(text)) is not None and mol.GetNumAtoms() < 25]
    y = np.array([Crippen.MolLogP(mol) for _, mol in mols[:n]])
    return make_table([text for text, _ in mols[:n]], targets=(Target("logP"),), y=y)


@pytest.mark.system("bert-fused-nmt", rung="works")
def test_states_that_know_the_property_lower_the_error_and_random_ones_hardly_raise_it(
    off: str, effect: Effect, tmp_path: Path
) -> None:
    """From 60 labels; the oracle learned the same property of 800 other molecules."""
    ratios, errors = [], dict[str, list[float]]()
    for seed in range(3):
        table = logp(1360, seed)
        assert table.y is not None
        rows = np.split(np.arange(1360), [60, 860])
        train, many, test = (table.take(each) for each in rows)
        how: dict[str, Any] = {"threads": 1, "seed": seed, "head_width": 32, "batch_size": 20}
        for name, epochs, rate in (("oracle", 20, 3e-3), ("random", 1, 1e-12)):
            made = GraphMethod("gin", {"d_hidden": 32, "depth": 3}, epochs=epochs, learning_rate=rate, **how)
            file = Model(made.fit(many), targets=many.targets).save(tmp_path / f"{name}{seed}.mgm")
            fused = {"init": str(file), "callback": "fused(model=gin(d_hidden=32, depth=3))"}
            alone = {"params": {"d_hidden": 32, "depth": 3}}
            method = GraphMethod("gin", epochs=60, **how, **(alone if off else fused)).fit(train)
            errors.setdefault(name, []).append(error(method, test))
        method = GraphMethod("gin", epochs=60, **how, **alone).fit(train)
        errors.setdefault("small network alone", []).append(error(method, test))
        ratios.append(errors["oracle"][-1] / errors["small network alone"][-1])
    random = np.divide(errors["random"], errors["small network alone"])
    beside = {**errors, "RMSE of random states / alone": random.tolist()}
    effect("RMSE of fused / that of the small network alone", ratios, at_most=0.8, beside=beside)
    assert random.mean() <= 1.05


def error(method: GraphMethod, test: Table) -> float:
    assert test.y is not None
    return float(np.sqrt(np.square(method.predict(test).value - test.y).mean()))
