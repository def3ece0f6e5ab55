"""Checks of scores of logits: constants, the classes that a classifier does not know, and the path through a model."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import log_softmax
from scipy.stats import spearmanr
from torch import nn
from torch.nn import functional as F

from molgraph.auxiliary.study.open_set import area, measured
from molgraph.chem.fingerprints import morgan
from molgraph.chem.sizes import heavy_atoms
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.datasets import load_dataset
from molgraph.data.table import Table, Target, make_table
from molgraph.study.class_rows import open_set_rate
from molgraph.train.method import GraphMethod
from molgraph.trust.domains.max_logit import MaxLogit
from molgraph.trust.domains.msp import MaxProbability
from molgraph.trust.logits import Logits
from molgraph.trust.with_domain import WithDomain
from tests.systems.effect import Effect
from tests.tiny import series

SIZES = {"d_hidden": 8}
CLASSES = 24


def shifted(x: Logits, constant: float, off: str) -> Logits:
    """The logits with a constant added; the twin's are log-probabilities, which have lost it."""
    return [log_softmax(f + constant, axis=1) if off else f + constant for f in x]


@pytest.mark.system("mls", rung="exact")
def test_a_constant_moves_the_largest_logit_and_no_probability(off: str) -> None:
    """Of two targets with several classes."""
    x = [4 * np.random.default_rng(seed).normal(size=(50, 6)) for seed in (1, 2)]
    before, after = x, shifted(x, 3.25, off)
    np.testing.assert_allclose(MaxProbability().score(after), MaxProbability().score(before), rtol=0, atol=1e-12)
    np.testing.assert_allclose(MaxLogit().score(after), MaxLogit().score(before) - 3.25, rtol=0, atol=1e-12)


@pytest.mark.system("mls", rung="exact")
def test_a_constant_in_the_bias_of_a_networks_head_is_in_its_domain_score(off: str) -> None:
    """The outputs before softmax arrive; the twin's constant is added to one class alone, as no softmax loses it."""
    table, n = series(40), 3
    y = np.arange(40) % n
    table = make_table(table.smiles, targets=(Target("kind", "multiclass", classes=tuple("abc")),), y=y)
    made = WithDomain("dmpnn", by="max_logit+msp", params={"epochs": 1, "threads": 1, "params": SIZES}).fit(table)
    before = made.predict(table)
    (part,) = made.innermost
    assert isinstance(part, GraphMethod)
    with torch.no_grad():
        last = [each for each in part.ready().network.head.modules() if isinstance(each, nn.Linear)][-1]
        last.bias[: 1 if off else n] += 2.0
    after = made.predict(table)
    np.testing.assert_allclose(after.value, before.value, rtol=0, atol=1e-6)
    moved = after.extra["domain_max_logit"] - before.extra["domain_max_logit"]
    np.testing.assert_allclose(moved, -2.0, rtol=0, atol=1e-5)
    np.testing.assert_allclose(after.extra["domain_msp"], before.extra["domain_msp"], rtol=0, atol=1e-6)


@pytest.mark.system("mls", rung="exact")
def test_the_open_set_rate_is_the_area_under_its_curve(off: str) -> None:
    """Thresholds one by one; the twin does not count whether a known molecule is given its class."""
    rng = np.random.default_rng(3)
    far, right, unknown = rng.normal(size=60), rng.random(60) < 0.7, rng.normal(1, 1, 40)
    cuts = np.sort(np.concatenate([[-np.inf], far, unknown, [np.inf]]))
    taken = [(float((unknown <= c).mean()), float((right & (far <= c)).mean())) for c in cuts]
    by_hand = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(taken))
    found = open_set_rate(far, np.ones(60, dtype=bool) if off else right, unknown)
    assert abs(found - by_hand) < 1e-12


def proteins() -> tuple[Table, np.ndarray]:
    """The ligands of the proteins of PDBbind with most of them, and the number of the protein of each."""
    table = load_dataset("pdbbind_dta").table
    columns = {each.kind: each.values for each in table.entities}
    frame = pd.DataFrame({"smiles": columns["molecule"], "protein": columns["sequence"]}).drop_duplicates("smiles")
    names = [name for name, _ in Counter(frame["protein"]).most_common(CLASSES)]
    frame = frame[frame["protein"].isin(names)]
    return make_table(frame["smiles"].to_numpy()), frame["protein"].map(names.index).to_numpy()


def logits_by_epoch(
    x: np.ndarray, y: np.ndarray, judged: list[np.ndarray], epochs: list[int], seed: int
) -> list[list[np.ndarray]]:
    """The logits of several sets of bits after those numbers of epochs, of a perceptron of one hidden layer."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, int(y.max()) + 1))
    adam, found = torch.optim.Adam(network.parameters(), 5e-4), []
    bits, goal = torch.from_numpy(x).float(), torch.from_numpy(y).long()
    for epoch in range(1, max(epochs) + 1):
        for rows in torch.randperm(len(x)).split(32):
            adam.zero_grad()
            F.cross_entropy(network(bits[rows]), goal[rows]).backward()
            adam.step()
        if epoch in epochs:
            with torch.no_grad():
                found.append([network(torch.from_numpy(each).float()).double().numpy() for each in judged])
    return found


@pytest.mark.system("mls", rung="works")
def test_it_tells_ligands_of_unknown_proteins_as_well_as_probabilities_do(off: str, effect: Effect) -> None:
    """PDBbind's proteins, half of them unknown; the twin scores by the mean logit, which no class is in.

    The AUC grows with the accuracy over eight numbers of epochs.
    """
    table, code = proteins()
    texts = [str(text) for text in table.smiles]
    every, size = morgan(texts).x, heavy_atoms(texts)
    epochs = [1, 2, 3, 4, 6, 9, 14, 20]
    gaps, ranks = list[float](), list[float]()
    beside: dict[str, list[float]] = {}
    for seed in range(200, 205):
        rng = np.random.default_rng(seed)
        order = rng.permutation(CLASSES)
        known = rng.permutation(np.flatnonzero(np.isin(code, order[:12])))
        unknown, cut = np.flatnonzero(np.isin(code, order[12:])), round(0.7 * len(known))
        train, test = known[:cut], known[cut:]
        y = np.argsort(order)[code]
        areas, right = list[float](), list[float]()
        for one, two in logits_by_epoch(every[train], y[train], [every[test], every[unknown]], epochs, seed):
            scores = measured([one], [two])
            if off:
                scores["max_logit"] = (-one.mean(axis=1), -two.mean(axis=1))
            areas.append(area(*scores["max_logit"]))
            right.append(float((one.argmax(axis=1) == y[test]).mean()))
        ranks.append(float(spearmanr(right, areas).statistic))
        gaps.append(areas[-1] - area(*scores["msp"]))
        near = [1 - find_nearest(every[rows], every[train]).similarity for rows in (test, unknown)]
        figures = {name: area(*pair) for name, pair in scores.items()} | {"accuracy": right[-1], "rank": ranks[-1]}
        figures |= {"Tanimoto distance": area(*near), "heavy atoms": area(size[test], size[unknown])}
        for name, value in figures.items():
            beside.setdefault(name, []).append(value)
    assert np.mean(ranks) > 0
    effect("AUC of the largest logit less that of the largest probability", gaps, at_least=-0.01, beside=beside)
