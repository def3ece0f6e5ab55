"""Checks of the complexity score: code lengths by hand, bits and nats, and simple molecules that look usual."""

from __future__ import annotations

from collections import Counter
from math import log2
from pathlib import Path

import numpy as np
import pytest

from molgraph.chem.fingerprints import morgan
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.sizes import heavy_atoms
from molgraph.chem.tanimoto import find_nearest
from molgraph.chem.text_code import END, TextCode
from molgraph.data.read import read_table
from molgraph.data.table import make_table
from molgraph.generate.ngram import NgramGenerator
from molgraph.train.model import Model
from molgraph.trust.domains.complexity import Complexity, complexity
from tests.systems.effect import Effect
from tests.systems.test_trust_open_set import area

ID = "input-complexity-score-s"


@pytest.mark.system(ID, rung="exact")
def test_the_general_code_is_that_of_the_formula_and_complete(off: str) -> None:
    """Probabilities of all that may follow add up to 1; the twin's are those of the counts, without an escape."""
    code = TextCode.fit(["CCO", "CCCC", "CN"], 3)
    behind = [Counter("CCOCCCCCN") + Counter({END: 3}), Counter({"C": 4, "O": 1, "N": 1, END: 1})]  # of nothing, of C
    behind.append(Counter({"O": 1, "C": 2, END: 1}))  # of CC
    total = 0.0
    for c in (END, *map(chr, range(1, 257))):
        p = 1 / 257
        for counts in behind:
            p = counts[c] / counts.total() if off else (counts[c] + p) / (counts.total() + 1)
        assert abs(code.probability("CC", c) - p) < 1e-12
        total += p
    assert abs(total - 1) < 1e-12
    parts = [("", "C"), ("C", "C"), ("CC", "O"), ("CO", END)]
    assert abs(code.bits("CCO") + sum(log2(code.probability(*part)) for part in parts)) < 1e-12


@pytest.mark.system(ID, rung="exact")
def test_the_score_of_a_models_file_is_in_bits_and_the_file_comes_along(off: str, tmp_path: Path) -> None:
    """``S = -log2 M - L`` with counts by hand; the twin leaves the likelihood in nats."""
    path = Model(NgramGenerator(order=2).fit(make_table(["CCO", "CO", "CCN"])), targets=()).save(tmp_path / "lm.mgm")
    texts = np.array(["CCO", "CO", "N"], dtype=object)
    made = Complexity(str(path)).fit(texts)
    by_hand = np.array([-log2(2 / 5 * 2 / 5 * 1), -log2(2 / 5 * 1), 8.0 * 2])  # CC and CO after C: 2 of 5 each
    if off:
        by_hand[:2] *= np.log(2)
    np.testing.assert_allclose(made.score(texts), by_hand - complexity(texts.tolist()), rtol=0, atol=1e-9)
    path.unlink()
    again = Complexity(str(path)).restore(made.state())
    np.testing.assert_array_equal(again.score(texts), made.score(texts))


@pytest.mark.system(ID, rung="works")
def test_alkanes_and_simple_alcohols_are_far_and_not_near(off: str, effect: Effect) -> None:
    """Lipophilicity's molecules against chains; the twin has the model's code length alone, below 1/2."""
    every = [each.smiles for each in canonical_smiles(read_table("dataset:lipo").smiles, workers=0)]
    ends = (("", ""), ("", "O"), ("CC(O)", ""))
    simple = np.array([a + "C" * n + b for a, b in ends for n in range(4, 30)], dtype=object)
    areas, beside = list[float](), dict[str, list[float]]()
    for seed in (50, 51, 52):
        order = np.random.default_rng(seed).permutation(len(every))
        texts = np.array(every, dtype=object)[order]
        train, test = texts[:2500], texts[2500:3100]
        made = Complexity(correct=not off).fit(train)
        areas.append(area(made.score(test), made.score(simple)))
        seen = morgan(list(train)).x
        near = [1 - find_nearest(morgan(list(rows)).x, seen).similarity for rows in (test, simple)]
        long = simple[heavy_atoms(simple) >= 20]
        figures = {
            "by the model alone": area(made.bits(test), made.bits(simple)),
            "of 20 to 32 heavy atoms": area(made.score(test), made.score(long)),
            "Tanimoto distance": area(*near),
            "heavy atoms": area(heavy_atoms(test), heavy_atoms(simple)),
        }
        for name, value in figures.items():
            beside.setdefault(name, []).append(value)
    assert np.mean(beside["by the model alone"]) < 0.5
    effect("AUC of alkanes and alcohols against drug-like molecules", areas, at_least=0.7, beside=beside)
