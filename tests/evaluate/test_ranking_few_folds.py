"""Rankings over few folds: paired t-tests where ranks cannot tell, and nothing printed that contradicts the rest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from molgraph.evaluate.benchmark.board import make_boards
from molgraph.evaluate.benchmark.ranking import CONOVER, PAIRED, TUKEY, Ranking, rank_methods
from molgraph.evaluate.benchmark.ranking_effect import effect_interval
from molgraph.evaluate.benchmark.ranking_groups import shared_ranks
from molgraph.evaluate.benchmark.ranking_ranks import friedman, least_p
from molgraph.evaluate.benchmark.report_words import how_tested, resolution
from tests.evaluate.bench_scores import made_up


def uneven(seed: int, k: int, n: int, gap: float) -> pd.DataFrame:
    """Scores of methods whose noise differs a hundredfold: no assumption of Tukey's test holds for long."""
    rng = np.random.default_rng(seed)
    noise = 10 ** rng.uniform(-2, 0, k) * rng.standard_t(3, size=(n, k))
    return pd.DataFrame(
        gap * rng.integers(0, 4, k) + noise + rng.normal(size=(n, 1)), columns=[f"m{i}" for i in range(k)]
    )


def words(folds: pd.DataFrame, metric: str = "rmse") -> tuple[str, str]:
    """What a board of these folds says of its test and of its resolution."""
    rows = made_up({str(m): 0.0 for m in folds}, repeats=1, folds=len(folds), metrics=[metric])
    rows["value"] = folds.to_numpy().ravel()
    (board,) = make_boards(rows)
    return how_tested(board), resolution(board)


def test_a_floor_method_and_a_far_better_one_are_told_apart_over_five_folds() -> None:
    # ROC AUC of nearest neighbours and of the mean on BBBP, as in a five-fold cross-validation
    x = pd.DataFrame({"mean": [0.5] * 5, "knn": [0.889, 0.901, 0.905, 0.893, 0.912]})
    found = rank_methods(x, True, test_over_train=0.25)
    assert found.test == PAIRED and found.table["rank"].to_dict() == {"knn": 1, "mean": 2}
    row, t = found.pair("knn", "mean"), stats.ttest_rel(x["knn"], x["mean"])
    assert row["p"] == pytest.approx(t.pvalue) and found.omnibus is None and np.isnan(found.rank_floor)
    assert (row["low"], row["high"]) == pytest.approx(tuple(t.confidence_interval(0.95)))
    tested, reach = words(x, "roc_auc")
    assert "5 folds are too few for tests by ranks" in tested and "p = 0.0625" in tested
    assert reach.startswith("All methods here are told apart, down to a difference of 0.400.")


def test_methods_far_apart_are_all_told_apart_over_five_folds() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(5, 10)) * 0.05 + np.arange(10.0), columns=[f"m{i}" for i in range(10)])
    x["constant"] = -1.0
    found = rank_methods(x, True, test_over_train=0.25)
    assert found.test == PAIRED and found.pairs["different"].all() and found.table["rank"].tolist() == [*range(1, 12)]
    assert found.floor == found.pairs["difference"].abs().min()
    p = [stats.ttest_rel(x[a], x[b]).pvalue for a, b in zip(found.pairs["a"], found.pairs["b"], strict=True)]
    assert found.pairs["p"].to_numpy() == pytest.approx(multipletests(p, method="bonferroni")[1])


def test_ranks_are_asked_where_a_consistent_order_could_be_significant() -> None:
    assert least_p(5, 2) == pytest.approx(stats.wilcoxon(np.arange(1.0, 6.0)).pvalue) == 0.0625
    assert least_p(5, 3) == pytest.approx(1 - (1 - friedman(np.array([[0.0, 1.0]] * 5))) ** 1.0)
    assert [least_p(5, k) < 0.05 for k in (2, 3, 4, 10)] == [False, True, False, False]
    assert [least_p(n, 10) < 0.05 for n in (6, 7, 25)] == [False, True, True]
    for n, k in ((6, 10), (7, 10), (5, 3), (25, 2)):
        x = uneven(1, k, n, 1.0)
        assert (rank_methods(x, True).test == PAIRED) == (least_p(n, k) >= 0.05)


