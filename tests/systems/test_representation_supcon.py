"""Supervised contrast: its loss pair by pair, near molecules of another class, and what a linear probe finds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem, rdBase
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional as F

import molgraph
from molgraph.base.errors import LabelError
from molgraph.data.table import Table, Target, make_table
from molgraph.data.view import make_views
from molgraph.nn.contrastive import info_nce
from molgraph.nn.supervised_contrast import sup_con
from molgraph.train.fingerprint_labels import FingerprintLabels
from molgraph.train.network import build_network
from molgraph.train.objective import make_objective
from molgraph.train.objectives.supcon import SupCon
from molgraph.train.outputs import Outputs
from molgraph.train.preparation import prepare
from tests.systems.contrasts import SIZE, STEP, VIEWS, untrained
from tests.systems.effect import Effect


def by_pairs(z: Tensor, labels: list[int], temperature: float, near: Any = None) -> list[float]:
    """Equation 2 of Khosla et al. 2020, sum by sum; a negative counts ``near[i][a]`` times."""
    losses, rows = [], range(len(labels))
    for i in rows:
        e = [math.exp(float(z[i] @ z[a].detach()) / temperature) for a in rows]
        counts = [1.0 if near is None or labels[a] == labels[i] else near[i][a] for a in rows]
        below = sum(counts[a] * e[a] for a in rows if a != i)
        own = [-math.log(e[p] / below) for p in rows if p != i and labels[p] == labels[i]]
        losses.append(sum(own) / len(own) if own else 0.0)
    return losses


@pytest.mark.system("supcon", rung="exact")
def test_the_loss_is_that_of_the_equation_pair_by_pair(off: str) -> None:
    torch.manual_seed(0)
    z, labels = F.normalize(torch.randn(12, 5, dtype=torch.float64), dim=1), [0, 1, 2, 0, 1, 2, 0, 0, 1, 3, 2, 0]
    taken = torch.arange(12) if off else torch.tensor(labels)  # off: each row has a class of its own
    torch.testing.assert_close(
        sup_con(z @ z.T / 0.2, taken), torch.tensor(by_pairs(z, labels, 0.2)).double(), rtol=0, atol=1e-5
    )


@pytest.mark.system("supcon", rung="exact")
def test_with_a_class_for_each_molecule_it_is_info_nce_of_two_views(off: str) -> None:
    torch.manual_seed(0)
    z = F.normalize(torch.randn(16, 5, dtype=torch.float64), dim=1)
    scores, label = z @ z.T / 0.1, torch.arange(8).repeat(2) % (4 if off else 8)
    known = info_nce(scores, torch.arange(16).roll(8), torch.eye(16, dtype=torch.bool)).losses
    torch.testing.assert_close(sup_con(scores, label), known, rtol=0, atol=1e-9)


@pytest.mark.system("supcon", rung="exact")
def test_the_mean_inside_of_the_logarithm_is_never_more(off: str) -> None:
    """In 100 of 100 random batches, and somewhere it is less."""
    gaps = []
    for seed in range(100):
        rng = torch.Generator().manual_seed(seed)
        z = F.normalize(torch.randn(16, 4, dtype=torch.float64, generator=rng), dim=1)
        labels = torch.randint(4, (16,), generator=rng)
        inside, outside = (sup_con(z @ z.T / 0.1, labels, mean=mean).mean() for mean in ("in", "out"))
        gaps.append(float(inside - outside if off else outside - inside))
    assert min(gaps) >= 0 and max(gaps) > 0.1


def labelled(smiles: list[str], y: np.ndarray) -> Table:
    """A table of classes, NaN where one is missing."""
    return make_table(smiles, targets=tuple(Target(f"t{i}", "binary") for i in range(y.shape[1])), y=y)


@pytest.mark.system("supcon", rung="exact")
def test_the_objective_averages_targets_and_near_molecules_of_another_class_count_more(off: str) -> None:
    smiles = ["Cc1ccccc1O", "Cc1ccccc1N", "CCCCO", "CCCCN", "C#N"]
    y = np.array([[0, 1], [1, np.nan], [0, 0], [1, 1], [0, 1.0]])
    bits = FingerprintLabels()
    found = prepare(
        labelled(smiles, y), None, "gin", None, None, {}, views=make_views("mask"), judge_views=True, labels=bits
    )
    torch.manual_seed(0)
    network = build_network(found.inputs, {**SIZE, "norm": "none"}, joiner="concat", d_extra=0)
    how = "supcon(temperature=0.2, cliffs=0)" if off else "supcon(temperature=0.2, cliffs=2)"
    learns: Any = make_objective(how, {}, network, found.inputs, found.outputs)
    batch = found.train.sample(np.tile(np.arange(5), 2), np.random.default_rng(0))
    network.prepare(batch)
    loss = learns(network, batch, STEP)
    z = F.normalize(learns.project(network.encoder(batch.parts[0].batch).graphs), dim=1)
    sets = [set(np.flatnonzero(row)) for row in np.tile(bits.make(smiles, 1), (2, 1))]
    near = [[1 + 2 * len(a & b) / len(a | b) for a in sets] for b in sets]
    first = sum(by_pairs(z, [0, 1, 0, 1, 0] * 2, 0.2, near))
    known = [i for i in range(10) if i % 5 != 1]
    part = [[near[a][b] for b in known] for a in known]
    second = sum(by_pairs(z[known], [1, 0, 1, 1] * 2, 0.2, part))
    assert loss.count == 18 and loss.total.item() == pytest.approx(first + second, rel=1e-4)


@pytest.mark.system("supcon", rung="exact")
def test_numbers_are_refused(off: str) -> None:
    words, targets = "", (Target("a", "binary"), Target("y", "binary") if off else Target("y"))
    try:
        SupCon.heads(Outputs(targets, np.zeros(2), np.ones(2)))
    except LabelError as error:
        words = str(error)
    assert "y is none" in words


@pytest.mark.system(
    "supcon",
    rung="works",
    null="0.008 [-0.007, 0.024] above contrast without labels after six epochs of 600 molecules: 0.871 beside 0.863",
)
def test_a_linear_probe_of_held_out_molecules_finds_the_class(off: str, effect: Effect, data_dir: Path) -> None:
    """BBBP, 600 molecules and 800 others drawn at random; off: the labels of the encoder's training are shuffled."""
    frame = pd.read_csv(data_dir / "bbbp/BBBP.csv")
    with rdBase.BlockLogs():
        frame = frame[[Chem.MolFromSmiles(text) is not None for text in frame["smiles"]]]
    frame = frame.drop_duplicates("smiles").sample(1400, random_state=0)
    smiles, y = frame["smiles"].tolist(), frame[["p_np"]].to_numpy(float)
    aucs: dict[str, list[float]] = {"supcon": [], "contrast": [], "untrained": []}
    how: dict[str, Any] = {"epochs": 6, "batch_size": 64, "threads": 1, "learning_rate": 1e-3, "views": VIEWS}
    for seed in range(3):
        labels = np.random.default_rng(seed).permutation(y[:600]) if off else y[:600]
        size = {"d_hidden": 32, "depth": 3}
        made: dict[str, Any] = {
            "supcon": molgraph.pretrain(
                labelled(smiles[:600], labels), model="gin", objective="supcon", params=size, seed=seed, **how
            ),
            "contrast": molgraph.pretrain(
                smiles[:600], model="gin", objective="contrast", params=size, seed=seed, **how
            ),
        }
        encoders = {name: model.method.fitted.network.encoder for name, model in made.items()}
        for name, encoder in {**encoders, "untrained": untrained(seed)}.items():
            aucs[name].append(probe(encoder, smiles, y[:, 0]))
    supcon = aucs.pop("supcon")
    gain = [a - b for a, b in zip(supcon, aucs["contrast"], strict=True)]
    effect("ROC AUC above contrast without labels", gain, at_least=0.02, beside={"ROC AUC of supcon": supcon, **aucs})


def probe(encoder: Any, smiles: list[str], y: np.ndarray) -> float:
    """ROC AUC of a logistic regression on the encoder's states, learned from the first 600."""
    found = prepare(make_table(smiles), None, "gin", None, None, {}, targets=False)
    batch = found.train.sample(np.arange(len(smiles))).parts[0].batch
    with torch.no_grad():
        h = encoder.eval()(batch).graphs.numpy()
    h = (h - h[:600].mean(axis=0)) / (h[:600].std(axis=0) + 1e-6)
    model = LogisticRegression(C=0.1, max_iter=500).fit(h[:600], y[:600])
    return float(roc_auc_score(y[600:], model.decision_function(h[600:])))
