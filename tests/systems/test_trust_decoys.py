"""Adversarial filtering: properties that tell actives from a pool's molecules tell them from the decoys no longer."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from molgraph.chem.decoys import choose_decoys, property_table
from molgraph.chem.fingerprints import morgan
from molgraph.data.read import read_table
from tests.systems.effect import Effect


def area(model: object, one: np.ndarray, two: np.ndarray) -> float:
    """The AUC of a fresh classifier, by five folds."""
    x, y = np.vstack([one, two]), np.repeat([1, 0], [len(one), len(two)])
    return float(roc_auc_score(y, cross_val_predict(model, x, y, cv=5, method="predict_proba")[:, 1]))


@pytest.mark.system("adversarial-filtering", rung="exact")
def test_decoys_are_distinct_rows_of_the_pool_and_those_replaced_were_easy(off: str) -> None:
    """One property: with all easy decoys replaced in a round by harder ones, none that moved was harder before."""
    rng = np.random.default_rng(0)
    actives, pool = rng.normal(3, 1, (60, 1)), rng.normal(0, 2, (600, 1))
    none = choose_decoys(actives, pool, 60, rounds=1, replace=0.0, seed=4)
    one = choose_decoys(actives, pool, 60, rounds=1, replace=0.0 if off else 1.0, seed=4)
    for made in (none, one):
        assert len({*made.rows.tolist()}) == 60 and made.rows.min() >= 0 and made.rows.max() < 600
    assert one.auc == none.auc, "the first round judges the same random decoys"
    gone, new = np.setdiff1d(none.rows, one.rows), np.setdiff1d(one.rows, none.rows)
    assert len(gone) == len(new) > 10
    assert np.median(pool[new]) > np.median(pool[gone]) + 1


@pytest.mark.system("adversarial-filtering", rung="works")
def test_a_planted_shift_of_the_weight_is_gone_and_the_motif_is_not(off: str, effect: Effect) -> None:
    """Lipophilicity: actives have an aromatic fluorine and are heavy, the pool is light; a fresh classifier judges."""
    texts = [str(text) for text in read_table("dataset:lipo").smiles]
    x, motif = property_table(texts), Chem.MolFromSmarts("cF")
    has = np.array([Chem.MolFromSmiles(text).HasSubstructMatch(motif) for text in texts])
    before, after, whole, same = [], [], [], []
    for seed in (5, 6, 7):
        rng = np.random.default_rng(seed)
        actives = rng.permutation(np.flatnonzero(has & (x[:, 0] > 28)))[:200]
        light = ~has & ((x[:, 0] < 26) | (rng.random(len(texts)) < 0.2))
        pool = np.flatnonzero(light)
        for replace, areas in ((0.0, before), (0.0 if off else 0.5, after)):
            made = choose_decoys(x[actives], x[pool], len(actives), replace=replace, seed=seed)
            areas.append(area(GradientBoostingClassifier(random_state=0), x[actives], x[pool[made.rows]]))
        prints = [morgan([texts[i] for i in rows]).x for rows in (actives, pool[made.rows])]
        whole.append(area(RandomForestClassifier(100, random_state=0), *prints))
        like = rng.permutation(len(texts))
        made = choose_decoys(x[like[:200]], x[like[200:]], 200, seed=seed)
        same.append(area(GradientBoostingClassifier(random_state=0), x[like[:200]], x[like[200:][made.rows]]))
    assert min(before) >= 0.9 and min(whole) >= 0.9, (before, whole)
    assert abs(np.mean(same) - 0.5) <= 0.05, same
    beside = {"random decoys": before, "with the fingerprint": whole, "of one population": same}
    effect("AUC of properties after filtering", after, at_most=0.65, beside=beside)