def consistent(found: Ranking) -> None:
    """Interval, p-value, verdict, floor and ranks say the same."""
    pairs, size = found.pairs, found.pairs["difference"].abs()
    outside = (pairs["low"] > 0) | (pairs["high"] < 0)
    told, wide = pairs["different"], (pairs["wide_low"] > 0) | (pairs["wide_high"] < 0)
    assert (told == (pairs["p"] < found.alpha)).all() and (pairs["survives"] == (told & wide)).all()
    assert (told == outside).all() if found.test in (TUKEY, PAIRED) else (outside | ~told).all()
    overruled = int((outside & ~told).sum())
    assert any(f"in {overruled} of {len(pairs)} pairs" in note for note in found.notes) == (overruled > 0)
    assert told[size > found.floor].all() and pairs["survives"][size > found.floor_wide].all()
    if found.test != TUKEY:
        assert told.all() or not told[size == found.floor].all()
    sign = 1 if found.higher_is_better else -1
    assert (sign * pairs["difference"][told] > 0).all() and found.table["rank"].is_monotonic_increasing


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(2, 12), st.booleans(), st.sampled_from([0.0, 0.1, 3.0]))
def test_interval_floor_and_verdict_never_contradict_each_other(
    seed: int, k: int, n: int, higher: bool, gap: float
) -> None:
    x = uneven(seed, k, n, gap)
    found = rank_methods(x, higher, test_over_train=0.25)
    consistent(found)
    turned = rank_methods(
        x.sample(frac=1, axis=1, random_state=seed).sample(frac=1, random_state=seed), higher, test_over_train=0.25
    )
    assert list(turned.table.index) == list(found.table.index) and turned.test == found.test
    for column in ("p", "low", "d_low", "difference"):
        assert turned.pairs[column].to_numpy() == pytest.approx(found.pairs[column].to_numpy(), rel=1e-6, abs=1e-9)
    assert (turned.floor, turned.floor_wide) == pytest.approx((found.floor, found.floor_wide))


def test_scores_on_a_grid_and_without_spread() -> None:
    rng = np.random.default_rng(5)
    for n in (2, 3, 5, 9):
        for k in (2, 4, 9):
            x = pd.DataFrame(rng.integers(0, 3, (n, k)) / 3, columns=[f"m{i}" for i in range(k)])
            consistent(rank_methods(x, True, test_over_train=0.25))
    base = rng.normal(size=(3, 1))
    steps = rank_methods(pd.DataFrame(base + np.array([0.0, 0.1, 0.1, 0.3]), columns=list("abcd")), True)
    assert steps.test == PAIRED and steps.table["rank"].to_dict() == {"d": 1, "b": 2, "c": 2, "a": 4}
    assert steps.pairs["d_low"].isna().all() and set(steps.pairs["p"]) == {0.0, 1.0}
    same = rank_methods(pd.DataFrame(np.tile(base, 3), columns=list("abc")), True)
    assert not same.pairs["different"].any() and set(same.table["rank"]) == {1}


def test_ranks_decide_where_the_interval_alone_would_tell_apart() -> None:
    x = next(x for x in (uneven(seed, 5, 8, 0.3) for seed in range(20)) if rank_methods(x, False).notes)
    found = rank_methods(x, False)
    pairs = found.pairs
    overruled = pairs[((pairs["low"] > 0) | (pairs["high"] < 0)) & ~pairs["different"]]
    assert found.test == CONOVER and found.floor >= overruled["difference"].abs().max()
    said = f"n {len(overruled)} of 10 pairs the interval excludes 0 and ranks do not tell the two apart"
    said += ": the ranks decide"
    assert found.notes == ("i" + said,) and f" I{said}." in words(x)[0]


