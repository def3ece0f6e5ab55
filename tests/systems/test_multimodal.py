"""Entities that condition each other, against the sum of what each says alone."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.nn.encoder import Encoded
from molgraph.nn.film_joiners import Film2, Film2Layer
from molgraph.nn.joiners import Bilinear, Concat, JoinPart
from molgraph.train.method import GraphMethod
from tests.systems.effect import Effect

ASSAYS = ("MKTAYIAKQRQISFVKSHFSRQ", "GIVEQCCTSICSLYQLENYCN")


@pytest.mark.parametrize("make", [Bilinear, Film2])
@pytest.mark.system("txt2pi-with-film-2", rung="exact")
def test_each_state_scales_the_others(make: Any, off: str) -> None:
    """What two molecules and two assays give in pairs is more than a sum of one part for each."""
    torch.manual_seed(0)
    joiner, a, b = (Concat if off else make)((5, 7)), torch.randn(2, 5), torch.randn(2, 7)
    gaps = []
    for assays in (b, b[[0, 0]]):
        h = joiner([JoinPart(Encoded(s), torch.tensor(of)) for s, of in ((a, [0, 0, 1, 1]), (assays, [0, 1, 0, 1]))])
        gaps.append((h[0] - h[1] - h[2] + h[3]).abs().max().item())
    assert gaps[0] > 1e-2 and gaps[1] < 1e-6


@pytest.mark.system("txt2pi-with-film-2", rung="exact")
def test_a_layer_is_the_papers_and_without_gamma_and_beta_no_side_is_changed(off: str) -> None:
    torch.manual_seed(0)
    layer, a, b = Film2Layer(5, 7, 6), torch.randn(4, 5), torch.randn(4, 7)
    expected = []
    for k, (x, condition) in enumerate(((a, b), (b, a))):
        gamma, beta = condition @ layer.films[k].weight[:6].T, condition @ layer.films[k].weight[6:].T
        gamma, beta = gamma + layer.films[k].bias[:6], beta + layer.films[k].bias[6:]
        expected.append(torch.relu((1 + gamma) * (x @ layer.values[k].weight.T + layer.values[k].bias) + beta))
    if off:
        for film in layer.films:
            torch.nn.init.zeros_(film.weight)
    torch.testing.assert_close(layer(a, b), expected[0] + expected[1])
    for film in layer.films:
        torch.nn.init.zeros_(film.weight), torch.nn.init.zeros_(film.bias)
    plain = layer.values[0](a).relu() + layer.values[1](b).relu()
    torch.testing.assert_close(layer(a, b), plain)


@cache
def xor_table() -> Table:
    """Molecules with and without a feature in two assays; active is one of the two, and not both."""
    chains = ["C" * i + atom + "C" * j for atom in "NO" for i in range(1, 9) for j in range(i, i + 8)][:128]
    smiles, feature = chains, np.array(["N" in text for text in chains])
    rows = [(text, ASSAYS[j], int(has ^ bool(j))) for text, has in zip(smiles, feature, strict=True) for j in (0, 1)]
    frame = pd.DataFrame(rows, columns=["smiles", "sequence", "y"])
    return read_table(frame, sequence="sequence", targets="y:binary")


@cache
def auc(joiner: str, head_layers: int, seed: int) -> float:
    """On pairs of molecules that were not seen."""
    table = xor_table()
    molecules = np.random.default_rng(seed).permutation(128)
    part = np.isin(np.arange(256) // 2, molecules[:80])
    small = {"gin.d_hidden": 16, "gin.depth": 2, "deepdta.d_embed": 8, "deepdta.n_filters": 8}
    how: dict[str, Any] = {"head_layers": head_layers, "epochs": 30, "batch_size": 16, "learning_rate": 3e-3}
    method = GraphMethod("gin+deepdta", params=small, joiner=joiner, seed=seed, threads=1, **how)
    method.fit(table.take(np.flatnonzero(part)))
    test = table.take(np.flatnonzero(~part))
    return float(roc_auc_score(test.y[:, 0], method.predict(test).value[:, 0]))


@pytest.mark.system("txt2pi-with-film-2", rung="works")
def test_an_exclusive_or_of_molecule_and_assay_is_learned(off: str, effect: Effect) -> None:
    """Amines are active in one assay and ethers in the other."""
    seeds = range(2)
    sums = [auc("concat", 1, seed) for seed in seeds]
    beside = {"concat with a linear head": sums}
    if not off:
        beside["bilinear with a linear head"] = [auc("bilinear", 1, seed) for seed in seeds]
        assert np.mean(sums) < 0.6
    effect("AUC", sums if off else [auc("film2", 1, seed) for seed in seeds], at_least=0.95, beside=beside)
