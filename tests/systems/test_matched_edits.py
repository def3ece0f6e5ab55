"""Objective edit-vectors: matched molecular pairs by RDKit, its loss by loops, and edits of held-out molecules."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

import molgraph
from molgraph.chem.matched_pairs import cuts_of
from molgraph.train.edit_labels import EditLabels, repeated_edits
from molgraph.train.objectives.edit_vectors import triplets
from tests.systems.effect import Effect
from tests.systems.test_matched_descriptions import DATA, pretrain

GROUPS = ("F", "Cl", "C", "OC", "N#C", "FC(F)(F)")
ANALOGUES = [
    f"{group}{rest}" for rest in ("c1ccc2ccccc2c1", "c1ccc(C(=O)NC2CC2)cc1", "C1CCN(CC1)c1ccccn1") for group in GROUPS
]


@pytest.mark.system("cpv", rung="exact")
def test_the_pairs_of_an_edit_differ_in_the_same_two_groups(off: str) -> None:
    """By RDKit: each pair is one context with either group, and the vector of two edits is the sum of theirs."""
    labels = EditLabels().make(ANALOGUES, 1)
    edits = repeated_edits(labels[np.random.default_rng(0).permutation(len(labels))] if off else labels)
    assert len(edits) >= 6
    for pairs in edits:
        changes = []
        for before, after in pairs:
            one, two = ({cut.context: cut.group for cut in cuts_of(ANALOGUES[row])} for row in (before, after))
            changes.append({(one[c], two[c]) for c in one.keys() & two.keys() if one[c] != two[c]})
        assert set.intersection(*changes), "one change that all pairs of the edit have"


@pytest.mark.system("cpv", rung="exact")
def test_the_loss_compares_each_vector_with_those_of_other_edits_and_other_products(off: str) -> None:
    torch.manual_seed(0)
    a, p, n = torch.randn(3, 4), torch.randn(3, 4), torch.randn(5, 4)
    excluded = torch.rand(3, 5) < 0.4
    excluded[:, 0] = False
    found = triplets(a, n[:3] if off else p, n, excluded, 1.0)
    for i in range(3):
        near = (a[i] - p[i]).norm()
        each = [max(0.0, (near - (a[i] - n[k]).norm() + 1).item()) for k in range(5) if not excluded[i, k]]
        assert found[i].item() == pytest.approx(sum(each) / len(each), abs=1e-5)


@cache
def bace() -> tuple[list[str], list[str], list[np.ndarray]]:
    """Molecules to learn from, 600 that are held out, and the edits of these."""
    smiles = pd.read_csv(DATA / "bace" / "bace.csv.gz").mol.drop_duplicates().tolist()
    order = np.random.default_rng(0).permutation(len(smiles))
    held = [smiles[i] for i in order[:600]]
    return [smiles[i] for i in order[600:]], held, repeated_edits(EditLabels().make(held, 1))


def same_edit(x: np.ndarray, edits: list[np.ndarray]) -> float:
    """AUC of the cosines of pairs' vectors for the same edit against other edits."""
    v = np.concatenate([x[pairs[:, 1]] - x[pairs[:, 0]] for pairs in edits])
    edit = np.repeat(np.arange(len(edits)), [len(pairs) for pairs in edits])
    v /= np.linalg.norm(v, axis=1, keepdims=True) + 1e-12
    upper = np.triu_indices(len(v), 1)
    return float(roc_auc_score((edit[:, None] == edit)[upper], (v @ v.T)[upper]))


def products(x: np.ndarray, edits: list[np.ndarray], share: float = 1.0) -> float:
    """How often the vector of an edit, added to a molecule of another series, has its product among the 10 nearest."""
    reached = []
    for pairs in edits:
        for one, two in permutations(pairs.tolist(), 2):
            distance = np.linalg.norm(x - (x[two[0]] + share * (x[one[1]] - x[one[0]])), axis=1)
            distance[two[0]] = np.inf
            reached.append((distance < distance[two[1]]).sum() < 10)
    return float(np.mean(reached))


@cache
def edit_figures() -> dict[str, list[float]]:
    """AUC and share of products of the trained encoder, and of one without training, in 600 held-out molecules."""
    train, held, edits = bace()
    found = dict[str, list[float]](auc=[], products=[], auc_untrained=[], products_untrained=[], without_vector=[])
    for seed in range(2):
        x = molgraph.embed(pretrain(train, "edit-vectors", seed, epochs=12), held).value
        fresh = pretrain(train[:80], "masked-atoms", seed, epochs=1, learning_rate=1e-9)
        u = molgraph.embed(fresh, held).value
        found["auc"].append(same_edit(x, edits))
        found["auc_untrained"].append(same_edit(u, edits))
        found["products"].append(products(x, edits))
        found["products_untrained"].append(products(u, edits))
        found["without_vector"].append(products(x, edits, 0.0))
    return found


@pytest.mark.skipif(not DATA.is_dir(), reason="needs MOLGRAPH_DATA")
@pytest.mark.system(
    "cpv",
    rung="works",
    null="sums of atoms' states are nearly additive without training, and separate the edits of one series as well",
)
def test_training_separates_edits_better_than_no_training(off: str, effect: Effect) -> None:
    found = edit_figures()
    gain = [a - b for a, b in zip(found["auc"], found["auc_untrained"], strict=True)]
    beside = {name: found[name] for name in ("auc", "products", "products_untrained", "without_vector")}
    effect("gain of AUC by training", gain, at_least=0.0, beside=beside)
