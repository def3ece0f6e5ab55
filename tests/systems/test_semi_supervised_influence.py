"""Influence of pseudo-labels on the validation loss: against refits, and with wrong ones planted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import roc_auc_score

from molgraph.auxiliary.study.pseudo_labels import Rows, influences, last_layer
from molgraph.chem.fingerprints import morgan
from molgraph.data.read import read_table
from tests.systems.effect import Effect

STEP = 1e-4  # of a weight


def rows(n: int, seed: int, *, classes: bool) -> Rows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    y = x @ [1.0, -0.5, 0.2, 0.0] + 0.7 * rng.normal(size=n) + 0.3
    return Rows(x, (y > 0).astype(float) if classes else y)


def loss(layer: np.ndarray, valid: Rows, *, classes: bool) -> float:
    raw = valid.x @ layer[:-1] + layer[-1]
    each = np.logaddexp(0, raw) - valid.y * raw if classes else (raw - valid.y) ** 2
    return float(each.sum())


@pytest.mark.parametrize("classes", [False, True], ids=["ridge", "logistic"])
@pytest.mark.system("per-example-ssl-weights", rung="exact")
def test_the_implicit_gradient_is_that_of_refits(classes: bool, off: str) -> None:
    labelled, pseudo, valid = (rows(n, seed, classes=classes) for n, seed in ((20, 0), (9, 1), (15, 2)))
    influence = influences(labelled, pseudo, valid, 0.3, classes=classes)
    if off:  # the gradients' product without the Hessian
        layer = last_layer(labelled, 0.3, classes=classes)
        influence = (pseudo.x @ valid.x.T @ (valid.x @ layer[:-1] - valid.y)) * (pseudo.x @ layer[:-1] - pseudo.y)
    both = Rows(*(np.concatenate(pair) for pair in zip(labelled, pseudo, strict=True)))
    for u in range(len(pseudo.y)):
        sides = []
        for step in (STEP, -STEP):
            weights = np.ones(len(both.y))
            weights[len(labelled.y) + u] += step
            sides.append(loss(last_layer(both, 0.3, classes=classes, weights=weights), valid, classes=classes))
        assert influence[u] == pytest.approx((sides[0] - sides[1]) / (2 * STEP), rel=0.01, abs=1e-4)


WRONG = 0.3  # of the pseudo-labels


@pytest.mark.data
@pytest.mark.system("per-example-ssl-weights", rung="works", twins=("off", "confidence"))
def test_wrong_pseudo_labels_are_found_by_their_influence(off: str, effect: Effect) -> None:
    """BBBP, 16 axes of fingerprints, 150 labels, as many to judge by: three in ten of a teacher's labels are wrong."""
    table = read_table("dataset:bbbp", on_error="keep")
    prints = morgan([str(text) for text in table.smiles])
    known = np.flatnonzero(prints.ok & np.isfinite(table.y[:, 0]))
    axes, y = TruncatedSVD(16, random_state=0).fit_transform(prints.x[known].astype(float)), table.y[known, 0]
    axes = (axes - axes.mean(axis=0)) / axes.std(axis=0)
    scores: dict[str, list[float]] = {"influence": [], "confidence": [], "the student's own loss": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        first, judges, bare = np.split(rng.permutation(len(y)), (150, 300))
        bare = bare[:700]
        labelled, valid = (Rows(axes[part], y[part]) for part in (first, judges))
        raw = axes[bare] @ (teacher := last_layer(labelled, 1.0, classes=True))[:-1] + teacher[-1]
        wrong = rng.random(len(bare)) < WRONG
        pseudo = Rows(axes[bare], ((raw > 0) ^ wrong).astype(float))
        if off == "off":  # judged by labels that say nothing
            valid = Rows(valid.x, rng.permutation(valid.y))
        harm = influences(labelled, pseudo, valid, 1.0, classes=True)
        both = Rows(np.concatenate([labelled.x, pseudo.x]), np.concatenate([labelled.y, pseudo.y]))
        student = last_layer(both, 1.0, classes=True)
        signed = (pseudo.x @ student[:-1] + student[-1]) * (1 - 2 * pseudo.y)
        for name, score in zip(scores, (harm, -np.abs(raw), signed), strict=True):
            scores[name].append(float(roc_auc_score(wrong, score)))
    beside = {name: values for name, values in scores.items() if name != "influence"}
    shown = scores["confidence" if off == "confidence" else "influence"]
    effect("AUROC of wrong pseudo-labels", shown, at_least=0.8, beside=beside)
