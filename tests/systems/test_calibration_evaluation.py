"""Temperature sweeps: quality falls and diversity rises; whole frontiers tie where one temperature picks a winner."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from molgraph.data.sources import builtin
from molgraph.evaluate.generation.sweep import Sweep, frontier_report, sweep_temperatures
from molgraph.generate.ngram import NgramGenerator
from tests.evaluate.test_generation_sweep import T, binomial, curve
from tests.systems.effect import Effect


def one_point(sweep: Sweep) -> Sweep:
    """The middle temperature alone."""
    return Sweep(sweep.name, T[3:4], sweep.n, {name: each[3:4] for name, each in sweep.values.items()})


@pytest.mark.system("temperature-sweep", rung="exact")
def test_a_model_ties_with_itself_at_other_temperatures_and_one_of_each_calls_a_winner(off: str) -> None:
    ties, winners = 0, 0
    for seed in range(20):
        a, b = (binomial("a", *curve(np.array(T) * f), seed=seed + k) for f, k in ((1.0, 0), (0.8, 1000)))
        compared = (one_point(a), one_point(b)) if off else (a, b)
        ties += frontier_report(*compared, diversity="unique").tie
        one, two = a.to_frame().iloc[3], b.to_frame().iloc[3]
        winners += two["valid_low"] > one["valid_high"]
    assert ties >= 16 and winners == 20, (ties, winners)


@pytest.mark.system("temperature-sweep", rung="exact")
def test_a_better_model_dominates_at_matched_diversities(off: str) -> None:
    q, d = curve(np.array(T))
    a, b = binomial("a", 0.7 * q, d, 1), binomial("b", q, d, 2)
    a, b = (one_point(a), one_point(b)) if off else (a, b)
    found = frontier_report(a, b, diversity="unique")
    assert found.b_dominates > 0.9 and found.a_dominates == 0 and not found.tie and found.area.low > 0
    back = frontier_report(b, a, diversity="unique")
    assert back.area.value == pytest.approx(-found.area.value) and back.a_dominates == found.b_dominates
    assert "dominates a at" in found.sentence and found.sentence.endswith("not a tie")


@pytest.mark.system("temperature-sweep", rung="works")
def test_validity_falls_and_diversity_rises_with_the_temperature(off: str, effect: Effect) -> None:
    """Of counts of six tokens; without a temperature each draw is one more at 1."""
    made, found = NgramGenerator(order=6).fit(builtin.nci()), []
    how = {"n": 400, "measures": ["valid", "int_div"], "halves": 2}
    for seed in range(3):
        if off:
            rows = [sweep_temperatures("off", made, [1.0], seed=100 * seed + k, **how).values for k in range(len(T))]
            values = {name: np.concatenate([row[name] for row in rows]) for name in ("valid", "int_div")}
        else:
            values = dict(sweep_temperatures("ngram", made, T, seed=seed, **how).values)
        found.append([spearmanr(T, values[name][:, 0]).statistic for name in ("valid", "int_div")])
    valid, diverse = np.array(found).T
    both = [float(min(-a, b)) for a, b in zip(valid, diverse, strict=True)]
    beside = {"with validity": valid.tolist(), "with diversity": diverse.tolist()}
    effect("rank correlation of temperature, the weaker of two", both, at_least=0.9, beside=beside)
