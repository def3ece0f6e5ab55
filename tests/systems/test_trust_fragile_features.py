"""Useful and robust features: the closed form for boxes, and a planted feature that a tautomer turns over."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import molgraph
from molgraph.auxiliary.study.fragile_features import usefulness
from molgraph.base.contracts import Target
from molgraph.chem.fingerprints import morgan
from molgraph.chem.variants import variant
from molgraph.data.read import read_table
from molgraph.data.table import make_table
from tests.systems.effect import Effect


@pytest.mark.system("robust-non-robust-features", rung="exact")
def test_robust_usefulness_is_the_closed_form_of_a_linear_feature_in_a_box(off: str) -> None:
    """Ilyas et al. 2019, section 2: ``E[y w x] - eps |w|_1`` by all corners; off: the molecules as they are."""
    rng = np.random.default_rng(0)
    x, w, eps, rows = rng.normal(size=(40, 5)), rng.normal(size=5), 0.3, np.arange(40)
    y = np.sign(x @ w + 0.3 * rng.normal(size=40))
    corners = [] if off else [(rows, ((x + eps * np.array(c)) @ w)[:, None]) for c in product((-1, 1), repeat=5)]
    useful, robust = usefulness(y, (x @ w)[:, None], corners)
    np.testing.assert_allclose(useful, (y * (x @ w)).mean(), atol=1e-12)
    np.testing.assert_allclose(robust, (y * (x @ w)).mean() - eps * np.abs(w).sum(), atol=1e-6)


@pytest.mark.system("robust-non-robust-features", rung="works")
def test_the_bit_of_a_planted_tautomer_comes_first(off: str, effect: Effect) -> None:
    """Pyridones written as such have high labels: their own bit predicts, and is gone in the hydroxypyridine."""
    places = []
    esol = [str(text) for text in read_table("dataset:esol").smiles]
    for seed in (11, 12, 13):
        rng = np.random.default_rng(seed)
        rest = [esol[i] for i in rng.permutation(len(esol)) if not variant("tautomer", esol[i], rng)][:120]
        tails = ["C", "CC", "CCC", "CCCC", "C(C)C", "CF", "CCl", "CO", "CN(C)C", "CCO", "CC(C)C", "CCOC"]
        pyridones = [f"O=c1cc({tail})cc[nH]1" for tail in tails]
        texts = [*rest, *pyridones]
        y = np.r_[rng.normal(0, 1, len(rest)), rng.normal(3, 1, len(pyridones))]
        changes = "order" if off else "tautomer"
        table = make_table(texts, targets=(Target("y"),), y=y[:, None])
        found = molgraph.study(f"fragile-features(changes={changes})", table, seed=seed)
        assert off or found.sound, found
        top = found.frame.iloc[0]
        bit = morgan(texts).x[:, int(str(top["feature"]).split()[1].rstrip(":"))]
        theirs = bit[len(rest) :].mean() >= 0.9 and bit[: len(rest)].mean() <= 0.1
        places.append(float(theirs and top["fragile"] > 0.5 * top["useful"]))
    effect("share of seeds in which a bit of the pyridone is the most fragile", places, at_least=1.0)