def test_the_resolution_is_true_of_the_board() -> None:
    rng = np.random.default_rng(2)
    near = pd.DataFrame(0.8 + 0.01 * rng.normal(size=(2, 3)), columns=list("abc"))
    assert words(near, "roc_auc")[1].startswith("2 folds can tell no two")
    tukey = pd.DataFrame(rng.normal(size=(25, 3)) + np.arange(3.0), columns=list("abc"))
    assert words(tukey)[1].startswith("This board tells two methods apart from a difference of ")
    assert words(tukey, "spearman")[1].startswith("This board") and words(40 * tukey, "roc_auc")[1].startswith(
        "25 folds"
    )
    noisy = pd.DataFrame({"a": [0.0, 0.001, 0.002], "b": [1.0, 1.001, 1.003], "c": [-9.0, 9.0, 30.0]})
    assert words(noisy)[1].startswith("The two methods furthest apart are not told apart here; 1 of 3 pairs are")
    noise = np.array([0.1, 0.001, 0.001, 0.1]) * rng.normal(size=(5, 4))
    middle = pd.DataFrame(noise + np.array([0.0, 1.0, 2.0, 0.05]), columns=list("abcd"))
    near = abs((middle["a"] - middle["d"]).mean())
    told, apart = words(middle)
    assert told.startswith(PAIRED) and apart.startswith("Any two methods further apart than 0.0")
    assert near <= float(apart.split()[6]) < near + 0.0002


def test_equal_methods_beside_a_floor_are_told_apart_in_at_most_5_of_100_worlds() -> None:
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = pd.DataFrame(rng.normal(size=(5, 4)) + 2 * rng.normal(size=(5, 1)), columns=list("abcd")) * 0.02 + 0.8
        x["floor"] = 0.5
        found = rank_methods(x, True)
        assert found.test in (PAIRED, TUKEY)
        wrong += found.table["worse_than"].drop("floor").sum() > 0
    assert 1 <= wrong <= 16  # 10 plus two standard errors


def test_who_beats_a_better_one_counts_as_better() -> None:
    better = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    assert shared_ranks(better).tolist() == [1, 2, 3] and better.sum() == 2


@pytest.mark.parametrize("n", [2, 3, 5, 25, 50])
def test_effects_have_the_interval_of_the_noncentral_t(n: int) -> None:
    d = np.array([0.0, 1e-7, 0.03, 0.4, -0.4, 1.0, 3.0, -8.21, 20.0])
    low, high = effect_interval(d, n)
    t = d * np.sqrt(n)
    assert stats.nct.cdf(t, n - 1, low * np.sqrt(n)) == pytest.approx(0.975, abs=1e-6)
    assert stats.nct.cdf(t, n - 1, high * np.sqrt(n)) == pytest.approx(0.025, abs=1e-6)
    assert (low < d).all() and (d < high).all()
    # where the normal is nothing beside the effect, only the standard deviation is in doubt
    huge = np.array([1e4, -1e8, 1e15])
    ends = np.sqrt(stats.chi2.ppf([0.025, 0.975], n - 1) / (n - 1))
    low, high = effect_interval(huge, n)
    assert low / huge == pytest.approx([ends[0], ends[1], ends[0]], rel=1e-4)
    assert high / huge == pytest.approx([ends[1], ends[0], ends[1]], rel=1e-4)
    assert np.isnan(effect_interval(np.array([np.nan]), n)).all()


def test_the_interval_of_an_effect_holds_it_in_95_of_100_worlds() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 5)) + 1.5
    low, high = effect_interval(x.mean(axis=1) / x.std(axis=1, ddof=1), 5)
    assert np.mean((low < 1.5) & (high > 1.5)) == pytest.approx(0.95, abs=0.012)
    pair = rank_methods(pd.DataFrame({"a": x[0], "b": np.zeros(5)}), True).pair("b", "a")
    assert (pair["d_low"], pair["d"], pair["d_high"]) == pytest.approx(
        (-high[0], -x[0].mean() / x[0].std(ddof=1), -low[0])
    )
